//! What holds for every pod, policy and cluster: many small objects, biased to what Bifold looks at.
#![allow(clippy::unwrap_used)]

mod common;

use bifold_admission::{Cluster, Freshness, Outcome, RuntimeClass, review};
use bifold_crds::WindowsWorkloadPolicy;
use common::{admitted, answer, asking, patch_in};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

/// Absent (as the JSON `null` of [`object`]), `null` itself, or something of `strategy`.
fn maybe(strategy: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Option<Value>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(Value::Null)), 4 => strategy.prop_map(Some)].boxed()
}

fn object(fields: Vec<(&'static str, BoxedStrategy<Option<Value>>)>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let build = move |values: Vec<Option<Value>>| {
        let pairs = names.iter().zip(values).filter_map(|(name, v)| Some(((*name).to_owned(), v?)));
        Value::Object(pairs.collect::<Map<_, _>>())
    };
    values.prop_map(build).boxed()
}

fn one_of(values: &'static [&'static str]) -> BoxedStrategy<Value> {
    select(values).prop_map(Value::from).boxed()
}

fn list(element: BoxedStrategy<Value>, most: usize) -> BoxedStrategy<Value> {
    let element = prop_oneof![8 => element, 1 => Just(Value::Null)];
    vec(element, 0..=most).prop_map(Value::from).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

const KEYS: &[&str] = &[
    "kubernetes.io/os",
    "beta.kubernetes.io/os",
    "node.kubernetes.io/windows-build",
    "kubernetes.io/hostname",
    "team/with~odd",
    "zone",
];
const VALUES: &[&str] = &["windows", "linux", "10.0.20348", "10.0.17763", "win-2022", "a", ""];
const IMAGES: &[&str] = &[
    "nginx:1.27",
    "registry.local/app:1809",
    "mcr.microsoft.com/windows/servercore:ltsc2019",
    "mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2022",
    "mcr.microsoft.com/windows/nanoserver:ltsc2025",
    "mcr.microsoft.com/windows/nanoserver",
    "",
];

fn selector() -> BoxedStrategy<Value> {
    let pair = (select(KEYS), prop_oneof![6 => one_of(VALUES), 1 => Just(Value::Null)]);
    vec(pair, 0..3)
        .prop_map(|p| p.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>().into())
        .boxed()
}

fn requirement(key: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    object(vec![
        ("key", maybe(key)),
        ("operator", maybe(one_of(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Odd"]))),
        ("values", maybe(list(one_of(VALUES), 2))),
    ])
}

fn affinity() -> BoxedStrategy<Value> {
    let term = object(vec![
        ("matchExpressions", maybe(list(requirement(one_of(KEYS)), 2))),
        ("matchFields", maybe(list(requirement(one_of(&["metadata.name"])), 1))),
    ]);
    let required = object(vec![("nodeSelectorTerms", maybe(list(term, 3)))]);
    let node = object(vec![
        ("requiredDuringSchedulingIgnoredDuringExecution", maybe(required)),
        ("preferredDuringSchedulingIgnoredDuringExecution", maybe(Just(json!([])).boxed())),
    ]);
    object(vec![("nodeAffinity", maybe(node)), ("podAntiAffinity", maybe(Just(json!({ "x": [1] })).boxed()))])
}

fn toleration() -> BoxedStrategy<Value> {
    object(vec![
        ("key", maybe(one_of(&["os", "node.kubernetes.io/os", "OS", ""]))),
        ("operator", maybe(one_of(&["Exists", "Equal", "", "Gt"]))),
        ("value", maybe(one_of(&["windows", "Windows", ""]))),
        ("effect", maybe(one_of(&["NoSchedule", "NoExecute", ""]))),
        ("tolerationSeconds", maybe(Just(json!(300)).boxed())),
    ])
}

fn security_context() -> BoxedStrategy<Value> {
    let options =
        object(vec![("hostProcess", maybe(flag())), ("runAsUserName", maybe(one_of(&["ContainerUser"])))]);
    object(vec![
        ("windowsOptions", maybe(options)),
        ("runAsUser", maybe(Just(json!(1000)).boxed())),
        ("privileged", maybe(flag())),
        ("futureField", maybe(Just(json!({ "a": [null, 1.5] })).boxed())),
    ])
}

fn container() -> BoxedStrategy<Value> {
    let mount = object(vec![("name", maybe(one_of(&["v0", "v1"])))]);
    object(vec![
        ("name", maybe(one_of(&["a", "b"]))),
        ("image", maybe(one_of(IMAGES))),
        ("securityContext", maybe(security_context())),
        ("volumeMounts", maybe(list(mount, 2))),
    ])
}

fn volume() -> BoxedStrategy<Value> {
    let items = list(object(vec![("key", maybe(one_of(&["password"])))]), 2);
    let secret = object(vec![("secretName", maybe(one_of(&["s"]))), ("items", maybe(items))]);
    let source = object(vec![
        ("secret", maybe(secret.clone())),
        ("serviceAccountToken", maybe(Just(json!({})).boxed())),
    ]);
    object(vec![
        ("name", maybe(one_of(&["v0", "v1"]))),
        ("secret", maybe(secret)),
        ("projected", maybe(object(vec![("sources", maybe(list(source, 2)))]))),
    ])
}

fn pod() -> BoxedStrategy<Value> {
    let owner = object(vec![
        ("apiVersion", maybe(one_of(&["apps/v1"]))),
        ("kind", maybe(one_of(&["DaemonSet", "ReplicaSet"]))),
        ("controller", maybe(flag())),
    ]);
    let metadata = object(vec![("ownerReferences", maybe(list(owner, 1)))]);
    let spec = object(vec![
        ("os", maybe(object(vec![("name", maybe(one_of(&["windows", "linux", ""])))]))),
        ("nodeName", maybe(one_of(&["win-2022", "other", ""]))),
        ("runtimeClassName", maybe(one_of(&["gvisor", "windows-2022", "hyperv", "unknown", ""]))),
        ("nodeSelector", maybe(selector())),
        ("affinity", maybe(affinity())),
        ("tolerations", maybe(list(toleration(), 3))),
        ("containers", maybe(list(container(), 3))),
        ("initContainers", maybe(list(container(), 1))),
        ("volumes", maybe(list(volume(), 3))),
        ("securityContext", maybe(security_context())),
        ("hostPID", maybe(flag())),
        ("futureField", maybe(Just(json!({ "deep": { "list": [{}, null] } })).boxed())),
    ]);
    let some = |strategy: BoxedStrategy<Value>| strategy.prop_map(Some).boxed();
    object(vec![
        ("metadata", maybe(metadata)),
        ("spec", some(spec)),
        ("status", maybe(Just(json!({})).boxed())),
    ])
}

/// A cluster in some mood: with or without nodes, fresh or not, with some policy.
fn world() -> BoxedStrategy<Cluster> {
    let freshness = select(vec![Freshness::Warm, Freshness::Warm, Freshness::Stale, Freshness::Cold]);
    let unknown = select(vec!["Guard", "Linux", "Windows", "Leave"]);
    let mode = select(vec!["NodeSelector", "RuntimeClass"]);
    let action = select(vec!["Allow", "Fix", "Warn", "Deny"]);
    (freshness, unknown, mode, action, any::<bool>())
        .prop_map(|(freshness, unknown, mode, action, nodes)| {
            let mut cluster = common::cluster();
            cluster.set_freshness(freshness);
            if !nodes {
                cluster.replace_nodes([]);
            }
            for (name, handler, build) in
                [("hyperv", "runhcs-wcow-hypervisor", None), ("windows-2019", "runhcs-wcow-process", Some("10.0.17763"))]
            {
                let mut selector = json!({ "kubernetes.io/os": "windows" });
                if let Some(build) = build {
                    selector["node.kubernetes.io/windows-build"] = json!(build);
                }
                let class = json!({ "handler": handler, "scheduling": { "nodeSelector": selector } });
                let class: k8s_openapi::api::node::v1::RuntimeClass = serde_json::from_value(class).unwrap();
                cluster.put_class(name, RuntimeClass::from(class));
            }
            let rules: Map<String, Value> =
                bifold_admission::rule_ids().map(|id| (id.to_owned(), json!(action))).collect();
            let policy: WindowsWorkloadPolicy = serde_json::from_value(json!({
                "apiVersion": "bifold.dev/v1alpha1", "kind": "WindowsWorkloadPolicy", "metadata": { "name": "p" },
                "spec": { "rules": rules, "placement": { "mode": mode }, "detection": { "unknown": unknown } }
            }))
            .unwrap();
            cluster.put_policy(&policy);
            cluster
        })
        .boxed()
}

/// The same JSON with the keys of every object the other way round.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let pairs = map.iter().rev().map(|(k, v)| format!("{}:{}", json!(k), reversed(v)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(reversed).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// Whether everything in `before` is in `after`: `null` and empty texts, which are absent to the API server, may have
/// become something, and lists may have grown.
fn holds_all_of(after: &Value, before: &Value) -> bool {
    match (before, after) {
        (Value::Null, _) => true,
        (Value::String(empty), _) if empty.is_empty() => true,
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(k, v)| after.get(k).is_some_and(|a| holds_all_of(a, v)))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() <= after.len() && before.iter().zip(after).all(|(b, a)| holds_all_of(a, b))
        }
        (before, after) => before == after,
    }
}

fn as_daemon_set(pod: &Value) -> Value {
    json!({ "metadata": {}, "spec": { "template": pod } })
}

const PLACED: &str = "bifold.dev/placed";

/// An annotation that remembers something, which may or may not be in the template.
fn placed() -> BoxedStrategy<Value> {
    let builds = || list(one_of(&["10.0.20348", "10.0.17763", "a"]), 2);
    let placed = object(vec![
        ("nodeSelector", maybe(one_of(&["windows", "linux"]))),
        ("os", maybe(one_of(&["windows", "linux"]))),
        ("builds", maybe(builds())),
    ]);
    let text =
        prop_oneof![8 => placed.prop_map(|p| json!(p.to_string())), 1 => one_of(&["", "[]", "{", "null"])];
    let annotations = object(vec![(PLACED, maybe(text.boxed())), ("a", maybe(one_of(&["b"])))]);
    object(vec![("annotations", maybe(annotations))])
}

/// The DaemonSet with every image replaced by one of `images`, in turn.
fn with_images(mut set: Value, images: &[&str]) -> Value {
    let mut images = images.iter().cycle();
    for field in ["containers", "initContainers"] {
        let containers = set["spec"]["template"]["spec"].get_mut(field).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|c| c.is_object()) {
            container["image"] = json!(images.next());
        }
    }
    set
}

/// Without what makes no difference to the API server (nothing, in its many spellings), and without tolerations.
fn essence(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let pairs = map.iter().filter(|(key, _)| *key != "tolerations");
            let pairs = pairs.map(|(key, value)| (key.clone(), essence(value)));
            pairs
                .filter(|(_, v)| !v.is_null() && *v != json!("") && *v != json!({}))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(essence).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn the_patch_applies_keeps_all_that_was_there_and_a_second_pass_is_empty(pod in pod(), world in world()) {
        for (group, kind, object) in [("", "Pod", pod.clone()), ("apps", "DaemonSet", as_daemon_set(&pod))] {
            let Some(once) = admitted(&asking(group, kind, &object), &world) else { continue };
            prop_assert!(holds_all_of(&once, &object), "{object} became {once}");
            let (_, again) = answer(&asking(group, kind, &once), &world);
            prop_assert_eq!(patch_in(&again).0, vec![], "{} changed twice: {}", kind, once);
        }
    }

    #[test]
    fn whatever_is_remembered_the_patch_applies_and_a_second_pass_is_empty(
        pod in pod(), metadata in placed(), world in world(),
    ) {
        let mut set = as_daemon_set(&pod);
        set["metadata"] = metadata;
        let once = admitted(&asking("apps", "DaemonSet", &set), &world).unwrap();
        let (_, again) = answer(&asking("apps", "DaemonSet", &once), &world);
        prop_assert_eq!(patch_in(&again).0, vec![], "{} changed twice: {}", set, once);
    }

    #[test]
    fn a_daemon_set_with_other_images_becomes_what_a_new_one_with_them_becomes(
        pod in pod(), world in world(), images in vec(select(IMAGES), 1..3), others in vec(select(IMAGES), 1..3),
    ) {
        // Who knows nothing of the cluster lets everything stand.
        prop_assume!(world.freshness() != Freshness::Cold);
        let become_of = |set: &Value| admitted(&asking("apps", "DaemonSet", set), &world).unwrap();
        let author = as_daemon_set(&pod);
        let before = become_of(&with_images(author.clone(), &images));
        let updated = become_of(&with_images(before.clone(), &others));
        let new = become_of(&with_images(author, &others));
        prop_assert_eq!(essence(&updated), essence(&new), "{} had become {}", pod, before);
    }

    #[test]
    fn the_order_of_fields_does_not_matter(pod in pod(), world in world()) {
        let asked = asking("", "Pod", &pod);
        let one = review(asked.to_string().as_bytes(), &world).unwrap();
        let other = review(reversed(&asked).as_bytes(), &world).unwrap();
        prop_assert_eq!(String::from_utf8(one.body), String::from_utf8(other.body));
    }

    #[test]
    fn no_rule_but_a_conflict_fires_on_a_pod_that_is_proved_to_be_linux(pod in pod(), world in world()) {
        let mut pod = pod;
        pod["spec"]["os"] = json!({ "name": "linux" });
        let (answer, _) = answer(&asking("", "Pod", &pod), &world);
        prop_assert!(answer.findings.iter().all(|(rule, _)| rule.ends_with("-conflict")), "{:?}", answer.findings);
    }

    #[test]
    fn only_pods_are_refused(pod in pod(), world in world()) {
        let (set, _) = answer(&asking("apps", "DaemonSet", &as_daemon_set(&pod)), &world);
        prop_assert_ne!(set.outcome, Outcome::Denied);
        let (deployment, body) = answer(&asking("apps", "Deployment", &as_daemon_set(&pod)), &world);
        prop_assert_eq!(deployment.outcome, Outcome::Allowed);
        let warnings = body["response"]["warnings"].as_array().map_or(0, |w| w.iter().map(|w| w.as_str().unwrap().len()).sum());
        prop_assert!(warnings <= 4096);
    }
}

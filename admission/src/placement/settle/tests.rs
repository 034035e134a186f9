//! What becomes of our own entries when a DaemonSet comes again.

use bifold_crds::{
    WindowsWorkloadPolicySpec, keys,
    workload_policy::{SetOsName, UnknownOs},
};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Freshness},
    policy::Policy,
    testing::{cluster, daemon_set, decide_whole, node},
};

const WS2022: &str = "mcr.microsoft.com/windows/nanoserver:ltsc2022";
const WS2019: &str = "mcr.microsoft.com/windows/nanoserver:ltsc2019";
const ANY_BUILD: &str = "mcr.microsoft.com/dotnet/framework/runtime:4.8";
const LINUX: &str = "nginx";

const ON_2022: &str =
    r#"{"nodeSelector":"windows","builds":["10.0.20348","10.0.25398","10.0.26100"],"os":"windows"}"#;
const ON_2019: &str = r#"{"nodeSelector":"windows","builds":["10.0.17763"],"os":"windows"}"#;

fn of(image: &str) -> Value {
    daemon_set(&json!({ "containers": [{ "image": image }] }))
}

fn spec(set: &mut Value) -> &mut Value {
    &mut set["spec"]["template"]["spec"]
}

fn with_image(mut set: Value, image: &str) -> Value {
    spec(&mut set)["containers"][0]["image"] = json!(image);
    set
}

/// The DaemonSet as it is admitted; a second pass changes nothing.
fn admit_with(set: &Value, cluster: &Cluster, policy: &Policy) -> Value {
    let (_, once) = decide_whole(set, cluster, policy);
    let (again, twice) = decide_whole(&once, cluster, policy);
    assert_eq!((again.changes, &twice), (vec![], &once), "a second pass changes nothing");
    once
}

fn admit(set: &Value) -> Value {
    admit_with(set, &cluster(), &Policy::default())
}

/// Tolerations are kept: one too many does no harm.
fn but_for_tolerations(mut set: Value) -> Value {
    spec(&mut set).as_object_mut().unwrap().remove("tolerations");
    set
}

fn remembered(set: &Value) -> Value {
    set["metadata"]["annotations"][keys::PLACED_ANNOTATION].clone()
}

fn terms(set: &Value) -> &Value {
    &set["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"]
}

fn builds(builds: &[&str]) -> Value {
    json!({ "key": "node.kubernetes.io/windows-build", "operator": "In", "values": builds })
}

fn affinity(terms: &Value) -> Value {
    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } })
}

#[test]
fn what_is_written_is_remembered_beside_it() {
    let windows = admit(&of(WS2022));
    assert_eq!(remembered(&windows), ON_2022);
    assert_eq!(windows["spec"]["template"]["metadata"], json!(null), "the pods are no others for it");
    assert_eq!(remembered(&admit(&of(LINUX))), r#"{"nodeSelector":"linux"}"#);
    let own = json!({ "nodeSelector": { "kubernetes.io/os": "linux" } });
    assert_eq!(remembered(&admit(&daemon_set(&own))), json!(null), "what the author wrote is not ours");
}

#[test]
fn an_image_of_another_os_or_build_gets_what_a_new_daemon_set_with_it_gets() {
    let author = json!({
        "affinity": affinity(&json!([
            { "matchExpressions": [{ "key": "zone", "operator": "NotIn", "values": ["a"] }] },
            { "matchFields": [{ "key": "metadata.name", "operator": "NotIn", "values": ["x"] }] },
        ])),
        "nodeSelector": { "kubernetes.io/arch": "amd64" },
    });
    let preferred = json!({ "affinity": { "podAntiAffinity": {}, "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [] } } });
    let images = [WS2022, WS2019, ANY_BUILD, LINUX];
    for author in [json!({}), author, preferred, json!({ "affinity": { "podAffinity": {} } })] {
        let new = |image: &str| {
            let mut set = of(image);
            spec(&mut set).as_object_mut().unwrap().extend(author.as_object().unwrap().clone());
            set
        };
        for (before, after) in images.iter().flat_map(|b| images.map(|a| (*b, a))) {
            let updated = admit(&with_image(admit(&new(before)), after));
            assert_eq!(
                // An emptied map is an absent one to the API server.
                but_for_tolerations(without_empty_annotations(updated)),
                but_for_tolerations(without_empty_annotations(admit(&new(after)))),
                "{before} became {after}"
            );
        }
    }
}

fn without_empty_annotations(mut set: Value) -> Value {
    if set["metadata"]["annotations"] == json!({}) {
        set["metadata"].as_object_mut().unwrap().remove("annotations");
    }
    set
}

#[test]
fn the_values_of_our_requirement_are_replaced_and_the_neighbours_of_it_are_kept() {
    let zone = json!({ "key": "zone", "operator": "Exists" });
    let pool = json!({ "key": "pool", "operator": "Exists" });
    let mut set = admit(&daemon_set(
        &json!({ "containers": [{ "image": WS2022 }], "affinity": affinity(&json!([{ "matchExpressions": [zone] }])) }),
    ));
    let mut changed = terms(&set).clone();
    changed[0]["matchExpressions"].as_array_mut().unwrap().push(pool.clone());
    changed.as_array_mut().unwrap().push(json!({ "matchExpressions": [pool] }));
    spec(&mut set)["affinity"] = affinity(&changed);
    let updated = admit(&with_image(set, WS2019));
    let ours = builds(&["10.0.17763"]);
    assert_eq!(
        terms(&updated),
        &json!([{ "matchExpressions": [zone, ours, pool] }, { "matchExpressions": [pool, ours] }])
    );
    let (decision, _) = decide_whole(&updated, &cluster(), &Policy::default());
    assert_eq!(decision.findings, [], "it is not in the way of the new image");
    let away = admit(&with_image(updated, ANY_BUILD));
    assert_eq!(terms(&away), &json!([{ "matchExpressions": [zone, pool] }, { "matchExpressions": [pool] }]));
}

#[test]
fn what_somebody_has_changed_is_theirs_from_then_on() {
    let mut set = admit(&of(WS2022));
    let theirs = affinity(&json!([{ "matchExpressions": [builds(&["10.0.20348"])] }]));
    spec(&mut set)["affinity"] = theirs.clone();
    let admitted = admit(&set);
    assert_eq!(admitted["spec"]["template"]["spec"]["affinity"], theirs);
    assert_eq!(remembered(&admitted), r#"{"nodeSelector":"windows","os":"windows"}"#);
    let mut updated = admit(&with_image(admitted, WS2019));
    assert_eq!(spec(&mut updated)["affinity"], theirs, "the rules warn of it");

    let mut set = admit(&of(LINUX));
    spec(&mut set)["nodeSelector"] = json!({ "kubernetes.io/os": "windows" });
    let mut admitted = admit(&set);
    assert_eq!(spec(&mut admitted)["nodeSelector"], json!({ "kubernetes.io/os": "windows" }));
    assert_eq!(remembered(&admitted), r#"{"os":"windows"}"#);
}

#[test]
fn what_the_author_has_come_to_say_as_well_is_the_authors() {
    let said = json!({ "nodeSelector": { "kubernetes.io/os": "windows" }, "os": { "name": "windows" } });
    let text = daemon_set(&said).to_string();
    let fields = json!({ "f:spec": { "f:template": { "f:spec": {
        "f:nodeSelector": { "f:kubernetes.io/os": {} }, "f:os": { "f:name": {} } } } } });
    let managed = |operation: &str| json!([{ "manager": "m", "operation": operation, "fieldsV1": fields }]);
    let after = |key: &str, metadata: Value| {
        let mut set = admit(&of(WS2022));
        match metadata {
            Value::Object(more) => set["metadata"][key].as_object_mut().unwrap().extend(more),
            other => set["metadata"][key] = other,
        }
        admit(&with_image(set, "registry.local/app:1"))
    };
    let mut by_kubectl = after("annotations", json!({ (keys::LAST_APPLIED_ANNOTATION): text }));
    let mut by_server = after("managedFields", managed("Apply"));
    for set in [&mut by_kubectl, &mut by_server] {
        assert_eq!(remembered(set), json!(null));
        assert_eq!(terms(set), &json!(null), "the builds are still ours");
        assert_eq!(spec(set)["nodeSelector"], json!({ "kubernetes.io/os": "windows" }));
    }
    // An update says nothing about a text: it may have written back what it had read.
    let mut written_back = after("managedFields", managed("Update"));
    assert_eq!(spec(&mut written_back)["nodeSelector"], json!({ "kubernetes.io/os": "linux" }));
    let mut odd = after("annotations", json!({ (keys::LAST_APPLIED_ANNOTATION): "{" }));
    assert_eq!(spec(&mut odd)["nodeSelector"], json!({ "kubernetes.io/os": "linux" }));
}

#[test]
fn an_annotation_that_is_not_ours_is_replaced_or_removed() {
    for odd in
        ["", "[]", "null", "{", r#"{"builds":["windows"]}"#, r#"{"nodeSelector":"beos"}"#, r#"["windows"]"#]
    {
        let mut set = of(WS2022);
        set["metadata"]["annotations"] = json!({ "a": "b", (keys::PLACED_ANNOTATION): odd });
        assert_eq!(remembered(&admit(&set)), ON_2022, "{odd}");
        let mut own = daemon_set(&json!({ "nodeSelector": { "kubernetes.io/os": "linux" } }));
        own["metadata"]["annotations"] = json!({ "a": "b", (keys::PLACED_ANNOTATION): odd });
        assert_eq!(admit(&own)["metadata"]["annotations"], json!({ "a": "b" }), "{odd}");
    }
    // A later version may remember more.
    let mut set = admit(&of(WS2022));
    set["metadata"]["annotations"][keys::PLACED_ANNOTATION] =
        json!(ON_2022.replace("{\"node", "{\"new\":1,\"node"));
    assert_eq!(remembered(&admit(&with_image(set, WS2019))), ON_2019);
}

#[test]
fn a_policy_that_forbids_them_takes_our_entries_back() {
    let mut spec = WindowsWorkloadPolicySpec::default();
    spec.placement.match_build = false;
    spec.placement.set_os_name = SetOsName::Never;
    let set = admit(&of(WS2022));
    let updated = admit_with(&set, &cluster(), &Policy::new(None, &spec));
    let template = &updated["spec"]["template"]["spec"];
    assert_eq!((&template["affinity"], &template["os"]), (&json!(null), &json!(null)));
    assert_eq!(remembered(&updated), r#"{"nodeSelector":"windows"}"#);
}

#[test]
fn the_name_of_the_os_goes_when_the_api_server_would_refuse_it() {
    let mut set = admit(&of(WS2022));
    spec(&mut set)["securityContext"] = json!({ "runAsUser": 1000 });
    assert_eq!(spec(&mut admit(&set))["os"], json!(null));
}

#[test]
fn nodes_that_are_away_for_a_while_roll_nothing_out() {
    let mut cluster = cluster();
    cluster.put_node(node("insider", 22621, &json!({}), &json!([])));
    let windows = admit_with(&of(WS2022), &cluster, &Policy::default());
    let linux = admit_with(&of(LINUX), &cluster, &Policy::default());
    assert!(remembered(&windows).as_str().unwrap().contains("10.0.22621"));
    cluster.replace_nodes([]);
    for set in [windows, linux] {
        let (decision, after) = decide_whole(&set, &cluster, &Policy::default());
        assert_eq!((decision.changes, decision.notes, after), (vec![], Vec::<String>::new(), set));
    }
}

#[test]
fn without_any_knowledge_of_the_cluster_our_entries_stand() {
    let mut cold = Cluster::default();
    cold.set_freshness(Freshness::Cold);
    for set in [admit(&of(WS2022)), admit(&of(LINUX)), with_image(admit(&of(WS2022)), LINUX)] {
        assert_eq!(decide_whole(&set, &cold, &Policy::default()).1, set);
    }
    let new = admit_with(&of(WS2022), &cold, &Policy::default());
    assert_eq!(remembered(&new), r#"{"nodeSelector":"windows","os":"windows"}"#);
    assert_eq!(remembered(&admit(&new)), ON_2022, "what was left out is made up for");
}

#[test]
fn a_policy_that_leaves_unknown_pods_alone_takes_the_guard_back() {
    let mut spec = WindowsWorkloadPolicySpec::default();
    spec.detection.unknown = UnknownOs::Leave;
    let left = admit_with(&admit(&of(LINUX)), &cluster(), &Policy::new(None, &spec));
    assert_eq!(left["spec"], of(LINUX)["spec"]);
    assert_eq!(remembered(&left), json!(null));
}

#[test]
fn whoever_removes_the_annotation_takes_the_entries_over() {
    let mut set = admit(&of(WS2022));
    set["metadata"].as_object_mut().unwrap().remove("annotations");
    assert_eq!(admit(&set), set);
    assert_eq!(
        spec(&mut admit(&with_image(set, LINUX)))["nodeSelector"],
        json!({ "kubernetes.io/os": "windows" })
    );
}

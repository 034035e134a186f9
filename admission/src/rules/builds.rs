//! `build-mismatch` and `no-windows-node`: what the Windows nodes that the pod may use have to offer.

use bifold_crds::{Isolation, WindowsBuild, keys};

use super::{Basis, Hit};
use crate::{
    case::Case, cluster::Shape, evidence::Verdict, json::Map, pod::text, scheduling::Wants, shown::Shown,
};

/// How many builds of nodes are told.
const MOST_BUILDS: usize = 3;

pub(super) fn mismatch(case: &Case<'_>, hits: &mut Vec<Hit>) {
    let reach = &case.reach;
    let possible = reach.known && !reach.admitted.is_empty() && reach.runnable.is_empty();
    if !has_to_find_a_node(case) || !possible {
        return;
    }
    let isolation = case.isolation();
    let runs = |shape: &&Shape, build| shape.build.is_none_or(|host| host.runs(build, isolation));
    let known = || case.images.iter().filter_map(|image| Some((image, image.build?)));
    let nowhere = known().find(|(_, build)| !reach.admitted.iter().any(|shape| runs(shape, *build)));
    // Each image may have its node and still no node have all of them.
    let Some((image, build)) = nowhere.or_else(|| known().next_back()) else { return };
    hits.push(Hit {
        path: image.path(),
        message: told(build, &offered(&reach.admitted), nowhere.is_some()),
        remedy: remedy(case),
        basis: Basis::Snapshot,
    });
}

/// The node of a DaemonSet's pod is not the pod's choice, and a pod that contradicts itself has other troubles.
fn has_to_find_a_node(case: &Case<'_>) -> bool {
    case.os == Verdict::Windows && !case.daemon_pod && !case.in_conflict()
}

/// Short, so that the remedy survives in a warning. The path says which image it is.
fn told(build: WindowsBuild, offered: &str, alone: bool) -> String {
    let with = if alone { "" } else { " together with the pod's other images" };
    format!("no node that it may use runs Windows build {build}{with}; they are {offered}")
}

fn remedy(case: &Case<'_>) -> String {
    if Wants::new(case.spec, case.class).mentions(keys::WINDOWS_BUILD_LABEL) {
        return "let selector and affinity name builds that run the image, or none".to_owned();
    }
    let otherwise = match case.isolation() {
        Isolation::Process => ", or for an old image use Hyper-V isolation",
        Isolation::HyperV | Isolation::HostProcess => "",
    };
    format!("use an image or add a node that fits{otherwise}")
}

fn offered(shapes: &[&Shape]) -> String {
    let mut builds: Vec<WindowsBuild> = shapes.iter().filter_map(|s| s.build).collect();
    builds.sort_unstable();
    builds.dedup();
    let more = if builds.len() > MOST_BUILDS { ", …" } else { "" };
    let words: Vec<String> = builds.into_iter().take(MOST_BUILDS).map(|b| b.to_string()).collect();
    words.join(", ") + more
}

pub(super) fn no_node(case: &Case<'_>, hits: &mut Vec<Hit>) {
    let reach = &case.reach;
    if !has_to_find_a_node(case) || !text(&case.spec.node_name).is_empty() || !reach.known {
        return;
    }
    let Some((path, message, remedy)) = obstacle(case) else { return };
    hits.push(Hit { path, message, remedy, basis: Basis::Snapshot });
}

/// The first thing that keeps every Windows node from the pod, in the order in which the scheduler asks.
fn obstacle(case: &Case<'_>) -> Option<(String, String, String)> {
    let reach = &case.reach;
    if reach.total == 0 {
        let message = "the cluster has no Windows node, so the pod waits for one".to_owned();
        return Some(("spec".to_owned(), message, "add a Windows node".to_owned()));
    }
    if reach.admitted.is_empty() {
        return Some(unmatched(case));
    }
    if reach.runnable.is_empty() {
        return None; // build-mismatch says so
    }
    if reach.usable.is_empty() {
        let wants = Wants::new(case.spec, case.class);
        let kept_by = |shape: &&Shape| {
            shape
                .taints
                .iter()
                .find(|t| !t.is_about_os() && !t.is_condition() && !wants.tolerates(t))
                .cloned()
        };
        let taint = reach.runnable.iter().find_map(kept_by)?;
        let shown = format!("{}={}:{}", taint.key, taint.value, taint.effect);
        return Some((
            "spec.tolerations".to_owned(),
            format!(
                "every Windows node that could run the pod has a taint that it does not tolerate, such as {shown}"
            ),
            "tolerate it if the node is meant for this pod, or add a node without it".to_owned(),
        ));
    }
    reach.usable.iter().all(|shape| shape.unschedulable).then(|| {
        let message = "every Windows node that could run the pod is cordoned".to_owned();
        ("spec".to_owned(), message, "uncordon or add a Windows node".to_owned())
    })
}

/// Which label no Windows node has, where it is one alone.
fn unmatched(case: &Case<'_>) -> (String, String, String) {
    let pairs = case.spec.node_selector.iter().flat_map(Map::iter);
    let nowhere = |(key, value): &(&str, &str)| {
        case.cluster.nodes().members().all(|(name, member)| match *key {
            "kubernetes.io/hostname" => member.hostname(name) != *value,
            _ => member.shape.labels.get(*key).is_none_or(|found| found != value),
        })
    };
    let remedy = "correct the selector, or label a Windows node".to_owned();
    match pairs.filter(nowhere).min() {
        Some((key, value)) => (
            format!("spec.nodeSelector[{}]", Shown(key)),
            format!("no Windows node has the label {}={}", Shown(key), Shown(value)),
            remedy,
        ),
        None => (
            "spec".to_owned(),
            "no Windows node has all the labels that the node selector, affinity and RuntimeClass ask for"
                .to_owned(),
            remedy,
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        cluster::Freshness,
        policy::Policy,
        testing::{class, cluster, decide_daemon_set, findings_in, node, windows},
    };
    use bifold_crds::workload_policy::RuleAction::{Deny, Warn};
    use serde_json::{Value, json};

    fn image(image: &str) -> Value {
        windows(&json!({ "containers": [{ "name": "app", "image": image }] }))
    }

    #[test]
    fn an_image_that_no_node_runs_is_refused_with_what_the_nodes_run() {
        let mut only_2019 = cluster();
        only_2019.replace_nodes([node("w", 17763, &json!({}), &json!([]))]);
        let found = findings_in(&image("mcr.microsoft.com/windows/nanoserver:ltsc2022"), &only_2019);
        assert_eq!((found[0].rule, found[0].action), ("build-mismatch", Deny));
        assert_eq!(found[0].path, "spec.containers[0].image");
        assert_eq!(
            found[0].message,
            "no node that it may use runs Windows build 10.0.20348; they are 10.0.17763"
        );
        only_2019.set_freshness(Freshness::Stale);
        let found = findings_in(&image("mcr.microsoft.com/windows/nanoserver:ltsc2022"), &only_2019);
        assert_eq!(found[0].action, Warn, "a stale snapshot refuses nothing");
    }

    #[test]
    fn a_warning_has_room_for_the_remedy() {
        let mut many = cluster();
        many.replace_nodes(
            [14393, 17763, 18362, 19042].map(|b| node(&b.to_string(), b, &json!({}), &json!([]))),
        );
        let with_selector =
            json!({ "kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.17763" });
        let image = format!("registry.local/{}:ltsc2022", "x".repeat(200));
        for selector in [json!(null), with_selector] {
            let spec = json!({ "nodeSelector": selector, "containers": [{ "image": image }] });
            let (decision, _) = decide_daemon_set(&spec, &many, &Policy::default());
            let found = &decision.findings[0];
            let warning =
                format!("bifold: {}: {}: {}; {}", found.rule, found.path, found.message, found.remedy);
            assert!(found.rule == "build-mismatch" && warning.len() <= 256, "{}: {warning}", warning.len());
        }
    }

    #[test]
    fn hyper_v_host_process_and_unknown_builds_are_no_mismatch() {
        let mut only_2022 = cluster();
        only_2022.replace_nodes([node("w", 20348, &json!({}), &json!([]))]);
        only_2022.put_class("hyperv", class("runhcs-wcow-hypervisor", &[("kubernetes.io/os", "windows")]));
        let old = "mcr.microsoft.com/windows/servercore:ltsc2019";
        assert_eq!(findings_in(&image(old), &only_2022)[0].rule, "build-mismatch");
        let mut hyper_v = image(old);
        hyper_v["spec"]["runtimeClassName"] = json!("hyperv");
        assert_eq!(findings_in(&hyper_v, &only_2022), []);
        let mut host_process = image(old);
        host_process["spec"]["securityContext"] = json!({ "windowsOptions": { "hostProcess": true } });
        assert_eq!(findings_in(&host_process, &only_2022), []);
        assert_eq!(findings_in(&image("mcr.microsoft.com/windows/servercore:ltsc2028"), &only_2022), []);
    }

    #[test]
    fn images_that_only_run_apart_are_a_mismatch() {
        let pod = windows(&json!({ "containers": [
            { "name": "a", "image": "mcr.microsoft.com/windows/nanoserver:ltsc2019" },
            { "name": "b", "image": "mcr.microsoft.com/windows/nanoserver:ltsc2025" }] }));
        let found = findings_in(&pod, &cluster());
        assert_eq!((found[0].rule, found[0].path.as_str()), ("build-mismatch", "spec.containers[1].image"));
        assert!(found[0].message.contains("together with"), "{}", found[0].message);
    }

    #[test]
    fn what_keeps_every_node_away_is_named() {
        let mut none = cluster();
        none.replace_nodes([]);
        let mut team = cluster();
        let taints = json!([{ "key": "team", "value": "web", "effect": "NoSchedule" }]);
        team.replace_nodes([node("w", 20348, &json!({}), &taints)]);
        let zone = windows(&json!({ "nodeSelector": { "kubernetes.io/os": "windows", "zone": "x" } }));
        let table = [
            (image("a"), &none, "spec", "the cluster has no Windows node, so the pod waits for one"),
            (zone, &team, "spec.nodeSelector[zone]", "no Windows node has the label zone=x"),
            (
                image("a"),
                &team,
                "spec.tolerations",
                "every Windows node that could run the pod has a taint that it does not tolerate, such as team=web:NoSchedule",
            ),
        ];
        for (pod, cluster, path, message) in table {
            let found = findings_in(&pod, cluster);
            let told: Vec<_> =
                found.iter().map(|f| (f.rule, f.action, f.path.as_str(), f.message.as_str())).collect();
            assert_eq!(told, [("no-windows-node", Warn, path, message)]);
        }
    }
}

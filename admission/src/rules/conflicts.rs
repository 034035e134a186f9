//! `os-conflict` and `runtime-class-conflict`: the pod says two things that cannot both hold, and would stay Pending
//! or be refused by the API server in words that do not name the fields.

use bifold_crds::keys;

use super::{Basis, Hit};
use crate::{
    case::Case,
    evidence::{self, Evidence, Source, Verdict},
    pod::text,
    question::Subject,
    shown::Shown,
};

pub(super) fn os(case: &Case<'_>, hits: &mut Vec<Hit>) {
    let Some((one, other)) = evidence::conflict(case.evidence) else { return };
    if [one, other].iter().any(|e| e.source == Source::RuntimeClass) {
        return;
    }
    hits.push(Hit {
        path: one.path.clone(),
        message: told_apart(case, one, other),
        remedy: "let both name the OS of the image, or remove the one that is wrong".to_owned(),
        basis: basis(&[one, other]),
    });
}

pub(super) fn runtime_class(case: &Case<'_>, hits: &mut Vec<Hit>) {
    let name = Shown(text(&case.spec.runtime_class_name));
    if let Some((one, other)) = evidence::conflict(case.evidence) {
        if [one, other].iter().any(|e| e.source == Source::RuntimeClass) {
            hits.push(Hit {
                path: "spec.runtimeClassName".to_owned(),
                message: told_apart(case, one, other),
                remedy: format!("take a RuntimeClass for the OS of the image, or none instead of \"{name}\""),
                basis: Basis::Snapshot,
            });
        }
        return;
    }
    // The API server has merged a pod's class into its selector before it asks; a template's it has not.
    let (Verdict::Windows, Subject::DaemonSet | Subject::Workload) = (case.os, case.request.subject) else {
        return;
    };
    let (Some(class), Some(selector)) = (case.class, &case.spec.node_selector) else { return };
    let contradiction = class
        .selector
        .iter()
        .find_map(|(key, value)| selector.get(key).filter(|own| own != value).map(|own| (key, value, own)));
    if let Some((key, value, own)) = contradiction {
        hits.push(Hit {
            path: format!("spec.nodeSelector[{}]", Shown(key)),
            message: format!(
                "the node selector asks for {}={}, RuntimeClass \"{name}\" for {}: the API server refuses such pods",
                Shown(key),
                Shown(own),
                Shown(value)
            ),
            remedy: "remove the label from the node selector, or take another RuntimeClass".to_owned(),
            basis: Basis::Snapshot,
        });
    }
}

fn told_apart(case: &Case<'_>, one: &Evidence, other: &Evidence) -> String {
    let root = case.request.root;
    format!(
        "{root}{} says {}, but {root}{} says {}",
        one.path,
        one.os.as_str(),
        told(other),
        other.os.as_str()
    )
}

/// The label of a selector need not be repeated where its path already ends in it.
fn told(evidence: &Evidence) -> String {
    if evidence.value == keys::LINUX || evidence.value == keys::WINDOWS || evidence.value.is_empty() {
        evidence.path.clone()
    } else {
        format!("{} ({})", evidence.path, evidence.value)
    }
}

fn basis(evidence: &[&Evidence]) -> Basis {
    if evidence.iter().any(|e| e.source == Source::NodeName) { Basis::Snapshot } else { Basis::Pod }
}

#[cfg(test)]
mod tests {
    use crate::testing::{cluster, findings_in, pod};
    use bifold_crds::workload_policy::RuleAction;
    use serde_json::json;

    #[test]
    fn two_strong_facts_that_disagree_are_named() {
        let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{ "matchExpressions": [
                { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] }] }] } } });
        let table = [
            (
                json!({ "os": { "name": "windows" }, "nodeSelector": { "kubernetes.io/os": "linux" } }),
                Some((
                    "os-conflict",
                    "spec.os.name says windows, but spec.nodeSelector[kubernetes.io/os] says linux",
                )),
            ),
            (
                json!({ "nodeSelector": { "kubernetes.io/os": "windows" }, "affinity": affinity }),
                Some((
                    "os-conflict",
                    "spec.nodeSelector[kubernetes.io/os] says windows, but spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0] says linux",
                )),
            ),
            (
                json!({ "nodeName": "win-2022", "nodeSelector": { "kubernetes.io/os": "linux" } }),
                Some((
                    "os-conflict",
                    "spec.nodeName says windows, but spec.nodeSelector[kubernetes.io/os] says linux",
                )),
            ),
            (
                json!({ "os": { "name": "windows" }, "runtimeClassName": "gvisor" }),
                Some((
                    "runtime-class-conflict",
                    "spec.os.name says windows, but spec.runtimeClassName (gvisor) says linux",
                )),
            ),
            (
                json!({ "os": { "name": "linux" }, "securityContext": { "windowsOptions": { "hostProcess": true } } }),
                Some((
                    "os-conflict",
                    "spec.os.name says linux, but spec.securityContext.windowsOptions.hostProcess (true) says windows",
                )),
            ),
            // An image is a fair witness only, and so are options that a chart gives to all.
            (
                json!({ "nodeSelector": { "kubernetes.io/os": "linux" },
                    "containers": [{ "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022" }],
                    "securityContext": { "windowsOptions": { "runAsUserName": "ContainerUser" } } }),
                None,
            ),
            (json!({ "os": { "name": "windows" }, "nodeSelector": { "kubernetes.io/os": "windows" } }), None),
        ];
        for (spec, expected) in table {
            let found = findings_in(&pod(&spec), &cluster());
            let told: Vec<_> = found.iter().map(|f| (f.rule, f.message.as_str())).collect();
            assert_eq!(told, expected.into_iter().collect::<Vec<_>>(), "{spec}");
            assert!(found.iter().all(|f| f.action == RuleAction::Deny));
        }
    }
}

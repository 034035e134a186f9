//! Step "placement" for pods that are not for Windows: one that could land on a Windows node is kept to Linux nodes.

use bifold_crds::{
    keys,
    workload_policy::{Os, UnknownOs},
};

use crate::{
    case::Case,
    evidence::{Source, Verdict},
    placement::Change,
    pod::text,
    question::Subject,
    reach::could_land,
    scheduling::Wants,
};

/// The selector that keeps the pod off Windows nodes, if it needs one, and what a person should know about it.
pub(crate) fn guard(case: &Case<'_>) -> (Vec<Change>, Vec<String>) {
    // The DaemonSet controller chose the node already: a demand that the node does not meet keeps the pod Pending for
    // ever. So does one on a pod that is bound to a node.
    let has_a_choice = !case.daemon_pod && text(&case.spec.node_name).is_empty();
    let left = case.os == Verdict::Unknown && case.policy.unknown == UnknownOs::Leave;
    // Of pods, the API server has merged what the class says; the API server refuses a pod that contradicts it.
    let wants = Wants::new(case.spec, case.class);
    if !has_a_choice || left || case.pinned().is_some() || wants.label(keys::OS_LABEL).is_some() {
        return Default::default();
    }
    // What kept it off Windows nodes once does so when the danger is over for a while: nodes come and go.
    if case.ours.node_selector == Some(Os::Linux) {
        return (vec![Change::os_selector(Os::Linux)], Vec::new());
    }
    let Some(why) = danger(case, wants) else { return Default::default() };
    (
        vec![Change::os_selector(Os::Linux)],
        vec![format!("kubernetes.io/os=linux was added to the node selector: {why}")],
    )
}

fn danger(case: &Case<'_>, wants: Wants<'_>) -> Option<&'static str> {
    // The policy takes such pods for Linux pods, wherever they could land.
    if case.evidence.first().is_some_and(|e| e.source == Source::UnknownOs) {
        return Some("the policy takes pods whose OS nothing tells for Linux pods");
    }
    // The node selector of a template is all that the DaemonSet controller sees of it.
    let seen = if case.request.subject == Subject::DaemonSet { Wants::new(case.spec, None) } else { wants };
    if could_land(seen, case.cluster) {
        return Some("without it the pod could land on a Windows node");
    }
    // It would land on the first Windows node that joins, and on every one; or nothing is known of nodes.
    let everywhere = case.request.subject == Subject::DaemonSet || !known(case);
    (everywhere && seen.tolerates_everything())
        .then_some("it tolerates every taint, those of Windows nodes too")
}

fn known(case: &Case<'_>) -> bool {
    case.cluster.freshness() != crate::cluster::Freshness::Cold
}

//! From what a template should get to what has to change: some of it may be there from before.

#[cfg(test)]
mod tests;

use bifold_crds::{keys, workload_policy::Os};

use super::{Change, Part};
use crate::{
    placed::{Placed, remembered},
    pod::PodView,
};

/// The changes that make `wanted` of a template in which `ours` was not looked at, and remember it. `kept` is of ours
/// as well, and was looked at as if it were the author's.
pub(crate) fn settle(wanted: Vec<Change>, ours: &Placed, kept: &Placed, pod: &PodView<'_>) -> Vec<Change> {
    let placed = all(&wanted);
    let gone = [
        (ours.node_selector.is_some() && placed.node_selector.is_none(), Part::NodeSelector),
        (!ours.builds.is_empty() && placed.builds.is_empty(), Part::BuildAffinity),
        (ours.os.is_some() && placed.os.is_none(), Part::OsName),
    ];
    let mut changes = wanted;
    changes.retain(|change| !stands(change, ours, pod));
    changes.extend(gone.into_iter().filter(|(gone, _)| *gone).map(|(_, part)| Change::Removal(part)));
    let placed = placed.or(kept);
    if placed.annotation().as_deref() != remembered(pod) {
        changes.push(Change::Annotation(placed));
    }
    changes
}

/// What of the changes has to be remembered.
fn all(wanted: &[Change]) -> Placed {
    let mut placed = Placed::default();
    for change in wanted {
        match change {
            Change::NodeSelector { key, value } if key == keys::OS_LABEL => {
                placed.node_selector = Os::from_api(value);
            }
            Change::BuildAffinity { builds } => placed.builds.clone_from(builds),
            Change::OsName { os } => placed.os = Some(*os),
            _ => {}
        }
    }
    placed
}

fn stands(change: &Change, ours: &Placed, pod: &PodView<'_>) -> bool {
    match change {
        Change::NodeSelector { value, .. } => ours.node_selector.is_some_and(|os| os.as_str() == value),
        Change::OsName { os } => ours.os == Some(*os),
        Change::BuildAffinity { builds } => {
            let mut terms = pod.spec.iter().flat_map(|s| s.terms()).filter(|term| !term.is_empty());
            ours.builds == *builds
                && terms.all(|t| t.match_expressions.iter().flat_map(|e| e.iter()).any(|r| ours.wrote(r)))
        }
        _ => false,
    }
}

//! Condition types, their reasons, and how a condition is kept.
//!
//! Every condition follows the Kubernetes API conventions: it is set from the first visit on, carries the generation
//! it was observed for, and keeps its transition time until its status changes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Condition types.
pub mod kind {
    /// Summary: the object does what its spec asks for.
    pub const READY: &str = "Ready";
    /// Every node of the pool carries the pool's label, taints and labels.
    pub const NODES_CONFIGURED: &str = "NodesConfigured";
    /// Every RuntimeClass of the pool exists as the pool describes it.
    pub const RUNTIME_CLASSES_READY: &str = "RuntimeClassesReady";
    /// The agent of every node of the pool reports ready, or the pool does not ask for agents.
    pub const AGENTS_READY: &str = "AgentsReady";
    /// A node or a RuntimeClass that the pool asks for is held by another owner.
    pub const CONFLICTED: &str = "Conflicted";
    /// The policy governs at least one namespace and every rule id in it is known.
    pub const ACCEPTED: &str = "Accepted";
    /// Agent: the container runtime answers.
    pub const RUNTIME_READY: &str = "RuntimeReady";
    /// Agent: the network that is wanted is there.
    pub const NETWORK_READY: &str = "NetworkReady";
    /// Agent: stats are measured and served.
    pub const STATS_READY: &str = "StatsReady";
}

/// Machine-readable reasons. One reason is used by one condition type.
pub mod reason {
    /// Ready: everything the spec asks for is in place.
    pub const AS_SPECIFIED: &str = "AsSpecified";
    /// Ready: some node, class or agent is not there yet; the other conditions say which.
    pub const IN_PROGRESS: &str = "InProgress";
    /// Ready: a person has to act; the message says on what.
    pub const NEEDS_ATTENTION: &str = "NeedsAttention";
    /// Ready: the last pass could not read or write what it had to.
    pub const API_ERROR: &str = "ApiError";
    /// NodesConfigured: every node of the pool is configured.
    pub const CONFIGURED: &str = "Configured";
    /// NodesConfigured: the selector selects no Windows node.
    pub const NO_NODES: &str = "NoNodes";
    /// NodesConfigured: selected nodes run another build than `spec.build` and are left alone.
    pub const OTHER_BUILD: &str = "OtherBuild";
    /// NodesConfigured: a write was refused or has to be repeated.
    pub const WRITES_PENDING: &str = "WritesPending";
    /// RuntimeClassesReady: all classes are as described.
    pub const CLASSES_EXIST: &str = "ClassesExist";
    /// RuntimeClassesReady: the pool asks for none.
    pub const NONE_REQUESTED: &str = "NoneRequested";
    /// RuntimeClassesReady: the build is not known yet, so no class can be described.
    pub const BUILD_UNKNOWN: &str = "BuildUnknown";
    /// RuntimeClassesReady: a class of that name belongs to someone else.
    pub const CLASS_NOT_OURS: &str = "ClassNotOurs";
    /// RuntimeClassesReady: a class could not be written.
    pub const CLASS_WRITE_FAILED: &str = "ClassWriteFailed";
    /// AgentsReady: the pool does not require agents.
    pub const NOT_REQUIRED: &str = "NotRequired";
    /// AgentsReady: every agent reports ready.
    pub const ALL_REPORT_READY: &str = "AllReportReady";
    /// AgentsReady: some agents do not report ready.
    pub const WAITING_FOR_AGENTS: &str = "WaitingForAgents";
    /// Conflicted: nothing is held by another owner.
    pub const NO_CONFLICT: &str = "NoConflict";
    /// Conflicted: another pool has a claim on the same nodes.
    pub const NODES_CLAIMED_TWICE: &str = "NodesClaimedTwice";
    /// Conflicted: another owner holds a label or a taint that the pool asks for.
    pub const FIELD_HELD: &str = "FieldHeld";
    /// Conflicted: another owner holds a RuntimeClass that the pool asks for.
    pub const CLASS_HELD: &str = "ClassHeld";
    /// Accepted: the policy applies to some namespace.
    pub const GOVERNS: &str = "Governs";
    /// Accepted: no namespace matches, or other policies come first everywhere.
    pub const GOVERNS_NONE: &str = "GovernsNoNamespace";
    /// Accepted: the policy names rules that this version does not know; they are passed over.
    pub const UNKNOWN_RULES: &str = "UnknownRules";
}

/// A condition as it is seen at one moment.
#[derive(Clone, Debug)]
pub struct Observation {
    /// One of [`kind`].
    pub kind: &'static str,
    /// Whether it holds; `None` is the status `Unknown`.
    pub holds: Option<bool>,
    /// One of [`reason`].
    pub reason: &'static str,
    /// A sentence for a person.
    pub message: String,
}

impl Observation {
    /// The API's condition of an object whose `metadata.generation` is `generation`, as seen at `now`.
    #[must_use]
    pub fn at(self, generation: Option<i64>, now: Timestamp) -> Condition {
        Condition {
            type_: self.kind.to_owned(),
            status: match self.holds {
                Some(true) => "True",
                Some(false) => "False",
                None => "Unknown",
            }
            .to_owned(),
            reason: self.reason.to_owned(),
            message: self.message,
            observed_generation: generation,
            last_transition_time: Time(now),
        }
    }
}

/// Puts `new` into `list`; `lastTransitionTime` moves only when the status does.
pub fn set(list: &mut Vec<Condition>, new: Condition) {
    let Some(old) = list.iter_mut().find(|c| c.type_ == new.type_) else {
        list.push(new);
        return;
    };
    let since = if old.status == new.status {
        old.last_transition_time.clone()
    } else {
        new.last_transition_time.clone()
    };
    *old = Condition { last_transition_time: since, ..new };
}

/// Whether the condition `kind` is `True` in `list`.
#[must_use]
pub fn holds(list: &[Condition], kind: &str) -> bool {
    list.iter().any(|c| c.type_ == kind && c.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(holds: bool, second: i64) -> Condition {
        let seen = Observation {
            kind: kind::READY,
            holds: Some(holds),
            reason: reason::AS_SPECIFIED,
            message: String::new(),
        };
        seen.at(Some(1), Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn looking_again_later_changes_nothing() {
        let mut list = vec![ready(true, 10)];
        let before = list.clone();
        set(&mut list, ready(true, 99));
        assert_eq!(list, before);
    }

    #[test]
    fn a_change_of_status_moves_the_transition_time() {
        let mut list = vec![ready(true, 10)];
        set(&mut list, ready(false, 99));
        assert_eq!(list, [ready(false, 99)]);
        assert!(!holds(&list, kind::READY));
    }
}

//! Everything about one pod that rules, placement and guard look at.

use bifold_crds::{Isolation, workload_policy::Os};

use crate::{
    cluster::{Cluster, RuntimeClass},
    evidence::{self, Evidence, Image, Verdict},
    placed::Placed,
    pod::Spec,
    policy::Policy,
    question::Request,
    reach::Reach,
};

/// All that rules and placement look at.
pub(crate) struct Case<'c> {
    pub spec: &'c Spec<'c>,
    pub request: &'c Request<'c>,
    pub cluster: &'c Cluster,
    pub policy: &'c Policy,
    /// What we wrote into a template before. `spec` is without it.
    pub ours: &'c Placed,
    /// Whether a DaemonSet made the pod.
    pub daemon_pod: bool,
    pub host_process: bool,
    /// Its RuntimeClass, where that is known.
    pub class: Option<&'c RuntimeClass>,
    pub images: &'c [Image<'c>],
    pub evidence: &'c [Evidence],
    pub os: Verdict,
    /// The Windows nodes it could use; empty for a pod that is not for Windows.
    pub reach: Reach<'c>,
}

impl Case<'_> {
    /// Whether two strong facts disagree: then nothing is written, since whatever it were would contradict one.
    pub fn in_conflict(&self) -> bool {
        evidence::conflict(self.evidence).is_some()
    }

    /// The OS that the nodes of the pod have for certain, by its selector, its affinity or its RuntimeClass.
    pub fn pinned(&self) -> Option<Os> {
        use evidence::Source::{NodeAffinity, NodeSelector, RuntimeClass};
        let pins = |e: &&Evidence| {
            e.strength == evidence::Strength::Strong
                && matches!(e.source, RuntimeClass | NodeSelector | NodeAffinity)
        };
        self.evidence.iter().find(pins).map(|e| e.os)
    }

    pub fn isolation(&self) -> Isolation {
        match (self.host_process, self.class) {
            (true, _) => Isolation::HostProcess,
            (false, Some(class)) => class.isolation(),
            (false, None) => Isolation::Process,
        }
    }
}

//! Step "decide": from a pod, what is asked about it and what is known of the cluster to the whole answer.

use bifold_crds::{
    Isolation,
    workload_policy::{Os, RuleAction},
};
use serde::Serialize;

use crate::{
    cluster::{Cluster, RuntimeClass},
    evidence::{self, Evidence, Image, Verdict},
    guard, placement,
    placement::Change,
    pod::{PodView, Spec, text},
    policy::Policy,
    reach::Reach,
    rules::{self, Finding},
};

/// What a decision is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A pod that is to be created.
    Pod,
    /// A pod that gets ephemeral containers; nothing else of it can change any more.
    EphemeralContainers,
    /// The pod template of a DaemonSet, from which the controller chooses nodes.
    DaemonSet,
    /// The pod template of another workload; its pods come by one by one.
    Workload,
}

/// What is asked, beside the pod.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The namespace of the pod. The pod itself may not say it.
    pub namespace: &'a str,
    /// What the pod is.
    pub subject: Subject,
    /// What stands before the paths of a template, such as `spec.template.`; empty for a pod.
    pub root: &'a str,
}

/// The whole answer to a question about a pod.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Which OS it is for.
    pub os: Verdict,
    /// Why, strongest first.
    pub evidence: Vec<Evidence>,
    /// The rules that fired.
    pub findings: Vec<Finding>,
    /// What is written into it.
    pub changes: Vec<Change>,
    /// What a person should know about the changes.
    pub notes: Vec<String>,
    /// The policy that applied; `None` for the built-in defaults.
    pub policy: Option<String>,
}

/// All that rules and placement look at.
pub(crate) struct Case<'c> {
    pub spec: &'c Spec<'c>,
    pub request: &'c Request<'c>,
    pub cluster: &'c Cluster,
    pub policy: &'c Policy,
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

    pub fn isolation(&self) -> Isolation {
        match (self.host_process, self.class) {
            (true, _) => Isolation::HostProcess,
            (false, Some(class)) => class.isolation(),
            (false, None) => Isolation::Process,
        }
    }
}

impl Decision {
    /// Whether some finding refuses the pod.
    #[must_use]
    pub fn denied(&self) -> bool {
        self.findings.iter().any(|f| f.action == RuleAction::Deny)
    }

    fn nothing(policy: &Policy) -> Self {
        Self {
            os: Verdict::Unknown,
            evidence: Vec::new(),
            findings: Vec::new(),
            changes: Vec::new(),
            notes: Vec::new(),
            policy: policy.name.clone(),
        }
    }
}

/// Decides about a pod or a pod template. Pure: the same question gets the same answer.
#[must_use]
pub fn decide(pod: &PodView<'_>, request: &Request<'_>, cluster: &Cluster, policy: &Policy) -> Decision {
    let mut decision = Decision::nothing(policy);
    let Some(spec) = &pod.spec else { return decision };
    if pod.is_mirror() {
        return decision;
    }
    let class = spec.runtime_class_name.as_deref().and_then(|name| cluster.class(name));
    let images = evidence::images(spec, policy);
    decision.evidence = evidence::gather(pod, class, &images, request, cluster, policy);
    decision.os = evidence::verdict(&decision.evidence);

    let mut case = Case {
        spec,
        request,
        cluster,
        policy,
        daemon_pod: pod.is_daemon_pod(),
        host_process: spec.host_process(),
        class,
        images: &images,
        evidence: &decision.evidence,
        os: decision.os,
        reach: Reach::default(),
    };
    if case.os == Verdict::Windows {
        case.reach = Reach::new(spec, class, &images, case.isolation(), cluster);
    }
    let found = if policy.exempts(request.namespace, service_account(spec)) {
        Vec::new()
    } else {
        rules::check(&case)
    };
    let (changes, notes) = match case.os {
        _ if request.subject == Subject::EphemeralContainers || case.in_conflict() => Default::default(),
        Verdict::Windows => (placement::place(&case), Vec::new()),
        Verdict::Linux | Verdict::Unknown => guard::guard(&case),
    };
    (decision.findings, decision.changes, decision.notes) = (found, changes, notes);
    decision.move_into_template(request.root);
    decision
}

impl Decision {
    fn move_into_template(&mut self, root: &str) {
        let into = |path: &mut String| {
            if path.starts_with("spec") {
                path.insert_str(0, root);
            }
        };
        self.evidence.iter_mut().for_each(|e| into(&mut e.path));
        self.findings.iter_mut().for_each(|f| into(&mut f.path));
    }
}

/// The service account whose pods may be exempt. Without a name it is the namespace's `default`.
fn service_account<'s>(spec: &'s Spec<'_>) -> &'s str {
    match text(&spec.service_account_name) {
        "" => "default",
        name => name,
    }
}

/// The OS that the nodes of a pod have for certain, by its selector, its affinity or its RuntimeClass.
pub(crate) fn pinned(evidence: &[Evidence]) -> Option<Os> {
    use evidence::Source::{NodeAffinity, NodeSelector, RuntimeClass};
    let pins = |e: &&Evidence| {
        e.strength == evidence::Strength::Strong
            && matches!(e.source, RuntimeClass | NodeSelector | NodeAffinity)
    };
    evidence.iter().find(pins).map(|e| e.os)
}

//! Step "decide": from a pod, what is asked about it and what is known of the cluster to the whole answer.

use std::borrow::Cow;

use bifold_crds::workload_policy::RuleAction;
use serde::Serialize;

use crate::{
    case::Case,
    cluster::{Cluster, Freshness},
    evidence::{self, Evidence, Verdict},
    guard,
    placed::Placed,
    placement,
    placement::Change,
    pod::{PodView, Spec, text},
    policy::Policy,
    question::{Request, Subject},
    reach::Reach,
    rules::{self, Finding},
};

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
    let placed = Placed::standing_in(pod);
    // Who knows nothing of the cluster cannot tell whether that is still right, and lets it stand as if it were the
    // author's.
    let (ours, kept) = match (request.subject, cluster.freshness()) {
        (Subject::DaemonSet, Freshness::Cold) => (Placed::default(), placed),
        (Subject::DaemonSet, _) => (placed, Placed::default()),
        _ => Default::default(),
    };
    let as_received = pod;
    let pod = if ours.is_empty() { Cow::Borrowed(pod) } else { Cow::Owned(ours.without(pod)) };
    let Some(spec) = &pod.spec else { return decision };
    if pod.is_mirror() {
        return decision;
    }
    let class = spec.runtime_class_name.as_deref().and_then(|name| cluster.class(name));
    let images = evidence::images(spec, policy);
    decision.evidence = evidence::gather(&pod, class, &images, request, cluster, policy);
    decision.os = evidence::verdict(&decision.evidence);

    let mut case = Case {
        spec,
        request,
        cluster,
        policy,
        ours: &ours,
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
    let (wanted, notes) = match case.os {
        _ if request.subject == Subject::EphemeralContainers || case.in_conflict() => Default::default(),
        Verdict::Windows => (placement::place(&case), Vec::new()),
        Verdict::Linux | Verdict::Unknown => guard::guard(&case),
    };
    let changes = match request.subject {
        Subject::DaemonSet => placement::settle(wanted, &ours, &kept, as_received),
        _ => wanted,
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

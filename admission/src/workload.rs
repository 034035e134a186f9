//! The pod templates of workloads: where each kind keeps its own.

use crate::question::Subject;

/// A kind that holds a pod, or is one.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its API group.
    pub group: &'static str,
    /// Its name.
    pub kind: &'static str,
    /// Where the pod is, as a list of fields; empty for a pod.
    pub template: &'static [&'static str],
    /// What stands before the paths of fields of the pod.
    pub root: &'static str,
    /// What a decision about it is about.
    pub subject: Subject,
}

/// Every kind that is looked at.
pub const KINDS: [Kind; 9] = [
    Kind { group: "", kind: "Pod", template: &[], root: "", subject: Subject::Pod },
    of("apps", "DaemonSet", Subject::DaemonSet),
    of("apps", "Deployment", Subject::Workload),
    of("apps", "StatefulSet", Subject::Workload),
    of("apps", "ReplicaSet", Subject::Workload),
    of("batch", "Job", Subject::Workload),
    of("", "ReplicationController", Subject::Workload),
    Kind {
        group: "batch",
        kind: "CronJob",
        template: &["spec", "jobTemplate", "spec", "template"],
        root: "spec.jobTemplate.spec.template.",
        subject: Subject::Workload,
    },
    Kind {
        group: "",
        kind: "PodTemplate",
        template: &["template"],
        root: "template.",
        subject: Subject::Workload,
    },
];

const fn of(group: &'static str, kind: &'static str, subject: Subject) -> Kind {
    Kind { group, kind, template: &["spec", "template"], root: "spec.template.", subject }
}

impl Kind {
    /// The kind of that group and name, if it is looked at.
    #[must_use]
    pub fn find(group: &str, kind: &str) -> Option<&'static Self> {
        KINDS.iter().find(|k| k.group == group && k.kind == kind)
    }

    /// The fields that lead to the `spec` of the pod.
    pub(crate) fn spec_path(&self) -> Vec<&'static str> {
        self.template.iter().copied().chain(["spec"]).collect()
    }
}

//! What a decision is asked.

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

//! Step "evidence": everything that says which OS a pod is for, each with its source.

mod images;
mod spec;

use bifold_crds::{
    keys,
    workload_policy::{Os, UnknownOs},
};
use serde::Serialize;

pub use images::{Image, images};

use crate::{
    cluster::{Cluster, RuntimeClass},
    linux_only,
    pod::PodView,
    policy::Policy,
    question::Request,
    shown::Shown,
};

/// How much a piece of evidence weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Strength {
    /// It may well be there by habit, such as a Linux security context that a chart gives to every pod.
    Weak,
    /// It decides where nothing strong speaks.
    Fair,
    /// The pod cannot run on the other OS. Two such facts that disagree are a conflict.
    Strong,
}

/// Where a piece of evidence was found. The order is that of trust among pieces of the same strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// `spec.os.name`.
    OsName,
    /// `spec.nodeName` of a Windows node.
    NodeName,
    /// The scheduling of its RuntimeClass, or a handler that makes Windows containers.
    RuntimeClass,
    /// `spec.nodeSelector`.
    NodeSelector,
    /// Required node affinity.
    NodeAffinity,
    /// `windowsOptions` of a security context.
    WindowsOptions,
    /// The annotation of the namespace.
    Namespace,
    /// An image pattern of the policy.
    PolicyImage,
    /// The name of a well-known Windows image.
    KnownImage,
    /// A field that means something on Linux only.
    LinuxField,
    /// `detection.unknown` of the policy.
    UnknownOs,
}

/// One fact that says which OS a pod is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The OS.
    pub os: Os,
    /// How much it weighs.
    pub strength: Strength,
    /// Where it was found.
    pub source: Source,
    /// The path of the field, such as `spec.os.name`.
    pub path: String,
    /// What the field says, escaped and cut.
    pub value: String,
}

/// Which OS a pod is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
    /// Nothing tells.
    Unknown,
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linux => keys::LINUX,
            Self::Windows => keys::WINDOWS,
            Self::Unknown => "unknown",
        }
    }
}

impl Evidence {
    fn new(os: Os, strength: Strength, source: Source, path: impl Into<String>, value: &str) -> Self {
        Self { os, strength, source, path: path.into(), value: Shown(value).to_string() }
    }

    /// `path=value`.
    #[must_use]
    pub fn summary(&self) -> String {
        if self.value.is_empty() { self.path.clone() } else { format!("{}={}", self.path, self.value) }
    }
}

/// Gathers all evidence, what decides first.
#[must_use]
pub fn gather(
    pod: &PodView<'_>,
    class: Option<&RuntimeClass>,
    images: &[Image<'_>],
    request: &Request<'_>,
    cluster: &Cluster,
    policy: &Policy,
) -> Vec<Evidence> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mut found = Vec::new();
    spec::os_name(spec, &mut found);
    // The node of a DaemonSet's pod was chosen by the controller and says nothing about the pod.
    let placed_by_controller = pod.is_daemon_pod();
    spec::node(spec, cluster.nodes(), placed_by_controller, &mut found);
    spec::class(spec, class, &mut found);
    spec::selector(spec, &mut found);
    spec::affinity(spec, &mut found);
    spec::windows_options(spec, &mut found);
    if let Some(os) = cluster.namespace(request.namespace).and_then(|n| n.os) {
        let path = format!("namespace annotation {}", keys::NAMESPACE_OS_ANNOTATION);
        found.push(Evidence::new(os, Strength::Fair, Source::Namespace, path, os.as_str()));
    }
    images::speak(images, &mut found);
    if let Some(path) = linux_only::set_in(spec).next() {
        found.push(Evidence::new(Os::Linux, Strength::Weak, Source::LinuxField, path, ""));
    }
    let assumed = match policy.unknown {
        UnknownOs::Linux => Some(Os::Linux),
        UnknownOs::Windows => Some(Os::Windows),
        UnknownOs::Guard | UnknownOs::Leave => None,
    };
    if let (true, Some(os)) = (found.is_empty(), assumed) {
        let path = "policy detection.unknown";
        found.push(Evidence::new(os, Strength::Fair, Source::UnknownOs, path, os.as_str()));
    }
    // Stable: pieces of one source stay in the order of the fields.
    found.sort_by_key(|e| (std::cmp::Reverse(e.strength), e.source));
    found
}

/// What the evidence comes to: the first piece decides.
#[must_use]
pub fn verdict(evidence: &[Evidence]) -> Verdict {
    match evidence.first().map(|e| e.os) {
        Some(Os::Linux) => Verdict::Linux,
        Some(Os::Windows) => Verdict::Windows,
        None => Verdict::Unknown,
    }
}

/// The strongest fact and the first strong one that contradicts it.
#[must_use]
pub fn conflict(evidence: &[Evidence]) -> Option<(&Evidence, &Evidence)> {
    let mut strong = evidence.iter().filter(|e| e.strength == Strength::Strong);
    let first = strong.next()?;
    strong.find(|e| e.os != first.os).map(|other| (first, other))
}

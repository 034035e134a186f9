//! Second step: raw objects into values that the plan can rely on. Nothing here fails: an object that says nothing
//! useful becomes a value that says so.

use std::collections::{BTreeMap, BTreeSet};

use bifold_crds::{WindowsBuild, WindowsNode, WindowsNodePool, WindowsVersion, conditions, keys};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{Node, Taint},
        node::v1::RuntimeClass,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};

use super::observe::Observed;

/// Everything that a plan may depend on.
pub struct World<'a> {
    /// By age, oldest first; those that are being deleted too.
    pub pools: Vec<&'a WindowsNodePool>,
    pub nodes: Vec<NodeFacts<'a>>,
    pub classes: BTreeMap<&'a str, &'a RuntimeClass>,
    pub agents: Agents,
}

/// What the agents report, by node.
pub type Agents = BTreeMap<String, AgentFacts>;

/// What one agent reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFacts {
    pub runtime_ready: bool,
    pub network_ready: bool,
    pub build: Option<WindowsBuild>,
}

/// One Windows node.
#[derive(Clone, Debug)]
pub struct NodeFacts<'a> {
    pub name: &'a str,
    pub uid: Option<&'a str>,
    pub version: Option<&'a str>,
    pub labels: &'a BTreeMap<String, String>,
    /// Keys of the labels that we hold by server-side apply.
    pub ours: BTreeSet<String>,
    pub taints: &'a [Taint],
    /// What we remembered on it; `None` where there is nothing that can be read.
    pub applied: Option<Applied>,
    /// Whether the annotation is there at all, readable or not.
    pub annotated: bool,
    /// The build that the kubelet reports.
    pub build: Option<WindowsBuild>,
    pub ready: bool,
    /// The pools that select it, the one it belongs to first. A pool that is being deleted claims nothing.
    pub claims: Vec<&'a WindowsNodePool>,
}

/// The annotation `bifold.dev/applied`: what we gave a node beyond its labels, which the API server keeps track of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    pub pool: String,
    /// Taints that we added. One that was there before is not ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<OwnTaint>,
}

/// A taint without the time that the API server adds to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OwnTaint {
    pub key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    pub effect: String,
}

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

impl<'a> World<'a> {
    pub fn new(observed: &'a Observed) -> Self {
        let mut pools: Vec<&WindowsNodePool> = observed.pools.iter().map(AsRef::as_ref).collect();
        pools.sort_by_key(|p| age(p));
        let nodes = observed.nodes.iter().map(|n| NodeFacts::of(n, &pools));
        let nodes = nodes.filter(NodeFacts::runs_windows).collect();
        Self {
            pools,
            nodes,
            classes: observed
                .classes
                .iter()
                .filter_map(|c| Some((c.metadata.name.as_deref()?, &**c)))
                .collect(),
            agents: observed.agents.iter().map(|a| (a.name_any(), AgentFacts::of(a))).collect(),
        }
    }
}

/// What a node that several pools select is decided by: the oldest first, then by name. One without a creation time
/// was never stored and counts as the youngest.
fn age(pool: &WindowsNodePool) -> (Timestamp, String) {
    let created = pool.metadata.creation_timestamp.as_ref().map_or(Timestamp::MAX, |t| t.0);
    (created, pool.name_any())
}

impl<'a> NodeFacts<'a> {
    /// `pools` by age, oldest first.
    pub fn of(node: &'a Node, pools: &[&'a WindowsNodePool]) -> Self {
        let status = node.status.as_ref();
        let info = status.and_then(|s| s.node_info.as_ref());
        let annotation = node.annotations().get(keys::APPLIED_ANNOTATION);
        let taints = node.spec.as_ref().and_then(|s| s.taints.as_deref()).unwrap_or_default();
        let mut facts = Self {
            name: node.metadata.name.as_deref().unwrap_or_default(),
            uid: node.metadata.uid.as_deref(),
            version: node.metadata.resource_version.as_deref(),
            labels: node.metadata.labels.as_ref().unwrap_or(&NO_LABELS),
            ours: owned_labels(&node.metadata),
            taints,
            applied: annotation.and_then(|json| serde_json::from_str(json).ok()),
            annotated: annotation.is_some(),
            build: info.and_then(|i| i.kernel_version.parse().ok()).map(|v: WindowsVersion| v.build),
            ready: status
                .and_then(|s| s.conditions.as_ref())
                .is_some_and(|c| c.iter().any(|c| c.type_ == "Ready" && c.status == "True")),
            claims: Vec::new(),
        };
        // A pool has no say over other nodes, whatever its selector asks for.
        if facts.runs_windows() {
            let living = pools.iter().filter(|p| p.metadata.deletion_timestamp.is_none());
            facts.claims = living.filter(|p| p.spec.selector.matches(facts.labels)).copied().collect();
        }
        facts
    }

    /// The pool that it belongs to.
    pub fn owner(&self) -> Option<&'a WindowsNodePool> {
        self.claims.first().copied()
    }

    pub fn runs_windows(&self) -> bool {
        self.labels.get(keys::OS_LABEL).is_some_and(|os| os == keys::WINDOWS)
    }

    /// The pool that configured it last.
    pub fn marked_for(&self) -> Option<&str> {
        let label = || self.labels.get(keys::POOL_LABEL).filter(|_| self.ours.contains(keys::POOL_LABEL));
        self.applied.as_ref().map(|a| a.pool.as_str()).or_else(|| label().map(String::as_str))
    }

    /// What is known of its build, the kubelet's word first.
    pub fn known_build(&self, agents: &Agents) -> Option<WindowsBuild> {
        let agent = || agents.get(self.name).and_then(|a| a.build);
        let label = || self.labels.get(keys::WINDOWS_BUILD_LABEL).and_then(|b| b.parse().ok());
        self.build.or_else(agent).or_else(label)
    }
}

impl AgentFacts {
    fn of(node: &WindowsNode) -> Self {
        let Some(status) = &node.status else { return Self::default() };
        let holds = |kind| conditions::holds(&status.conditions, kind);
        Self {
            runtime_ready: holds(conditions::kind::RUNTIME_READY),
            network_ready: holds(conditions::kind::NETWORK_READY),
            build: status.host.as_ref().and_then(|h| h.build.parse().ok()),
        }
    }
}

impl OwnTaint {
    pub fn of(taint: &Taint) -> Self {
        let (key, effect) = (taint.key.clone(), taint.effect.clone());
        Self { key, value: taint.value.clone().unwrap_or_default(), effect }
    }

    pub fn to_taint(&self) -> Taint {
        Taint {
            key: self.key.clone(),
            value: Some(self.value.clone()).filter(|v| !v.is_empty()),
            effect: self.effect.clone(),
            time_added: None,
        }
    }

    /// The API server keeps at most one taint of a key and an effect.
    pub fn same_slot(&self, taint: &Taint) -> bool {
        self.key == taint.key && self.effect == taint.effect
    }
}

/// The keys of the labels that our field manager holds by server-side apply.
fn owned_labels(metadata: &ObjectMeta) -> BTreeSet<String> {
    let ours = metadata.managed_fields.iter().flatten().filter(|m| {
        m.manager.as_deref() == Some(keys::OPERATOR_FIELD_MANAGER)
            && m.operation.as_deref() == Some("Apply")
            && m.subresource.as_deref().unwrap_or_default().is_empty()
    });
    ours.filter_map(|m| m.fields_v1.as_ref()?.0.get("f:metadata")?.get("f:labels")?.as_object())
        .flat_map(|labels| labels.keys().filter_map(|k| k.strip_prefix("f:")))
        .map(str::to_owned)
        .collect()
}

//! Which pool a node belongs to, what that pool wants there, and what has to be written for it.

use std::{collections::BTreeMap, fmt};

use bifold_crds::{
    WindowsNodePool, keys,
    node_pool::{TaintEffect, Topology},
};
use k8s_openapi::api::core::v1::Taint;
use kube::ResourceExt as _;

use super::taints;
use crate::pools::validate::{Agents, Applied, NodeFacts, OwnTaint};

/// What a pool wants on one of its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Want {
    pub pool: String,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<OwnTaint>,
    /// The start-up taint is among the taints.
    pub awaits_agent: bool,
}

/// What has to be written on a node. Both parts can be made on their own, in any order, again and again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// The node that was seen, and its version.
    pub uid: Option<String>,
    pub version: Option<String>,
    pub labels: Option<LabelChange>,
    pub taints: Option<TaintChange>,
}

/// The labels that we hold from now on; what we held and is not among them goes.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelChange {
    pub labels: BTreeMap<String, String>,
    /// A wrong `windows-build` of another manager is among them: the only label that is taken from somebody, because
    /// it is no opinion but a fact that the kubelet reports.
    pub correct_build: bool,
}

/// The taints as they have to be, with our memory of them, in one write.
#[derive(Clone, Debug, PartialEq)]
pub struct TaintChange {
    pub taints: Vec<Taint>,
    /// `None` removes the annotation.
    pub applied: Option<Applied>,
}

/// Something on a node that the pool asks for and another owner has with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub node: String,
    pub what: HeldField,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldField {
    Label { key: String, value: String },
    Taint { key: String, value: String, effect: String },
}

/// What the pool that a node belongs to wants there; `None`: nothing of ours, because there is no such pool, or
/// because the node does not run the build that the pool asks for.
pub fn want(node: &NodeFacts<'_>, agents: &Agents) -> Option<Want> {
    let pool = node.owner()?;
    if pool.spec.build.is_some() && node.known_build(agents) != pool.spec.build {
        return None;
    }
    let mut labels = pool.spec.labels.clone();
    labels.insert(keys::POOL_LABEL.to_owned(), pool.name_any());
    if let Some(build) = build_label(node, agents) {
        labels.insert(keys::WINDOWS_BUILD_LABEL.to_owned(), build);
    }
    let mut taints: Vec<OwnTaint> = pool.spec.taints.iter().map(taints::of_pool).collect();
    let awaits_agent = pool.spec.require_agent && !agent_ready(node.name, pool, agents);
    if awaits_agent {
        let effect = TaintEffect::NoSchedule.as_str().to_owned();
        taints.push(OwnTaint { key: keys::AGENT_NOT_READY_TAINT.to_owned(), value: String::new(), effect });
    }
    Some(Want { pool: pool.name_any(), labels, taints, awaits_agent })
}

/// The `windows-build` that the node should show. The label is no evidence for itself.
fn build_label(node: &NodeFacts<'_>, agents: &Agents) -> Option<String> {
    let reported = node.build.or_else(|| agents.get(node.name).and_then(|a| a.build));
    // A report that is empty for a moment does not take back what an earlier one gave.
    let ours = || {
        node.labels.get(keys::WINDOWS_BUILD_LABEL).filter(|_| node.ours.contains(keys::WINDOWS_BUILD_LABEL))
    };
    reported.map(|b| b.to_string()).or_else(|| ours().cloned())
}

fn agent_ready(node: &str, pool: &WindowsNodePool, agents: &Agents) -> bool {
    let networked = pool.spec.network.topology != Topology::Unmanaged;
    agents.get(node).is_some_and(|a| a.runtime_ready && (a.network_ready || !networked))
}

/// What has to be written so that the node carries what is wanted, and of ours nothing else.
pub fn change(node: &NodeFacts<'_>, want: Option<&Want>) -> Change {
    Change {
        uid: node.uid.map(str::to_owned),
        version: node.version.map(str::to_owned),
        labels: label_change(node, want),
        taints: taints::change(node, want),
    }
}

fn label_change(node: &NodeFacts<'_>, want: Option<&Want>) -> Option<LabelChange> {
    let wanted = want.map(|w| &w.labels);
    let correct_build =
        wanted.and_then(|w| w.get(keys::WINDOWS_BUILD_LABEL)).is_some_and(|b| wrong_build(node, b));
    // What is there with the right value needs no owner; what is there with another value has one.
    let ours = |key: &String| {
        node.ours.contains(key)
            || !node.labels.contains_key(key)
            || (key == keys::WINDOWS_BUILD_LABEL && correct_build)
    };
    let labels: BTreeMap<String, String> =
        wanted.into_iter().flatten().filter(|(k, _)| ours(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
    let settled = labels.keys().eq(&node.ours) && labels.iter().all(|(k, v)| node.labels.get(k) == Some(v));
    (!settled).then_some(LabelChange { labels, correct_build })
}

fn wrong_build(node: &NodeFacts<'_>, build: &str) -> bool {
    let there = node.labels.get(keys::WINDOWS_BUILD_LABEL);
    there.is_some_and(|l| l != build) && !node.ours.contains(keys::WINDOWS_BUILD_LABEL)
}

/// What the pool asks for and does not get, because somebody else has it with another value.
pub fn held(node: &NodeFacts<'_>, want: &Want) -> Vec<Held> {
    let labels = want.labels.iter().filter_map(|(key, wanted)| {
        let value = node.labels.get(key)?;
        let foreign = value != wanted && !node.ours.contains(key) && key != keys::WINDOWS_BUILD_LABEL;
        foreign.then(|| HeldField::Label { key: key.clone(), value: value.clone() })
    });
    let taints = taints::held(node, want).map(|t| {
        let OwnTaint { key, value, effect } = OwnTaint::of(t);
        HeldField::Taint { key, value, effect }
    });
    labels.chain(taints).map(|what| Held { node: node.name.to_owned(), what }).collect()
}

impl Change {
    pub fn is_empty(&self) -> bool {
        self.labels.is_none() && self.taints.is_none()
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            HeldField::Label { key, value } => write!(f, "label {key}={value} on node {}", self.node),
            HeldField::Taint { key, value, effect } => {
                write!(f, "taint {key}={value}:{effect} on node {}", self.node)
            }
        }
    }
}

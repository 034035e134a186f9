//! Small builders, and a model of the API server that keeps labels, taints and classes as the real one does.

use std::{collections::BTreeMap, sync::Arc};

use bifold_crds::{
    LabelSelector, WindowsNode, WindowsNodePool, WindowsNodePoolSpec, WindowsNodeSpec, WindowsNodeStatus,
    conditions::{Observation, kind},
    keys,
    node_pool::{PoolTaint, TaintEffect},
    windows_node::HostFacts,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint},
        node::v1::RuntimeClass,
    },
    apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, Time},
};
use kube::ResourceExt as _;
use serde_json::json;

use super::{
    observe::Observed,
    plan::{
        self, Finalizer, Plan,
        classes::ClassStep,
        nodes::{self, Change},
    },
    validate::{NodeFacts, World},
};

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A pool that selects `agentpool=<name>`, with the default taint and no classes.
pub fn pool(name: &str) -> WindowsNodePool {
    let spec: WindowsNodePoolSpec = serde_json::from_value(json!({
        "selector": { "matchLabels": { "agentpool": name } }, "runtimeClasses": [],
    }))
    .unwrap();
    let mut pool = WindowsNodePool::new(name, spec);
    pool.metadata.uid = Some(format!("uid-{name}"));
    pool.metadata.generation = Some(1);
    pool.metadata.creation_timestamp = Some(Time(at(0)));
    pool.metadata.finalizers = Some(vec![keys::POOL_FINALIZER.to_owned()]);
    pool
}

/// What the builders change on a pool.
pub trait PoolExt: Sized {
    fn spec(self, change: impl FnOnce(&mut WindowsNodePoolSpec)) -> Self;
    fn created(self, second: i64) -> Self;
    fn deleting(self) -> Self;

    fn selects_all(self) -> Self {
        self.spec(|s| s.selector = LabelSelector::default())
    }

    fn build(self, build: &str) -> Self {
        self.spec(|s| s.build = Some(build.parse().unwrap()))
    }

    fn taints(self, taints: &[&str]) -> Self {
        self.spec(|s| s.taints = taints.iter().map(|t| pool_taint(t)).collect())
    }

    fn labels(self, pairs: &[(&str, &str)]) -> Self {
        self.spec(|s| s.labels = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    fn default_classes(self) -> Self {
        self.spec(|s| s.runtime_classes = None)
    }

    fn require_agent(self) -> Self {
        self.spec(|s| s.require_agent = true)
    }
}

impl PoolExt for WindowsNodePool {
    fn spec(mut self, change: impl FnOnce(&mut WindowsNodePoolSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    fn created(mut self, second: i64) -> Self {
        self.metadata.creation_timestamp = Some(Time(at(second)));
        self
    }

    fn deleting(mut self) -> Self {
        self.metadata.deletion_timestamp = Some(Time(at(99)));
        self
    }
}

/// A node of Windows Server 2022 in the agent pool, without the label of its build.
pub fn node(name: &str, agentpool: &str) -> Node {
    let mut node = Node::default();
    node.metadata.name = Some(name.to_owned());
    node.metadata.uid = Some(format!("uid-{name}"));
    node.metadata.resource_version = Some("1".to_owned());
    let labels = [("agentpool", agentpool), (keys::OS_LABEL, keys::WINDOWS), (keys::ARCH_LABEL, "amd64")];
    node.metadata.labels = Some(labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    node.spec = Some(NodeSpec::default());
    let ready = NodeCondition { type_: "Ready".into(), status: "True".into(), ..Default::default() };
    let node_info = NodeSystemInfo { kernel_version: "10.0.20348.2700".into(), ..Default::default() };
    node.status =
        Some(NodeStatus { conditions: Some(vec![ready]), node_info: Some(node_info), ..Default::default() });
    node
}

pub trait NodeExt: Sized {
    fn label(self, key: &str, value: &str) -> Self;
    fn taint(self, taint: &str) -> Self;
    fn kernel(self, version: &str) -> Self;
}

impl NodeExt for Node {
    fn label(mut self, key: &str, value: &str) -> Self {
        self.labels_mut().insert(key.to_owned(), value.to_owned());
        self
    }

    fn taint(mut self, text: &str) -> Self {
        let list = self.spec.get_or_insert_default().taints.get_or_insert_default();
        list.push(taint(text));
        self
    }

    fn kernel(mut self, version: &str) -> Self {
        let info = self.status.get_or_insert_default().node_info.get_or_insert_default();
        version.clone_into(&mut info.kernel_version);
        self
    }
}

/// `key=value:Effect`
pub fn taint(text: &str) -> Taint {
    let (pair, effect) = text.rsplit_once(':').unwrap();
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let value = Some(value.to_owned()).filter(|v| !v.is_empty());
    Taint { key: key.to_owned(), value, effect: effect.to_owned(), time_added: None }
}

fn pool_taint(text: &str) -> PoolTaint {
    let Taint { key, value, effect, .. } = taint(text);
    let effects = [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];
    let effect = effects.into_iter().find(|e| e.as_str() == effect).unwrap();
    PoolTaint { key, value: value.unwrap_or_default(), effect }
}

/// What the agent of a node reports.
pub fn agent(node: &str, runtime: bool, build: Option<&str>) -> WindowsNode {
    let ready = Observation {
        kind: kind::RUNTIME_READY,
        holds: Some(runtime),
        reason: "Test",
        message: String::new(),
    };
    let host = build.map(|b| HostFacts { build: b.to_owned(), ..HostFacts::default() });
    let mut agent = WindowsNode::new(node, WindowsNodeSpec::default());
    agent.status =
        Some(WindowsNodeStatus { host, conditions: vec![ready.at(None, at(0))], ..Default::default() });
    agent
}

/// The objects of a cluster, and what the API server does with writes to them.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub pools: BTreeMap<String, WindowsNodePool>,
    pub nodes: BTreeMap<String, Node>,
    pub classes: BTreeMap<String, RuntimeClass>,
    pub agents: BTreeMap<String, WindowsNode>,
}

impl Model {
    pub fn of(
        pools: impl IntoIterator<Item = WindowsNodePool>,
        nodes: impl IntoIterator<Item = Node>,
    ) -> Self {
        Self {
            pools: pools.into_iter().map(|p| (p.name_any(), p)).collect(),
            nodes: nodes.into_iter().map(|n| (n.name_any(), n)).collect(),
            ..Self::default()
        }
    }

    pub fn observed(&self) -> Observed {
        Observed {
            pools: self.pools.values().cloned().map(Arc::new).collect(),
            nodes: self.nodes.values().cloned().map(Arc::new).collect(),
            classes: self.classes.values().cloned().map(Arc::new).collect(),
            agents: self.agents.values().cloned().map(Arc::new).collect(),
        }
    }

    pub fn plan(&self, pool: &str) -> Plan {
        plan::plan(&self.pools[pool], &World::new(&self.observed()))
    }

    /// One pass over a pool.
    pub fn pass(&mut self, pool: &str) -> Plan {
        let plan = self.plan(pool);
        for step in &plan.nodes {
            self.write_node(&step.name, &step.change);
        }
        for step in &plan.classes {
            self.write_class(step);
        }
        if plan.finalizer == Finalizer::Remove {
            self.pools.remove(pool);
        }
        plan
    }

    /// Passes over all pools until there is nothing left to do.
    pub fn settle(&mut self) {
        for _ in 0..10 {
            let names: Vec<String> = self.pools.keys().cloned().collect();
            let passes: Vec<Plan> = names.iter().map(|name| self.pass(name)).collect();
            let quiet =
                |p: &Plan| p.nodes.is_empty() && p.classes.is_empty() && p.finalizer == Finalizer::Keep;
            if passes.iter().all(quiet) {
                return;
            }
        }
        panic!("the operator writes for ever");
    }

    pub fn release_node(&mut self, name: &str) {
        let change = nodes::change(&NodeFacts::of(&self.nodes[name].clone(), &[]), None);
        self.write_node(name, &change);
    }

    fn write_node(&mut self, name: &str, change: &Change) {
        let node = self.nodes.get_mut(name).unwrap();
        if let Some(taints) = &change.taints {
            let list = Some(taints.taints.clone()).filter(|t| !t.is_empty());
            let slots: Vec<_> = list.iter().flatten().map(|t| (t.key.clone(), t.effect.clone())).collect();
            let distinct: std::collections::BTreeSet<_> = slots.iter().collect();
            assert_eq!(slots.len(), distinct.len(), "the API server refuses two taints in one slot");
            node.spec.get_or_insert_default().taints = list;
            let annotations = node.annotations_mut();
            match &taints.applied {
                Some(applied) => {
                    let json = serde_json::to_string(applied).unwrap();
                    annotations.insert(keys::APPLIED_ANNOTATION.to_owned(), json);
                }
                None => drop(annotations.remove(keys::APPLIED_ANNOTATION)),
            }
        }
        if let Some(labels) = &change.labels {
            let ours = owned(node);
            for (key, value) in &labels.labels {
                let taken = node.labels().get(key).is_some_and(|v| v != value) && !ours.contains(key);
                assert!(!taken || labels.correct_build, "the API server refuses: {key} is held by another");
                assert!(!taken || key == keys::WINDOWS_BUILD_LABEL, "{key} is taken by force");
            }
            // A label that somebody else has set as well stays; the model gives labels one owner.
            for key in ours.iter().filter(|k| !labels.labels.contains_key(*k)) {
                node.labels_mut().remove(key);
            }
            node.labels_mut().extend(labels.labels.clone());
            own(node, labels.labels.keys());
        }
    }

    fn write_class(&mut self, step: &ClassStep) {
        match step {
            ClassStep::Create(class) => {
                assert!(self.classes.insert(step.name(), class.clone()).is_none(), "AlreadyExists");
            }
            ClassStep::Update(class) => {
                let old = self.classes.insert(step.name(), class.clone()).unwrap();
                assert_eq!(old.handler, class.handler, "the handler is immutable");
            }
            ClassStep::Replace { new, .. } => {
                self.classes.insert(step.name(), (**new).clone()).unwrap();
            }
            ClassStep::Delete(_) => {
                self.classes.remove(&step.name()).unwrap();
            }
        }
    }

    /// Somebody else sets a label, and so holds it.
    pub fn someone_labels(&mut self, node: &str, key: &str, value: &str) {
        let node = self.nodes.get_mut(node).unwrap();
        let mut ours = owned(node);
        ours.remove(key);
        node.labels_mut().insert(key.to_owned(), value.to_owned());
        own(node, ours.iter());
    }

    pub fn taints(&self, node: &str) -> Vec<String> {
        Self::taints_of(&self.nodes[node])
    }

    pub fn taints_of(node: &Node) -> Vec<String> {
        let taints = node.spec.iter().flat_map(|s| s.taints.iter().flatten());
        taints.map(|t| format!("{}={}:{}", t.key, t.value.as_deref().unwrap_or_default(), t.effect)).collect()
    }

    pub fn label(&self, node: &str, key: &str) -> Option<&str> {
        self.nodes[node].labels().get(key).map(String::as_str)
    }
}

fn owned(node: &Node) -> std::collections::BTreeSet<String> {
    NodeFacts::of(node, &[]).ours
}

fn own<'k>(node: &mut Node, labels: impl Iterator<Item = &'k String>) {
    let labels: serde_json::Map<_, _> = labels.map(|k| (format!("f:{k}"), json!({}))).collect();
    node.metadata.managed_fields = (!labels.is_empty()).then(|| {
        vec![ManagedFieldsEntry {
            manager: Some(keys::OPERATOR_FIELD_MANAGER.to_owned()),
            operation: Some("Apply".to_owned()),
            fields_v1: Some(FieldsV1(json!({ "f:metadata": { "f:labels": labels } }))),
            ..ManagedFieldsEntry::default()
        }]
    });
}

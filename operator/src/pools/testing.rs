//! Small builders of pools, nodes and agents.

mod model;

use bifold_crds::{
    LabelSelector, WindowsNode, WindowsNodePool, WindowsNodePoolSpec, WindowsNodeSpec, WindowsNodeStatus,
    conditions::{Observation, kind},
    keys,
    node_pool::{PoolTaint, TaintEffect},
    windows_node::HostFacts,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt as _;
use serde_json::json;

pub use self::model::Model;

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

//! First step: what is there, from the caches. A cache whose first list has not ended means nothing and is waited for.

use std::sync::Arc;

use bifold_crds::{WindowsNode, WindowsNodePool, keys};
use k8s_openapi::api::{core::v1::Node, node::v1::RuntimeClass};
use kube::{
    ResourceExt as _,
    runtime::reflector::{Store, store::WriterDropped},
};

/// The caches of the watches.
#[derive(Clone)]
pub struct Caches {
    pub pools: Store<WindowsNodePool>,
    pub nodes: Store<Node>,
    pub classes: Store<RuntimeClass>,
    pub agents: Store<WindowsNode>,
}

/// The objects as they were at one moment.
#[derive(Clone, Default)]
pub struct Observed {
    pub pools: Vec<Arc<WindowsNodePool>>,
    pub nodes: Vec<Arc<Node>>,
    pub classes: Vec<Arc<RuntimeClass>>,
    pub agents: Vec<Arc<WindowsNode>>,
}

impl Caches {
    pub async fn observe(&self) -> Result<Observed, WriterDropped> {
        self.pools.wait_until_ready().await?;
        self.nodes.wait_until_ready().await?;
        self.classes.wait_until_ready().await?;
        self.agents.wait_until_ready().await?;
        Ok(Observed {
            pools: self.pools.state(),
            nodes: self.nodes.state(),
            classes: self.classes.state(),
            agents: self.agents.state(),
        })
    }
}

/// Drops what no step reads before it reaches the cache: of a node 5 to 20 KiB, most of it images.
pub fn trim_node(node: &mut Node) {
    node.managed_fields_mut().retain(|m| m.manager.as_deref() == Some(keys::OPERATOR_FIELD_MANAGER));
    node.annotations_mut().retain(|key, _| key == keys::APPLIED_ANNOTATION);
    if let Some(spec) = &mut node.spec {
        let taints = spec.taints.take();
        *spec = k8s_openapi::api::core::v1::NodeSpec { taints, ..Default::default() };
    }
    if let Some(status) = &mut node.status {
        let node_info = status.node_info.take();
        let conditions = status.conditions.take().map(|mut conditions| {
            conditions.retain(|c| c.type_ == "Ready");
            conditions
        });
        *status = k8s_openapi::api::core::v1::NodeStatus { node_info, conditions, ..Default::default() };
    }
}

/// An agent's report fills kilobytes with networks and routes; the operator reads its conditions and the build.
pub fn trim_agent(node: &mut WindowsNode) {
    node.managed_fields_mut().clear();
    if let Some(status) = &mut node.status {
        let (host, conditions) = (status.host.take(), std::mem::take(&mut status.conditions));
        *status = bifold_crds::WindowsNodeStatus { host, conditions, ..Default::default() };
    }
}

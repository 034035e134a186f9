//! Looking at pods and at the nodes they were put on.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bifold_crds::keys;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use super::Context;
use super::context::PATIENCE;
use crate::wait::Look;

/// The builds that run process-isolated containers of Windows Server 2022: its own and its successor's. Written down, not
/// asked of Bifold's own table, which is what stories judge.
pub const BUILDS_FOR_LTSC2022: [&str; 2] = ["10.0.20348", "10.0.26100"];

/// A pod, and the node that the scheduler (or the DaemonSet controller) chose for it.
#[derive(Debug)]
pub struct Placed {
    /// The pod, as last seen.
    pub pod: Pod,
    /// Its node.
    pub node: Node,
}

impl Context {
    /// The pods of a label selector in the story's namespace, except those being deleted.
    pub async fn pods(&self, selector: &str) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut listed = pods.list(&ListParams::default().labels(selector)).await?.items;
        listed.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(listed)
    }

    /// Waits until exactly `count` pods of a selector are all as `check` wants them; it says what is wrong otherwise.
    pub async fn pods_that(
        &self,
        selector: &str,
        count: usize,
        limit: Duration,
        check: impl Fn(&Pod) -> Result<(), String>,
    ) -> Result<Vec<Pod>> {
        let check = &check;
        self.wait_for(&format!("{count} pods of {selector}"), limit, || async move {
            let pods = self.pods(selector).await?;
            let complaints =
                pods.iter().filter_map(|pod| Some(format!("{}: {}", pod.name_any(), check(pod).err()?)));
            let complaints: Vec<String> = complaints.collect();
            Ok(if pods.len() == count && complaints.is_empty() {
                Look::Done(pods)
            } else {
                Look::NotYet(format!("{} pods; {}", pods.len(), complaints.join("; ")))
            })
        })
        .await
    }

    /// Waits until exactly `count` pods of a selector are bound to nodes, whatever becomes of them there.
    pub async fn bound(&self, selector: &str, count: usize) -> Result<Vec<Placed>> {
        let bound = |pod: &Pod| match node_name(pod) {
            Some(_) => Ok(()),
            None => Err(unschedulable(pod).unwrap_or_else(|| "no node".to_owned())),
        };
        self.with_nodes(self.pods_that(selector, count, PATIENCE, bound).await?).await
    }

    /// Waits until exactly `count` pods of a selector are bound to nodes and Running there.
    ///
    /// Running means something on `linux-1` only; on a simulated node it follows from being bound.
    pub async fn placed(&self, selector: &str, count: usize) -> Result<Vec<Placed>> {
        let running = |pod: &Pod| {
            let node =
                node_name(pod).ok_or_else(|| unschedulable(pod).unwrap_or_else(|| "no node".to_owned()))?;
            let status = pod.status.as_ref();
            match status.and_then(|status| status.phase.as_deref()) {
                Some("Running" | "Succeeded") => Ok(()),
                phase => Err(format!("{} on {node}", phase.unwrap_or("no phase"))),
            }
        };
        self.with_nodes(self.pods_that(selector, count, PATIENCE, running).await?).await
    }

    async fn with_nodes(&self, pods: Vec<Pod>) -> Result<Vec<Placed>> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let mut placed = Vec::new();
        for pod in pods {
            let name = node_name(&pod).context("a bound pod without a node")?.to_owned();
            placed.push(Placed { node: nodes.get(&name).await?, pod });
        }
        Ok(placed)
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (os, build) = (os_of(&self.node), build_of(&self.node));
        write!(f, "pod {} on {} ({os} {build})", self.pod.name_any(), self.node.name_any())
    }
}

/// The node that a pod is bound to.
#[must_use]
pub fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Why the scheduler has found no node for a pod, once it has tried.
#[must_use]
pub fn unschedulable(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let failed = |condition: &&PodCondition| condition.type_ == "PodScheduled" && condition.status == "False";
    conditions.iter().find(failed)?.message.clone()
}

/// The operating system that a node's kubelet reports: `linux` or `windows`.
#[must_use]
pub fn os_of(node: &Node) -> &str {
    node.labels().get(keys::OS_LABEL).map_or("", String::as_str)
}

/// The Windows build that a node's kernel has, `10.0.<build>`; empty for Linux. Not from the label, which may be what
/// a story is about.
#[must_use]
pub fn build_of(node: &Node) -> &str {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    let kernel =
        info.filter(|_| os_of(node) == keys::WINDOWS).map_or("", |info| info.kernel_version.as_str());
    kernel.rsplit_once('.').map_or("", |(build, _)| build)
}

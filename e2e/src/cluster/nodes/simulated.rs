//! Simulated Windows nodes: objects that look as a Windows kubelet's would, kept alive by kwok.
//!
//! They show where pods are placed, and at what scale. They do not show that a pod would run: kwok reports every pod
//! that is bound to them as running and lacks the kubelet's own checks, so what counts is `spec.nodeName`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use bifold_crds::keys;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use crate::cluster::layout::Layout;
use crate::cluster::supervisor::{Part, client as supervisor};
use crate::tools::{Tools, built};

/// The annotation by which kwok knows its nodes.
const SELECTOR: (&str, &str) = ("kwok.x-k8s.io/node", "fake");
const STAGES: &str = include_str!("stages.yaml");

/// A simulated Windows node; everything that a test may want to be different is a field.
#[derive(Debug, Clone)]
pub struct SimulatedNode {
    /// The node's name; by custom it begins with `fake-`.
    pub name: String,
    /// `10.0.<build>.<revision>`, as the kubelet reports it.
    pub kernel_version: String,
    /// The product's name, as the kubelet reports it.
    pub os_image: String,
    /// Whether the kubelet has set `node.kubernetes.io/windows-build`; kubelets before 1.14 and some providers do not.
    pub build_label: bool,
    /// Labels besides those that a kubelet sets.
    pub labels: BTreeMap<String, String>,
    /// The node's taints.
    pub taints: Vec<Taint>,
    /// Allocatable processors.
    pub cpus: u32,
    /// Allocatable memory in GiB.
    pub memory_gib: u32,
}

/// A row of the table below: a pool of equal nodes.
struct Pool {
    prefix: &'static str,
    count: usize,
    kernel_version: &'static str,
    os_image: &'static str,
    agentpool: &'static str,
    taint: Option<(&'static str, &'static str)>,
    cpus: u32,
    memory_gib: u32,
}

/// The Windows nodes of every cluster: three builds, in three dialects of keeping Linux pods away.
///
/// The pool without a taint has by far the most room, so that whatever nothing else decides lands there: the scheduler
/// prefers the emptiest node.
const POOLS: [Pool; 3] = [
    Pool {
        prefix: "fake-win2019",
        count: 2,
        kernel_version: "10.0.17763.6532",
        os_image: "Windows Server 2019 Datacenter",
        agentpool: "win19",
        taint: None,
        cpus: 64,
        memory_gib: 256,
    },
    Pool {
        prefix: "fake-win2022",
        count: 2,
        kernel_version: "10.0.20348.2762",
        os_image: "Windows Server 2022 Datacenter",
        agentpool: "win22",
        taint: Some(("os", "windows")),
        cpus: 8,
        memory_gib: 32,
    },
    Pool {
        prefix: "fake-win2025",
        count: 2,
        kernel_version: "10.0.26100.2314",
        os_image: "Windows Server 2025 Datacenter",
        agentpool: "win25",
        taint: Some(("node.kubernetes.io/os", "windows")),
        cpus: 8,
        memory_gib: 32,
    },
];

/// What a healthy kubelet reports: type, status, reason.
const CONDITIONS: [(&str, &str, &str); 4] = [
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
];

impl SimulatedNode {
    /// A node of Windows Server 2022 with the labels that its kubelet sets and no taint.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kernel_version: "10.0.20348.2762".to_owned(),
            os_image: "Windows Server 2022 Datacenter".to_owned(),
            build_label: true,
            labels: BTreeMap::new(),
            taints: Vec::new(),
            cpus: 8,
            memory_gib: 32,
        }
    }

    /// Makes the node, as its kubelet would register it, Ready from the first moment.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn create(&self, client: &Client) -> Result<Node> {
        let nodes: Api<Node> = Api::all(client.clone());
        let node = nodes.create(&PostParams::default(), &self.object()?).await;
        node.with_context(|| format!("create simulated node {}", self.name))
    }

    /// `10.0.<build>`, what the label says.
    fn build(&self) -> &str {
        self.kernel_version.rsplit_once('.').map_or(&self.kernel_version, |(build, _)| build)
    }

    fn object(&self) -> Result<Node> {
        let mut labels = self.labels.clone();
        let own = [
            (keys::OS_LABEL, keys::WINDOWS),
            (keys::LEGACY_OS_LABEL, keys::WINDOWS),
            (keys::ARCH_LABEL, "amd64"),
            ("beta.kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", &self.name),
        ];
        labels.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
        if self.build_label {
            labels.insert(keys::WINDOWS_BUILD_LABEL.to_owned(), self.build().to_owned());
        }
        Ok(serde_json::from_value(json!({
            "metadata": {"name": self.name, "labels": labels, "annotations": {SELECTOR.0: SELECTOR.1}},
            "spec": {"taints": self.taints},
            "status": self.status()?,
        }))?)
    }

    fn status(&self) -> Result<serde_json::Value> {
        let room = json!({
            "cpu": self.cpus.to_string(),
            "memory": format!("{}Gi", self.memory_gib),
            "ephemeral-storage": "200Gi",
            "pods": "110",
        });
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let condition = |(kind, status, reason): (&str, &str, &str)| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": "simulated",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            })
        };
        let version = Tools::kubernetes_version()?;
        Ok(json!({
            "phase": "Running",
            "capacity": room,
            "allocatable": room,
            "addresses": [
                {"type": "InternalIP", "address": self.address()},
                {"type": "Hostname", "address": self.name},
            ],
            "conditions": CONDITIONS.map(condition),
            "nodeInfo": {
                "operatingSystem": keys::WINDOWS,
                "architecture": "amd64",
                "osImage": self.os_image,
                "kernelVersion": self.kernel_version,
                "kubeletVersion": version,
                "kubeProxyVersion": version,
                "containerRuntimeVersion": "containerd://1.7.24",
                "machineID": self.name,
                "systemUUID": self.name,
                "bootID": "1",
            },
        }))
    }

    /// An address that nothing answers: from the range for benchmarks, chosen by the name.
    fn address(&self) -> String {
        let hash = ring::digest::digest(&ring::digest::SHA256, self.name.as_bytes());
        let bytes = hash.as_ref();
        format!("198.{}.{}.{}", 18 + (bytes[0] & 1), bytes[1], bytes[2].max(1))
    }
}

/// The nodes that every cluster has.
#[must_use]
pub fn standard() -> Vec<SimulatedNode> {
    let nodes = POOLS.iter().flat_map(|pool| (1..=pool.count).map(|number| pool.node(number)));
    nodes.collect()
}

/// Starts kwok and makes the standard nodes.
pub(crate) async fn start(layout: &Layout, tools: &Tools, client: &Client) -> Result<()> {
    let stages = layout.path("conf/kwok-stages.yaml");
    std::fs::write(&stages, STAGES)?;
    let args = [
        format!("--kubeconfig={}", layout.kubeconfig().display()),
        format!("--config={}", stages.display()),
        format!("--manage-nodes-with-annotation-selector={}={}", SELECTOR.0, SELECTOR.1),
        "--node-lease-duration-seconds=40".to_owned(),
    ];
    supervisor::run(layout, Part::new("kwok", built(tools.kwok())?, args)).await?;
    for node in standard() {
        node.create(client).await?;
    }
    Ok(())
}

impl Pool {
    fn node(&self, number: usize) -> SimulatedNode {
        let taint = |(key, value): (&str, &str)| Taint {
            key: key.to_owned(),
            value: Some(value.to_owned()),
            effect: "NoSchedule".to_owned(),
            time_added: None,
        };
        SimulatedNode {
            kernel_version: self.kernel_version.to_owned(),
            os_image: self.os_image.to_owned(),
            labels: BTreeMap::from([("agentpool".to_owned(), self.agentpool.to_owned())]),
            taints: self.taint.map(taint).into_iter().collect(),
            cpus: self.cpus,
            memory_gib: self.memory_gib,
            ..SimulatedNode::named(&format!("{}-{number}", self.prefix))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_is_the_kernel_version_without_its_revision() {
        assert_eq!(SimulatedNode::named("n").build(), "10.0.20348");
    }

    #[test]
    fn the_nodes_without_a_taint_have_the_most_room() {
        let (open, tainted): (Vec<_>, Vec<_>) =
            standard().into_iter().partition(|node| node.taints.is_empty());
        assert_eq!((open.len(), tainted.len()), (2, 4));
        let smallest = open.iter().map(|node| node.cpus).min();
        assert!(smallest > tainted.iter().map(|node| node.cpus).max());
    }
}

//! Windows nodes, reduced to what a decision needs and grouped by it.
//!
//! Thousands of nodes have a handful of shapes: they differ in their names and host names only. Decisions look at
//! shapes, and at single nodes only for a pod that names one.

use std::{collections::BTreeMap, sync::Arc};

use bifold_crds::{WindowsBuild, WindowsVersion, keys};
use k8s_openapi::api::core::v1::Node;
use serde::Serialize;

/// The label by which pods choose one node. Kept apart from the others, since it is what makes nodes differ.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

/// A taint that keeps pods off a node (`NoSchedule` or `NoExecute`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value, which may be empty.
    pub value: String,
    /// Its effect.
    pub effect: String,
}

/// A Windows node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowsNode {
    /// Its name.
    pub name: String,
    /// Its host name, where that is not its name.
    pub hostname: Option<String>,
    /// Everything else.
    pub shape: Shape,
}

/// All that matters of a node but its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Shape {
    /// Its build, from its label or else from what its kernel says.
    pub build: Option<WindowsBuild>,
    /// Its taints that keep pods off.
    pub taints: Vec<Taint>,
    /// Its labels, without the host name.
    pub labels: BTreeMap<String, String>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
}

/// One node among [`Nodes`].
#[derive(Clone, Debug)]
pub struct Member {
    /// What it has in common with others.
    pub shape: Arc<Shape>,
    hostname: Option<Box<str>>,
}

/// All Windows nodes.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    members: BTreeMap<Arc<str>, Member>,
    /// How many nodes have each shape.
    shapes: BTreeMap<Arc<Shape>, usize>,
}

impl Taint {
    /// Whether it is there to tell operating systems apart, in any of the dialects in use.
    #[must_use]
    pub fn is_about_os(&self) -> bool {
        keys::OS_TAINT_KEYS.iter().any(|key| key.eq_ignore_ascii_case(&self.key))
            || self.value.eq_ignore_ascii_case(keys::WINDOWS)
    }

    /// Whether it says how the node is doing and will go by itself.
    #[must_use]
    pub fn is_condition(&self) -> bool {
        const CONDITIONS: [&str; 8] = [
            "not-ready",
            "unreachable",
            "unschedulable",
            "memory-pressure",
            "disk-pressure",
            "pid-pressure",
            "network-unavailable",
            "out-of-service",
        ];
        match self.key.split_once('/') {
            Some(("node.kubernetes.io", name)) => CONDITIONS.contains(&name),
            Some(("node.cloudprovider.kubernetes.io", _)) => true,
            _ => {
                self.key == keys::AGENT_NOT_READY_TAINT
                    || ["ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"]
                        .contains(&self.key.as_str())
            }
        }
    }
}

impl WindowsNode {
    /// What is needed of a Node; `None` if it is no Windows node.
    #[must_use]
    pub fn of(node: Node) -> Option<Self> {
        let name = node.metadata.name?;
        let mut labels = node.metadata.labels.unwrap_or_default();
        if labels.get(keys::OS_LABEL).is_none_or(|os| os != keys::WINDOWS) {
            return None;
        }
        let spec = node.spec.unwrap_or_default();
        let kernel =
            || node.status?.node_info?.kernel_version.parse::<WindowsVersion>().ok().map(|v| v.build);
        let build = labels.get(keys::WINDOWS_BUILD_LABEL).and_then(|b| b.parse().ok()).or_else(kernel);
        let hostname = labels.remove(HOSTNAME_LABEL).filter(|hostname| *hostname != name);
        let mut taints: Vec<Taint> = spec
            .taints
            .unwrap_or_default()
            .into_iter()
            .filter(|t| t.effect == "NoSchedule" || t.effect == "NoExecute")
            .map(|t| Taint { key: t.key, value: t.value.unwrap_or_default(), effect: t.effect })
            .collect();
        taints.sort();
        let unschedulable = spec.unschedulable.unwrap_or(false);
        Some(Self { name, hostname, shape: Shape { build, taints, labels, unschedulable } })
    }
}

impl Member {
    /// The host name of the node called `name`.
    #[must_use]
    pub fn hostname<'m>(&'m self, name: &'m str) -> &'m str {
        self.hostname.as_deref().unwrap_or(name)
    }
}

impl Nodes {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The node of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.members.get(name)
    }

    /// All nodes, by name.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Member)> {
        self.members.iter().map(|(name, member)| (&**name, member))
    }

    /// The shapes that nodes have, always in the same order.
    pub fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.shapes.keys().map(|shape| &**shape)
    }

    pub(crate) fn contains(&self, node: &WindowsNode) -> bool {
        self.members
            .get(node.name.as_str())
            .is_some_and(|m| *m.shape == node.shape && m.hostname.as_deref() == node.hostname.as_deref())
    }

    pub(crate) fn put(&mut self, node: WindowsNode) -> bool {
        self.remove(&node.name);
        let shape = match self.shapes.get_key_value(&node.shape) {
            Some((shape, _)) => shape.clone(),
            None => Arc::new(node.shape),
        };
        *self.shapes.entry(shape.clone()).or_default() += 1;
        let member = Member { shape, hostname: node.hostname.map(Into::into) };
        self.members.insert(node.name.into(), member);
        true
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let Some(member) = self.members.remove(name) else { return };
        if let Some(count) = self.shapes.get_mut(&member.shape) {
            *count -= 1;
            if *count == 0 {
                self.shapes.remove(&member.shape);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, labels: &serde_json::Value) -> WindowsNode {
        let mut all = json!({ "kubernetes.io/os": "windows", "kubernetes.io/hostname": name });
        all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
        let node = json!({ "metadata": { "name": name, "labels": all } });
        WindowsNode::of(serde_json::from_value(node).unwrap()).unwrap()
    }

    #[test]
    fn a_node_is_reduced_to_its_build_labels_and_hard_taints() {
        let node = json!({
            "metadata": { "name": "w1", "labels": {
                "kubernetes.io/os": "windows", "kubernetes.io/hostname": "W1", "zone": "a" } },
            "spec": { "unschedulable": true, "taints": [
                { "key": "os", "value": "windows", "effect": "NoSchedule" },
                { "key": "soft", "effect": "PreferNoSchedule" },
                { "key": "bare", "effect": "NoExecute" } ] },
            "status": { "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "10.0.20348.2700",
                "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "windows",
                "osImage": "", "systemUUID": "" } }
        });
        let node = WindowsNode::of(serde_json::from_value(node).unwrap()).unwrap();
        assert_eq!(node.hostname.as_deref(), Some("W1"));
        assert_eq!(node.shape.build, Some(WindowsBuild::WS2022));
        assert!(node.shape.unschedulable);
        assert_eq!(node.shape.taints.iter().map(|t| t.key.as_str()).collect::<Vec<_>>(), ["bare", "os"]);
        assert_eq!(node.shape.labels.len(), 2);
    }

    #[test]
    fn a_linux_node_is_none() {
        let node = json!({ "metadata": { "name": "l1", "labels": { "kubernetes.io/os": "linux" } } });
        assert_eq!(WindowsNode::of(serde_json::from_value(node).unwrap()), None);
    }

    #[test]
    fn nodes_that_differ_in_name_only_share_a_shape_and_the_last_takes_it_away() {
        let mut nodes = Nodes::default();
        for name in ["w1", "w2", "w3"] {
            nodes.put(node(name, &json!({})));
        }
        nodes.put(node("w3", &json!({ "zone": "b" })));
        assert_eq!((nodes.len(), nodes.shapes().count()), (3, 2));
        nodes.remove("w3");
        nodes.remove("w3");
        assert_eq!((nodes.len(), nodes.shapes().count()), (2, 1));
        assert_eq!(nodes.get("w1").map(|m| m.hostname("w1")), Some("w1"));
    }

    #[test]
    fn every_dialect_of_os_taints_is_known_and_team_and_condition_taints_are_not() {
        let taint = |key: &str, value: &str| Taint {
            key: key.into(),
            value: value.into(),
            effect: "NoSchedule".into(),
        };
        for (key, value) in [
            ("os", "windows"),
            ("os", "Windows"),
            ("OS", "Windows"),
            ("node.kubernetes.io/os", "windows"),
            ("node.kubernetes.io/os", "win1809"),
            ("kubernetes.io/os", "windows"),
            ("sku", "windows"),
            ("windows", "true"),
        ] {
            assert!(taint(key, value).is_about_os() && !taint(key, value).is_condition(), "{key}={value}");
        }
        for (key, value, condition) in [
            ("team", "web", false),
            ("node.kubernetes.io/not-ready", "", true),
            ("node.cloudprovider.kubernetes.io/uninitialized", "true", true),
            ("bifold.dev/agent-not-ready", "", true),
            ("nvidia.com/gpu", "present", false),
        ] {
            assert!(!taint(key, value).is_about_os(), "{key}={value}");
            assert_eq!(taint(key, value).is_condition(), condition, "{key}");
        }
    }
}

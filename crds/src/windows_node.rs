//! `WindowsNode`: what is wanted of one Windows host, and what its agent found there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::node_pool::Topology;

/// What is wanted of the host. Written by the operator.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "bifold.dev",
    version = "v1alpha1",
    kind = "WindowsNode",
    plural = "windowsnodes",
    shortname = "wn",
    category = "bifold",
    status = "WindowsNodeStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "One Windows host, named as its Node: the network that the operator wants there, and what the host's agent reports.",
    printcolumn(name = "Pool", type_ = "string", json_path = ".spec.pool"),
    printcolumn(name = "Build", type_ = "string", json_path = ".status.host.build"),
    printcolumn(name = "Revision", type_ = "integer", json_path = ".status.host.revision", priority = 1),
    printcolumn(
        name = "Runtime",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="RuntimeReady")].status"#
    ),
    printcolumn(
        name = "Network",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="NetworkReady")].status"#
    ),
    printcolumn(
        name = "Stats",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="StatsReady")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WindowsNodeSpec {
    /// The pool that the node belongs to.
    #[schemars(length(max = 63))]
    #[serde(default)]
    pub pool: String,
    /// The network that is wanted on the host.
    #[serde(default)]
    pub network: HostNetwork,
}

/// The network that is wanted on a host.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.topology == 'Unmanaged' || size(self.podCIDRs) > 0").message("podCIDRs must be given for every topology but Unmanaged"))]
pub struct HostNetwork {
    /// The topology of the node's pool.
    #[serde(default)]
    pub topology: Topology,
    /// The ranges that the host's pods get their addresses from, as in the Node's `spec.podCIDRs`.
    #[schemars(length(max = 2), inner(length(max = 43)))]
    #[x_kube(validation = Rule::new("self.all(c, isCIDR(c))").message("every entry must be a CIDR, such as 10.244.3.0/24"))]
    #[serde(default, rename = "podCIDRs")]
    pub pod_cidrs: Vec<String>,
}

/// What the host's agent found. Written by the agent.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WindowsNodeStatus {
    /// The `metadata.generation` that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The version of the agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent_version: String,
    /// The Windows installation of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostFacts>,
    /// The container runtime of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeFacts>,
    /// The networks of the Host Networking Service (HNS).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub hns_networks: Vec<HnsNetwork>,
    /// Routes to pod ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// CNI configuration files, in the order in which the runtime reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["path".into()]))]
    pub cni_files: Vec<CniFile>,
    /// The last measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_stats: Option<NodeStats>,
    /// Conditions: `RuntimeReady`, `NetworkReady`, `StatsReady`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// The Windows installation of a host (registry `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`).
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HostFacts {
    /// The build, `10.0.<number>`.
    pub build: String,
    /// The revision (UBR), which cumulative updates raise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// `ProductName`, such as `Windows Server 2022 Datacenter`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub product: String,
    /// `EditionID`, such as `ServerDatacenter`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub edition: String,
    /// `InstallationType`, such as `Server Core`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installation_type: String,
}

/// The container runtime of a host.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeFacts {
    /// Its name as the CRI reports it, such as `containerd`.
    pub name: String,
    /// Its version as the CRI reports it.
    pub version: String,
    /// The CRI endpoint, such as `npipe:////./pipe/containerd-containerd`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub endpoint: String,
    /// Its runtime handlers, such as `runhcs-wcow-process`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handlers: Vec<String>,
}

/// A network of the Host Networking Service.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HnsNetwork {
    /// The GUID that HNS gave it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its type, such as `L2Bridge`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Its address prefixes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
}

/// A route of the host.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The destination prefix.
    pub destination: String,
    /// The address of the next hop.
    pub next_hop: String,
}

/// A CNI configuration file.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CniFile {
    /// Its path on the host.
    pub path: String,
    /// The `name` in it: the HNS network that its plugin uses.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub network: String,
    /// The `type` in it: the plugin.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
}

/// One measurement of a host.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodeStats {
    /// When it was taken.
    pub time: Time,
    /// Processor time used since boot, in nanoseconds, over all processors.
    pub cpu_usage_nano_seconds: i64,
    /// Committed memory, in bytes.
    pub memory_commit_bytes: i64,
    /// Physical memory that is available, in bytes.
    pub memory_available_bytes: i64,
}

//! `WindowsNodePool`: Windows nodes that are configured alike.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Condition};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LabelSelector, WindowsBuild, keys, schema};

/// Which nodes belong to the pool and what they and their RuntimeClasses look like.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "bifold.dev",
    version = "v1alpha1",
    kind = "WindowsNodePool",
    plural = "windowsnodepools",
    shortname = "wnp",
    category = "bifold",
    status = "WindowsNodePoolStatus",
    derive = "PartialEq",
    doc = "Windows nodes that are configured alike: their label, taints, extra labels and RuntimeClasses.",
    validation = Rule::new("size(self.metadata.name) <= 63").message("the name becomes a label value on nodes and must not be longer than 63 characters"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes", description = "Nodes of the pool"),
    printcolumn(name = "Ready Nodes", type_ = "integer", json_path = ".status.readyNodes", description = "Nodes of the pool that are Ready"),
    printcolumn(name = "Builds", type_ = "string", json_path = ".status.builds[*].build", description = "Windows builds of the nodes"),
    printcolumn(name = "Reason", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].reason"#, priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WindowsNodePoolSpec {
    /// Which nodes belong to the pool. `kubernetes.io/os=windows` is implied and cannot be lifted; `{}` selects every
    /// Windows node. A node that two pools select belongs to the older pool.
    #[x_kube(validation = Rule::new("!has(self.matchLabels) || !('kubernetes.io/os' in self.matchLabels) || self.matchLabels['kubernetes.io/os'] == 'windows'")
        .message("matchLabels asks for a kubernetes.io/os other than windows; a pool selects Windows nodes only"))]
    #[x_kube(validation = Rule::new("!has(self.matchExpressions) || self.matchExpressions.all(e, e.key != 'kubernetes.io/os' || (e.operator == 'In' ? has(e.values) && 'windows' in e.values : e.operator == 'NotIn' ? !has(e.values) || !('windows' in e.values) : e.operator == 'Exists'))")
        .message("matchExpressions excludes kubernetes.io/os=windows; a pool selects Windows nodes only"))]
    pub selector: LabelSelector,
    /// The Windows build that the nodes are expected to run, as `10.0.<number>`. Selected nodes of another build are
    /// reported in the status and not configured. Unset: any build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<WindowsBuild>,
    /// Taints that every node of the pool carries, so that only pods for Windows are scheduled there. `[]` for none.
    /// A taint that is on the node already is left as it is.
    // Atomic, unlike the other lists of named things: a server-side apply merges into a map-like list what it does not
    // own, and nobody owns a default, so the default taint would stay beside those that replace it.
    #[serde(default = "default_taints")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[x_kube(validation = Rule::new("self.all(a, self.exists_one(b, a.key == b.key && a.effect == b.effect))")
        .message("two taints have the same key and effect; a node can have only one of them"))]
    pub taints: Vec<PoolTaint>,
    /// Extra labels for every node of the pool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    #[x_kube(validation = Rule::new(schema::LABEL_KEYS).message(schema::LABEL_KEYS_MESSAGE))]
    #[x_kube(validation = Rule::new("self.all(k, !k.startsWith('bifold.dev/') && !(k in ['kubernetes.io/os', 'kubernetes.io/arch', 'kubernetes.io/hostname', 'beta.kubernetes.io/os', 'beta.kubernetes.io/arch', 'node.kubernetes.io/windows-build']))")
        .message("labels must not set keys that the kubelet or Bifold owns: kubernetes.io/os, kubernetes.io/arch, kubernetes.io/hostname, node.kubernetes.io/windows-build and bifold.dev/*"))]
    pub labels: BTreeMap<String, String>,
    /// RuntimeClasses that the operator makes for pods of this pool. Unset: one process-isolated class for each build
    /// of the pool, named `windows-<number>`. `[]` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub runtime_classes: Option<Vec<PoolRuntimeClass>>,
    /// How the pods of these nodes are connected.
    #[serde(default)]
    pub network: PoolNetwork,
    /// Whether a node is kept free of pods, by a start-up taint, until the agent on its host reports ready.
    #[serde(default)]
    pub require_agent: bool,
}

/// A taint of the pool's nodes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolTaint {
    /// The key of the taint.
    #[schemars(length(min = 1, max = 316))]
    #[x_kube(validation = Rule::new(schema::LABEL_KEY).message(schema::LABEL_KEY_MESSAGE))]
    #[x_kube(validation = Rule::new("!self.startsWith('bifold.dev/') && !(self in ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable', 'node.kubernetes.io/unschedulable', 'node.kubernetes.io/memory-pressure', 'node.kubernetes.io/disk-pressure', 'node.kubernetes.io/pid-pressure', 'node.kubernetes.io/network-unavailable', 'node.kubernetes.io/out-of-service', 'node.cloudprovider.kubernetes.io/uninitialized', 'node.cloudprovider.kubernetes.io/shutdown'])")
        .message("key belongs to Kubernetes or to Bifold, which set and remove that taint themselves"))]
    pub key: String,
    /// The value of the taint.
    #[serde(default)]
    #[schemars(schema_with = "schema::label_value")]
    pub value: String,
    /// What happens to pods that do not tolerate the taint.
    pub effect: TaintEffect,
}

/// What happens to pods that do not tolerate a taint (`core/v1 Taint.effect`).
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// They are not scheduled to the node.
    NoSchedule,
    /// The scheduler tries to avoid the node.
    PreferNoSchedule,
    /// They are not scheduled to the node, and evicted from it.
    NoExecute,
}

/// A RuntimeClass that the operator makes. Its `scheduling` is derived from the pool: os, arch, build and taints.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolRuntimeClass {
    /// The name of the RuntimeClass. One that exists and is not the operator's is never touched.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new(r"self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')")
        .message("must be a DNS subdomain: lower-case letters, digits, '-' and '.'"))]
    pub name: String,
    /// The handler in the container runtime's configuration, such as `runhcs-wcow-process` or `runhcs-wcow-hypervisor`.
    #[serde(default = "default_handler")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("must be a DNS label: lower-case letters, digits and '-'"))]
    pub handler: String,
    /// What a pod of this class costs beyond its containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<ClassOverhead>,
}

/// Resources that a pod of a RuntimeClass costs beyond its containers (`node.k8s.io/v1 Overhead`).
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClassOverhead {
    /// The fixed overhead of one pod, such as `{memory: 512Mi, cpu: 100m}`.
    #[schemars(schema_with = "schema::quantities")]
    pub pod_fixed: BTreeMap<String, Quantity>,
}

/// How the pods of a pool's nodes are connected.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolNetwork {
    /// The topology. `Unmanaged` leaves the network to whoever made it.
    #[serde(default)]
    pub topology: Topology,
}

/// How packets get from a pod on one node to a pod on another.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Topology {
    /// Bifold touches no network.
    #[default]
    Unmanaged,
    /// The physical router knows a route to every node's pod CIDR.
    UpstreamL3,
    /// Every host knows a route to every other node's pod CIDR.
    HostGateway,
    /// VXLAN between hosts.
    Overlay,
    /// OVN's logical switches.
    Ovn,
}

/// What the operator saw and did last.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WindowsNodePoolStatus {
    /// The `metadata.generation` that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many nodes belong to the pool.
    #[serde(default)]
    pub nodes: i32,
    /// How many of them are Ready.
    #[serde(default)]
    pub ready_nodes: i32,
    /// The Windows builds of the pool's nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["build".into()]))]
    pub builds: Vec<BuildCount>,
    /// The RuntimeClasses of the pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub runtime_classes: Vec<RuntimeClassState>,
    /// Conditions: `Ready`, `NodesConfigured`, `RuntimeClassesReady`, `AgentsReady`, `Conflicted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// How many nodes run one build.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BuildCount {
    /// The build, `10.0.<number>`.
    pub build: String,
    /// The Windows Server release of that build, where it is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub product: String,
    /// How many nodes of the pool run it.
    pub nodes: i32,
}

/// One RuntimeClass of the pool.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeClassState {
    /// The name of the RuntimeClass.
    pub name: String,
    /// Its handler.
    pub handler: String,
    /// Whether the class exists as the pool describes it.
    pub ready: bool,
}

fn default_taints() -> Vec<PoolTaint> {
    vec![PoolTaint { key: "os".to_owned(), value: "windows".to_owned(), effect: TaintEffect::NoSchedule }]
}

fn default_handler() -> String {
    keys::PROCESS_HANDLER.to_owned()
}

impl TaintEffect {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

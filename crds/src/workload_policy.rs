//! `WindowsWorkloadPolicy`: how pods are recognised, placed and checked, namespace by namespace.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LabelSelector, WindowsBuild};

/// How the pods of the selected namespaces are recognised, placed and checked.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "bifold.dev",
    version = "v1alpha1",
    kind = "WindowsWorkloadPolicy",
    plural = "windowsworkloadpolicies",
    shortname = "wwp",
    category = "bifold",
    status = "WindowsWorkloadPolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "How pods are recognised as Windows pods, placed and checked, for the namespaces it selects. The matching policy with the highest priority applies, whole; without one the built-in defaults do.",
    printcolumn(name = "Priority", type_ = "integer", json_path = ".spec.priority"),
    printcolumn(
        name = "Namespaces",
        type_ = "integer",
        json_path = ".status.namespaces",
        description = "Namespaces that the policy governs"
    ),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Accepted")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Accepted")].reason"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WindowsWorkloadPolicySpec {
    /// Of the policies that select a namespace the one with the highest priority applies; ties go to the older one.
    #[schemars(range(min = -1_000_000, max = 1_000_000))]
    #[serde(default)]
    pub priority: i32,
    /// The namespaces that the policy is for. `{}` selects every namespace.
    #[serde(default)]
    pub namespace_selector: LabelSelector,
    /// How the OS of a pod is found where its spec does not say it.
    #[serde(default)]
    pub detection: Detection,
    /// What is written into Windows pods so that they land right.
    #[serde(default)]
    pub placement: PlacementPolicy,
    /// The action of each rule, by rule id; a rule that is not named keeps its default. An id that this version does
    /// not know is passed over and reported in the status, so that a newer policy survives an older operator.
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new("self.all(k, k.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$'))")
        .message("a rule id is kebab-case, such as secret-volume"))]
    #[serde(default)]
    pub rules: BTreeMap<String, RuleAction>,
    /// Pods that no rule applies to. They are still placed.
    #[schemars(length(max = 64))]
    #[serde(default)]
    pub exempt: Vec<Exemption>,
}

/// How the OS of a pod is found where its spec does not say it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Detection {
    /// Patterns of image references, looked at in this order and before the built-in ones.
    #[schemars(length(max = 128))]
    #[serde(default)]
    pub images: Vec<ImagePattern>,
    /// What is done with a pod whose OS nothing tells.
    #[serde(default)]
    pub unknown: UnknownOs,
}

/// What an image reference says about the OS.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.build) || self.os == 'windows'").message("build is only for images with os: windows"))]
pub struct ImagePattern {
    /// The image reference as written in pods; `*` stands for any characters, `/` and `:` included.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(r"self.matches('^[A-Za-z0-9*][-A-Za-z0-9._/:@*]*$')")
        .message("must be an image reference, with '*' for any characters"))]
    pub pattern: String,
    /// The OS of the images that match.
    pub os: Os,
    /// The Windows build of the images that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<WindowsBuild>,
}

/// An operating system of nodes and images.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
}

/// What is done with a pod whose OS nothing tells.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownOs {
    /// It is taken for a Linux pod where it could land on a Windows node, and kept off those.
    #[default]
    Guard,
    /// It is taken for a Linux pod.
    Linux,
    /// It is taken for a Windows pod.
    Windows,
    /// It is left alone.
    Leave,
}

/// What is written into Windows pods so that they land right.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementPolicy {
    /// How a Windows pod is brought to Windows nodes.
    pub mode: PlacementMode,
    /// Whether `spec.os.name` is written.
    pub set_os_name: SetOsName,
    /// Whether a pod with an image of a known build is kept to nodes that run it.
    pub match_build: bool,
}

impl Default for PlacementPolicy {
    fn default() -> Self {
        Self { mode: PlacementMode::default(), set_os_name: SetOsName::default(), match_build: true }
    }
}

/// How a Windows pod is brought to Windows nodes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementMode {
    /// By `nodeSelector` and tolerations.
    #[default]
    NodeSelector,
    /// By the RuntimeClass of a pool, which carries both.
    RuntimeClass,
}

/// Whether `spec.os.name` is written.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetOsName {
    /// Where the API server accepts the result: with it, 26 Linux fields become forbidden.
    #[default]
    WhenValid,
    /// Not.
    Never,
}

/// What happens when a rule fires.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleAction {
    /// Nothing.
    Allow,
    /// The pod is changed so that the rule holds, with a warning. A rule that cannot be fixed only warns.
    Fix,
    /// The pod is admitted with a warning.
    Warn,
    /// The pod is refused.
    Deny,
}

/// Pods that no rule applies to.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Exemption {
    /// The namespace of the pods.
    #[schemars(length(min = 1, max = 63), pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: String,
    /// The service account of the pods. Unset: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub service_account: Option<String>,
}

/// What the operator found out about the policy.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WindowsWorkloadPolicyStatus {
    /// The `metadata.generation` that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many namespaces the policy governs.
    #[serde(default)]
    pub namespaces: i32,
    /// Policies that come first in namespaces that this one selects too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadowed_by: Vec<String>,
    /// Ids in `spec.rules` that this version does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_rules: Vec<String>,
    /// Conditions: `Accepted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Os {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linux => crate::keys::LINUX,
            Self::Windows => crate::keys::WINDOWS,
        }
    }

    /// The OS of an API word such as `spec.os.name`.
    #[must_use]
    pub fn from_api(word: &str) -> Option<Self> {
        [Self::Linux, Self::Windows].into_iter().find(|os| os.as_str() == word)
    }
}

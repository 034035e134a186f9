//! The vocabulary of Bifold: its kinds, the keys and reasons it writes, and Windows builds.
//!
//! ```text
//! WindowsNodePool ──selects──▶ Node ◀──describes── WindowsNode
//!        │                      ▲
//!        └──makes──▶ RuntimeClass      WindowsWorkloadPolicy ──governs──▶ Namespace ──▶ Pod
//! ```
//!
//! Every other crate reads these types and nothing here reads anything: no client, clock, file or environment.

#![allow(clippy::duplicated_attributes, reason = "two printer columns of one kind may have the same type")]

pub mod conditions;
pub mod keys;
pub mod node_pool;
mod schema;
pub mod selector;
pub mod windows_build;
pub mod windows_node;
pub mod workload_policy;

pub use node_pool::{WindowsNodePool, WindowsNodePoolSpec, WindowsNodePoolStatus};
pub use selector::LabelSelector;
pub use windows_build::{Isolation, WindowsBuild, WindowsVersion};
pub use windows_node::{WindowsNode, WindowsNodeSpec, WindowsNodeStatus};
pub use workload_policy::{WindowsWorkloadPolicy, WindowsWorkloadPolicySpec, WindowsWorkloadPolicyStatus};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

/// The API group of every kind.
pub const GROUP: &str = "bifold.dev";

/// The definitions of all kinds, in the order in which they are documented.
#[must_use]
pub fn definitions() -> [CustomResourceDefinition; 3] {
    [WindowsNodePool::crd(), WindowsWorkloadPolicy::crd(), WindowsNode::crd()]
}

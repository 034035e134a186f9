//! What is known of the cluster: a snapshot that is filled one object at a time and read by every decision.
//!
//! Cloning it is cheap, and a change copies only the part that it is in. Nothing here depends on the order in which
//! objects arrive.

mod classes;
mod namespaces;
mod nodes;

use std::{collections::BTreeMap, sync::Arc};

use bifold_crds::WindowsWorkloadPolicy;
use serde::Serialize;

pub use classes::RuntimeClass;
pub use namespaces::Namespace;
pub use nodes::{Member, Nodes, Shape, Taint, WindowsNode};

use crate::policy::{Governing, Policy};

/// How far the snapshot can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Freshness {
    /// It has not been filled: nothing is known, and an empty list means nothing.
    #[default]
    Cold,
    /// It is what the API server says.
    Warm,
    /// It was; the API server has not been heard of for a while.
    Stale,
}

/// What is known of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    freshness: Freshness,
    nodes: Arc<Nodes>,
    classes: Arc<BTreeMap<String, Arc<RuntimeClass>>>,
    namespaces: Arc<BTreeMap<String, Arc<Namespace>>>,
    policies: Arc<Vec<Arc<Governing>>>,
    default_policy: Arc<Policy>,
}

impl Cluster {
    /// How far it can be trusted.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// Says how far it can be trusted.
    pub fn set_freshness(&mut self, freshness: Freshness) {
        self.freshness = freshness;
    }

    /// The Windows nodes.
    #[must_use]
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Puts a Windows node in, in place of the one of the same name. Says whether that changed anything.
    pub fn put_node(&mut self, node: WindowsNode) -> bool {
        !self.nodes.contains(&node) && Arc::make_mut(&mut self.nodes).put(node)
    }

    /// Takes a node out.
    pub fn remove_node(&mut self, name: &str) {
        if self.nodes.get(name).is_some() {
            Arc::make_mut(&mut self.nodes).remove(name);
        }
    }

    /// Puts exactly these Windows nodes in.
    pub fn replace_nodes(&mut self, nodes: impl IntoIterator<Item = WindowsNode>) {
        let mut fresh = Nodes::default();
        for node in nodes {
            fresh.put(node);
        }
        self.nodes = Arc::new(fresh);
    }

    /// The RuntimeClass of that name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&RuntimeClass> {
        self.classes.get(name).map(|class| &**class)
    }

    /// All RuntimeClasses, by name.
    #[must_use]
    pub fn classes(&self) -> impl ExactSizeIterator<Item = (&str, &RuntimeClass)> {
        self.classes.iter().map(|(name, class)| (name.as_str(), &**class))
    }

    /// Puts a RuntimeClass in.
    pub fn put_class(&mut self, name: impl Into<String>, class: RuntimeClass) {
        Arc::make_mut(&mut self.classes).insert(name.into(), Arc::new(class));
    }

    /// Takes a RuntimeClass out.
    pub fn remove_class(&mut self, name: &str) {
        Arc::make_mut(&mut self.classes).remove(name);
    }

    /// Puts exactly these RuntimeClasses in.
    pub fn replace_classes(&mut self, classes: impl IntoIterator<Item = (String, RuntimeClass)>) {
        self.classes = Arc::new(classes.into_iter().map(|(name, class)| (name, Arc::new(class))).collect());
    }

    /// The namespace of that name, if it is known.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.get(name).map(|namespace| &**namespace)
    }

    /// How many namespaces are known.
    #[must_use]
    pub fn namespace_count(&self) -> usize {
        self.namespaces.len()
    }

    /// Puts a namespace in.
    pub fn put_namespace(&mut self, name: impl Into<String>, namespace: Namespace) {
        Arc::make_mut(&mut self.namespaces).insert(name.into(), Arc::new(namespace));
    }

    /// Takes a namespace out.
    pub fn remove_namespace(&mut self, name: &str) {
        Arc::make_mut(&mut self.namespaces).remove(name);
    }

    /// Puts exactly these namespaces in.
    pub fn replace_namespaces(&mut self, namespaces: impl IntoIterator<Item = (String, Namespace)>) {
        self.namespaces = Arc::new(namespaces.into_iter().map(|(name, n)| (name, Arc::new(n))).collect());
    }

    /// How many policies are known.
    #[must_use]
    pub fn policy_count(&self) -> usize {
        self.policies.len()
    }

    /// Puts a policy in, in place of the one of the same name.
    pub fn put_policy(&mut self, policy: &WindowsWorkloadPolicy) {
        let governing = Governing::new(policy);
        let policies = Arc::make_mut(&mut self.policies);
        policies.retain(|p| p.name() != governing.name());
        let place = policies.partition_point(|p| p.comes_before(&governing));
        policies.insert(place, Arc::new(governing));
    }

    /// Takes a policy out.
    pub fn remove_policy(&mut self, name: &str) {
        Arc::make_mut(&mut self.policies).retain(|p| p.name() != name);
    }

    /// Takes out the policies that `keep` does not name.
    pub fn retain_policies(&mut self, keep: impl Fn(&str) -> bool) {
        Arc::make_mut(&mut self.policies).retain(|p| keep(p.name()));
    }

    /// Puts exactly these policies in.
    pub fn replace_policies<'p>(&mut self, policies: impl IntoIterator<Item = &'p WindowsWorkloadPolicy>) {
        self.policies = Arc::default();
        for policy in policies {
            self.put_policy(policy);
        }
    }

    /// The policy that governs a namespace: of those that select it the first, or the built-in defaults.
    #[must_use]
    pub fn policy_of(&self, namespace: &str) -> &Policy {
        if self.policies.is_empty() {
            return &self.default_policy;
        }
        let unknown;
        let labels = if let Some(known) = self.namespace(namespace) {
            &known.labels
        } else {
            unknown = Namespace::unknown(namespace);
            &unknown.labels
        };
        self.policies.iter().find(|p| p.selects(labels)).map_or(&self.default_policy, |p| p.policy())
    }
}

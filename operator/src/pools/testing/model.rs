//! A model of the API server that keeps labels, taints and classes as the real one does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bifold_crds::{WindowsNode, WindowsNodePool, keys};
use k8s_openapi::{
    api::{core::v1::Node, node::v1::RuntimeClass},
    apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry},
};
use kube::ResourceExt as _;
use serde_json::json;

use crate::pools::{
    observe::Observed,
    plan::{
        self, Finalizer, Plan,
        classes::ClassStep,
        nodes::{self, Change},
    },
    validate::{NodeFacts, World},
};

/// The objects of a cluster, and what the API server does with writes to them.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub pools: BTreeMap<String, WindowsNodePool>,
    pub nodes: BTreeMap<String, Node>,
    pub classes: BTreeMap<String, RuntimeClass>,
    pub agents: BTreeMap<String, WindowsNode>,
}

impl Model {
    pub fn of(
        pools: impl IntoIterator<Item = WindowsNodePool>,
        nodes: impl IntoIterator<Item = Node>,
    ) -> Self {
        Self {
            pools: pools.into_iter().map(|p| (p.name_any(), p)).collect(),
            nodes: nodes.into_iter().map(|n| (n.name_any(), n)).collect(),
            ..Self::default()
        }
    }

    pub fn observed(&self) -> Observed {
        Observed {
            pools: self.pools.values().cloned().map(Arc::new).collect(),
            nodes: self.nodes.values().cloned().map(Arc::new).collect(),
            classes: self.classes.values().cloned().map(Arc::new).collect(),
            agents: self.agents.values().cloned().map(Arc::new).collect(),
        }
    }

    pub fn plan(&self, pool: &str) -> Plan {
        plan::plan(&self.pools[pool], &World::new(&self.observed()))
    }

    /// One pass over a pool.
    pub fn pass(&mut self, pool: &str) -> Plan {
        let plan = self.plan(pool);
        for step in &plan.nodes {
            self.write_node(&step.name, &step.change);
        }
        for step in &plan.classes {
            self.write_class(step);
        }
        if plan.finalizer == Finalizer::Remove {
            self.pools.remove(pool);
        }
        plan
    }

    /// Passes over all pools until there is nothing left to do.
    pub fn settle(&mut self) {
        for _ in 0..10 {
            let names: Vec<String> = self.pools.keys().cloned().collect();
            let passes: Vec<Plan> = names.iter().map(|name| self.pass(name)).collect();
            let quiet =
                |p: &Plan| p.nodes.is_empty() && p.classes.is_empty() && p.finalizer == Finalizer::Keep;
            if passes.iter().all(quiet) {
                return;
            }
        }
        panic!("the operator writes for ever");
    }

    pub fn release_node(&mut self, name: &str) {
        let change = nodes::change(&NodeFacts::of(&self.nodes[name].clone(), &[]), None);
        self.write_node(name, &change);
    }

    fn write_node(&mut self, name: &str, change: &Change) {
        let node = self.nodes.get_mut(name).unwrap();
        if let Some(taints) = &change.taints {
            let list = Some(taints.taints.clone()).filter(|t| !t.is_empty());
            let slots: Vec<_> = list.iter().flatten().map(|t| (t.key.clone(), t.effect.clone())).collect();
            let distinct: BTreeSet<_> = slots.iter().collect();
            assert_eq!(slots.len(), distinct.len(), "the API server refuses two taints in one slot");
            node.spec.get_or_insert_default().taints = list;
            let annotations = node.annotations_mut();
            match &taints.applied {
                Some(applied) => {
                    let json = serde_json::to_string(applied).unwrap();
                    annotations.insert(keys::APPLIED_ANNOTATION.to_owned(), json);
                }
                None => drop(annotations.remove(keys::APPLIED_ANNOTATION)),
            }
        }
        if let Some(labels) = &change.labels {
            let ours = owned(node);
            for (key, value) in &labels.labels {
                let taken = node.labels().get(key).is_some_and(|v| v != value) && !ours.contains(key);
                assert!(!taken || labels.correct_build, "the API server refuses: {key} is held by another");
                assert!(!taken || key == keys::WINDOWS_BUILD_LABEL, "{key} is taken by force");
            }
            // A label that somebody else has set as well stays; the model gives labels one owner.
            for key in ours.iter().filter(|k| !labels.labels.contains_key(*k)) {
                node.labels_mut().remove(key);
            }
            node.labels_mut().extend(labels.labels.clone());
            own(node, labels.labels.keys());
        }
    }

    fn write_class(&mut self, step: &ClassStep) {
        match step {
            ClassStep::Create(class) => {
                assert!(self.classes.insert(step.name(), class.clone()).is_none(), "AlreadyExists");
            }
            ClassStep::Update(class) => {
                let old = self.classes.insert(step.name(), class.clone()).unwrap();
                assert_eq!(old.handler, class.handler, "the handler is immutable");
            }
            ClassStep::Replace { new, .. } => {
                self.classes.insert(step.name(), (**new).clone()).unwrap();
            }
            ClassStep::Delete(_) => {
                self.classes.remove(&step.name()).unwrap();
            }
        }
    }

    /// Somebody else sets a label, and so holds it.
    pub fn someone_labels(&mut self, node: &str, key: &str, value: &str) {
        let node = self.nodes.get_mut(node).unwrap();
        let mut ours = owned(node);
        ours.remove(key);
        node.labels_mut().insert(key.to_owned(), value.to_owned());
        own(node, ours.iter());
    }

    pub fn taints(&self, node: &str) -> Vec<String> {
        Self::taints_of(&self.nodes[node])
    }

    pub fn taints_of(node: &Node) -> Vec<String> {
        let taints = node.spec.iter().flat_map(|s| s.taints.iter().flatten());
        taints.map(|t| format!("{}={}:{}", t.key, t.value.as_deref().unwrap_or_default(), t.effect)).collect()
    }

    pub fn label(&self, node: &str, key: &str) -> Option<&str> {
        self.nodes[node].labels().get(key).map(String::as_str)
    }
}

fn owned(node: &Node) -> BTreeSet<String> {
    NodeFacts::of(node, &[]).ours
}

fn own<'k>(node: &mut Node, labels: impl Iterator<Item = &'k String>) {
    let labels: serde_json::Map<_, _> = labels.map(|k| (format!("f:{k}"), json!({}))).collect();
    node.metadata.managed_fields = (!labels.is_empty()).then(|| {
        vec![ManagedFieldsEntry {
            manager: Some(keys::OPERATOR_FIELD_MANAGER.to_owned()),
            operation: Some("Apply".to_owned()),
            fields_v1: Some(FieldsV1(json!({ "f:metadata": { "f:labels": labels } }))),
            ..ManagedFieldsEntry::default()
        }]
    });
}

//! Third step: what to write and what to say. Values in, a value out; it cannot fail, and asked again after its
//! writes have been made it has none left.

pub mod classes;
pub mod nodes;
mod quantity;
pub mod taints;

use std::collections::{BTreeMap, BTreeSet};

use bifold_crds::{WindowsBuild, WindowsNodePool, keys};
use kube::ResourceExt as _;

use self::{
    classes::{ClassStep, ClassVerdict},
    nodes::{Change, Held},
};
use super::validate::{NodeFacts, World};

/// What one pass over a pool writes, and what it found for the status.
#[derive(Debug, Default)]
pub struct Plan {
    pub nodes: Vec<NodeStep>,
    pub classes: Vec<ClassStep>,
    pub finalizer: Finalizer,
    pub findings: Findings,
}

/// One node that has to change.
#[derive(Debug, PartialEq)]
pub struct NodeStep {
    pub name: String,
    pub change: Change,
}

/// What has to happen to the pool's finalizer. It is there before the first write, and goes after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finalizer {
    #[default]
    Keep,
    Add,
    Remove,
}

/// What the status tells.
#[derive(Debug, Default, PartialEq)]
pub struct Findings {
    /// Nodes that belong to the pool and are configured, or will be by this plan.
    pub members: BTreeSet<String>,
    pub ready: usize,
    pub builds: BTreeMap<WindowsBuild, usize>,
    /// Members whose build nobody knows.
    pub unknown_build: BTreeSet<String>,
    /// Nodes of the pool that run another build than it asks for, or none that is known.
    pub other_build: BTreeMap<String, Option<WindowsBuild>>,
    /// Selected nodes that belong to older pools, by pool.
    pub lost_to: BTreeMap<String, BTreeSet<String>>,
    /// Nodes of the pool that younger pools select as well, by pool.
    pub contested_by: BTreeMap<String, BTreeSet<String>>,
    pub held: Vec<Held>,
    pub classes: Vec<ClassVerdict>,
    /// Members whose agent does not report ready, where the pool asks for that.
    pub agents_missing: BTreeSet<String>,
}

pub fn plan(pool: &WindowsNodePool, world: &World<'_>) -> Plan {
    let releasing = pool.metadata.deletion_timestamp.is_some();
    let has_finalizer = pool.finalizers().iter().any(|f| f == keys::POOL_FINALIZER);
    if releasing && !has_finalizer {
        return Plan::default();
    }
    let me = pool.name_any();
    let mut plan = Plan {
        finalizer: match (releasing, has_finalizer) {
            (true, _) => Finalizer::Remove,
            (false, false) => Finalizer::Add,
            (false, true) => Finalizer::Keep,
        },
        ..Plan::default()
    };
    for node in &world.nodes {
        let owner = node.owner();
        let mine = owner.is_some_and(|p| p.name_any() == me);
        if mine {
            plan.findings.count(node, world);
        } else if let Some(owner) = owner
            && node.claims.iter().any(|p| p.name_any() == me)
        {
            let lost = plan.findings.lost_to.entry(owner.name_any()).or_default();
            lost.insert(node.name.to_owned());
        }
        // A node that left goes back by our own hand, unless its new pool turns it over in one step. A pool that
        // is being deleted does not wait for that.
        let left = node.marked_for() == Some(&*me) && (owner.is_none() || releasing);
        if mine || left {
            let change = nodes::change(node, nodes::want(node, &world.agents).as_ref());
            if !change.is_empty() {
                plan.nodes.push(NodeStep { name: node.name.to_owned(), change });
            }
        }
    }
    let (steps, verdicts) = classes::plan(pool, world);
    plan.classes = steps;
    plan.findings.classes = verdicts;
    plan
}

impl Findings {
    fn count(&mut self, node: &NodeFacts<'_>, world: &World<'_>) {
        let name = || node.name.to_owned();
        for rival in node.claims.iter().skip(1) {
            self.contested_by.entry(rival.name_any()).or_default().insert(name());
        }
        let build = node.known_build(&world.agents);
        let Some(want) = nodes::want(node, &world.agents) else {
            self.other_build.insert(name(), build);
            return;
        };
        self.members.insert(name());
        self.ready += usize::from(node.ready);
        match build {
            Some(build) => *self.builds.entry(build).or_default() += 1,
            None => {
                self.unknown_build.insert(name());
            }
        }
        if want.awaits_agent {
            self.agents_missing.insert(name());
        }
        self.held.extend(nodes::held(node, &want));
    }
}

#[cfg(test)]
mod tests;

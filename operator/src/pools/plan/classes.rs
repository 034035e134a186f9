//! Which RuntimeClasses a pool describes, and what has to happen to those that are there.

use std::collections::{BTreeMap, BTreeSet};

use bifold_crds::{WindowsBuild, WindowsNodePool, keys, node_pool::PoolRuntimeClass};
use k8s_openapi::api::{
    core::v1::Toleration,
    node::v1::{Overhead, RuntimeClass, Scheduling},
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{Resource as _, ResourceExt as _};

use super::{nodes, quantity, taints};
use crate::pools::validate::{NodeFacts, OwnTaint, World};

/// One write, or two.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassStep {
    Create(RuntimeClass),
    /// In place, against the version that was seen.
    Update(RuntimeClass),
    /// The handler of a class cannot be changed: delete the one that was seen, create the other.
    Replace {
        old: Box<RuntimeClass>,
        new: Box<RuntimeClass>,
    },
    Delete(RuntimeClass),
}

impl ClassStep {
    pub fn name(&self) -> String {
        match self {
            Self::Create(class) | Self::Update(class) | Self::Delete(class) => class.name_any(),
            Self::Replace { new, .. } => new.name_any(),
        }
    }
}

/// What can be said of a class that the pool describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassVerdict {
    pub name: String,
    pub handler: String,
    pub state: ClassState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassState {
    /// As described, or made so by this plan.
    Ready,
    /// Somebody else's; never touched.
    Foreign,
    /// Another pool made it and describes it differently.
    OfPool(String),
}

pub fn plan(pool: &WindowsNodePool, world: &World<'_>) -> (Vec<ClassStep>, Vec<ClassVerdict>) {
    let me = pool.name_any();
    let described = describe(pool, world);
    let (mut steps, mut verdicts) = (Vec::new(), Vec::new());
    for (name, wanted) in &described {
        let state = match world.classes.get(name.as_str()) {
            // Of several pools that describe it the oldest makes it.
            None => {
                steps.extend(first_in_line(pool, name, world).then(|| ClassStep::Create(wanted.clone())));
                ClassState::Ready
            }
            Some(there) => match made_for(there) {
                None => ClassState::Foreign,
                Some(owner) if owner == me => {
                    steps.extend(correct(there, wanted));
                    ClassState::Ready
                }
                Some(owner) if is_described_by(owner, name, world) => {
                    if same_content(there, wanted) {
                        ClassState::Ready
                    } else {
                        ClassState::OfPool(owner.to_owned())
                    }
                }
                // Its pool is gone or has no use for it: the oldest that describes it takes it over.
                Some(_) => {
                    steps.extend(correct(there, wanted).filter(|_| first_in_line(pool, name, world)));
                    ClassState::Ready
                }
            },
        };
        verdicts.push(ClassVerdict { name: name.clone(), handler: wanted.handler.clone(), state });
    }
    let mine = world.classes.iter().filter(|(_, c)| made_for(c) == Some(&me));
    for (name, there) in mine.filter(|(name, _)| !described.contains_key(**name)) {
        // Handed over in place where another pool describes it: pods can go on being created with it meanwhile.
        let heir = world.pools.iter().find_map(|p| describe(p, world).remove(*name));
        match heir {
            Some(wanted) => steps.extend(correct(there, &wanted)),
            None => steps.push(ClassStep::Delete((*there).clone())),
        }
    }
    (steps, verdicts)
}

/// No older pool describes a class of this name.
fn first_in_line(pool: &WindowsNodePool, name: &str, world: &World<'_>) -> bool {
    let me = pool.name_any();
    let mut older = world.pools.iter().take_while(|p| p.name_any() != me);
    !older.any(|p| describe(p, world).contains_key(name))
}

fn is_described_by(pool: &str, name: &str, world: &World<'_>) -> bool {
    world.pools.iter().find(|p| p.name_any() == pool).is_some_and(|p| describe(p, world).contains_key(name))
}

/// The pool that a class was made for. Without the mark it is somebody else's.
pub fn made_for(class: &RuntimeClass) -> Option<&str> {
    class.metadata.labels.as_ref()?.get(keys::MADE_FOR_LABEL).map(String::as_str)
}

/// The classes that a pool describes, by name. None while it is being deleted.
fn describe(pool: &WindowsNodePool, world: &World<'_>) -> BTreeMap<String, RuntimeClass> {
    if pool.metadata.deletion_timestamp.is_some() {
        return BTreeMap::new();
    }
    let me = pool.name_any();
    let members: Vec<&NodeFacts<'_>> = world
        .nodes
        .iter()
        .filter(|n| n.owner().is_some_and(|p| p.metadata.name == pool.metadata.name))
        .filter(|n| nodes::want(n, &world.agents).is_some())
        .collect();
    let builds: BTreeSet<WindowsBuild> = match pool.spec.build {
        Some(build) => [build].into(),
        None => members.iter().filter_map(|n| n.known_build(&world.agents)).collect(),
    };
    let class = |name: String, spec: Option<&PoolRuntimeClass>, build: Option<WindowsBuild>| {
        let mut class = RuntimeClass {
            handler: spec.map_or(keys::PROCESS_HANDLER, |s| &s.handler).to_owned(),
            overhead: spec
                .and_then(|s| s.overhead.as_ref())
                .filter(|o| !o.pod_fixed.is_empty())
                .map(|o| Overhead { pod_fixed: Some(o.pod_fixed.clone()) }),
            scheduling: Some(Scheduling {
                node_selector: Some(node_selector(&members, build)),
                tolerations: Some(tolerations(pool, &members)).filter(|t| !t.is_empty()),
            }),
            ..RuntimeClass::default()
        };
        class.metadata.name = Some(name.clone());
        class.labels_mut().insert(keys::MADE_FOR_LABEL.to_owned(), me.clone());
        // Not as its controller: that would make the garbage collector wait for us.
        class.metadata.owner_references = pool.owner_ref(&()).map(|o| vec![o]);
        (name, class)
    };
    match &pool.spec.runtime_classes {
        None => builds.iter().map(|b| class(format!("windows-{}", b.number()), None, Some(*b))).collect(),
        Some(specs) => {
            let only = builds.first().copied().filter(|_| builds.len() == 1);
            specs.iter().map(|s| class(s.name.clone(), Some(s), only)).collect()
        }
    }
}

fn node_selector(members: &[&NodeFacts<'_>], build: Option<WindowsBuild>) -> BTreeMap<String, String> {
    let archs: BTreeSet<&str> =
        members.iter().filter_map(|n| n.labels.get(keys::ARCH_LABEL)).map(String::as_str).collect();
    // Several: any of them will do.
    let arch =
        if archs.is_empty() { Some("amd64") } else { archs.first().copied().filter(|_| archs.len() == 1) };
    let os = Some((keys::OS_LABEL, keys::WINDOWS.to_owned()));
    let arch = arch.map(|a| (keys::ARCH_LABEL, a.to_owned()));
    let build = build.map(|b| (keys::WINDOWS_BUILD_LABEL, b.to_string()));
    [os, arch, build].into_iter().flatten().map(|(k, v)| (k.to_owned(), v)).collect()
}

/// For the pool's own taints, and for those that the vendor put on its nodes to say that they run Windows.
fn tolerations(pool: &WindowsNodePool, members: &[&NodeFacts<'_>]) -> Vec<Toleration> {
    let of_os = |key: &str| keys::OS_TAINT_KEYS.iter().any(|k| k.eq_ignore_ascii_case(key));
    let vendors = members.iter().flat_map(|n| n.taints).filter(|t| of_os(&t.key)).map(OwnTaint::of);
    let tolerated: BTreeSet<OwnTaint> = pool.spec.taints.iter().map(taints::of_pool).chain(vendors).collect();
    let toleration = |t: OwnTaint| Toleration {
        key: Some(t.key),
        operator: Some("Equal".to_owned()),
        value: Some(t.value).filter(|v| !v.is_empty()),
        effect: Some(t.effect),
        toleration_seconds: None,
    };
    tolerated.into_iter().map(toleration).collect()
}

/// What makes the class that is there the one that is wanted.
fn correct(there: &RuntimeClass, wanted: &RuntimeClass) -> Option<ClassStep> {
    if there.handler != wanted.handler {
        return Some(ClassStep::Replace { old: Box::new(there.clone()), new: Box::new(wanted.clone()) });
    }
    let owned = made_for(there) == made_for(wanted)
        && there.metadata.owner_references == wanted.metadata.owner_references;
    if owned && same_content(there, wanted) {
        return None;
    }
    // What others wrote on it, labels and annotations, stays.
    let mut class = there.clone();
    class.labels_mut().extend(wanted.labels().clone());
    class.metadata.owner_references.clone_from(&wanted.metadata.owner_references);
    class.scheduling.clone_from(&wanted.scheduling);
    class.overhead.clone_from(&wanted.overhead);
    Some(ClassStep::Update(class))
}

fn same_content(a: &RuntimeClass, b: &RuntimeClass) -> bool {
    a.handler == b.handler
        && a.scheduling == b.scheduling
        && same_overhead(a.overhead.as_ref(), b.overhead.as_ref())
}

/// The API server writes `1024Mi` back as `1Gi`.
fn same_overhead(a: Option<&Overhead>, b: Option<&Overhead>) -> bool {
    let amounts = |o: Option<&Overhead>| -> BTreeMap<String, Quantity> {
        o.and_then(|o| o.pod_fixed.clone()).unwrap_or_default()
    };
    let (a, b) = (amounts(a), amounts(b));
    a.keys().eq(b.keys()) && a.values().zip(b.values()).all(|(a, b)| quantity::same(a, b))
}

#[cfg(test)]
mod tests;

//! Findings and outcome into the status. Pure; `now` counts only where a condition changes.

use std::collections::{BTreeMap, BTreeSet};

use bifold_crds::{
    WindowsNodePool, WindowsNodePoolStatus,
    conditions::{self, Observation, kind, reason},
    node_pool::{BuildCount, RuntimeClassState, Topology},
};
use jiff::Timestamp;

use crate::{
    pools::{
        apply::Outcome,
        plan::{
            Findings,
            classes::{ClassState, ClassVerdict},
        },
    },
    text::{count, list},
};

pub fn status(
    pool: &WindowsNodePool,
    findings: &Findings,
    outcome: &Outcome,
    now: Timestamp,
) -> WindowsNodePoolStatus {
    let nodes = nodes_configured(findings, outcome);
    let classes = classes_ready(pool, findings, outcome);
    let agents = agents_ready(pool, findings);
    let conflicted = conflicted(findings);
    let ready = ready(pool, findings, outcome, [&nodes, &classes, &agents]);

    let generation = pool.metadata.generation;
    let mut conditions = pool.status.as_ref().map(|s| s.conditions.clone()).unwrap_or_default();
    for seen in [ready, nodes, classes, agents, conflicted] {
        conditions::set(&mut conditions, seen.at(generation, now));
    }
    WindowsNodePoolStatus {
        observed_generation: generation,
        nodes: number(findings.members.len()),
        ready_nodes: number(findings.ready),
        builds: findings
            .builds
            .iter()
            .map(|(build, nodes)| BuildCount {
                build: build.to_string(),
                product: build.product().unwrap_or_default().to_owned(),
                nodes: number(*nodes),
            })
            .collect(),
        runtime_classes: findings
            .classes
            .iter()
            .map(|c| RuntimeClassState {
                name: c.name.clone(),
                handler: c.handler.clone(),
                ready: c.state == ClassState::Ready && !outcome.classes.contains_key(&c.name),
            })
            .collect(),
        conditions,
    }
}

fn number(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn seen(kind: &'static str, holds: bool, reason: &'static str, message: String) -> Observation {
    Observation { kind, holds: Some(holds), reason, message }
}

fn nodes_configured(findings: &Findings, outcome: &Outcome) -> Observation {
    let (holds, reason, message) = if !outcome.nodes.is_empty() {
        (false, reason::WRITES_PENDING, format!("not written yet: {}", failures(&outcome.nodes)))
    } else if !findings.other_build.is_empty() {
        let others = findings.other_build.iter().map(|(node, build)| match build {
            Some(build) => format!("{node} ({build})"),
            None => format!("{node} (build not known)"),
        });
        (false, reason::OTHER_BUILD, format!("not of the pool's build and left alone: {}", list(others)))
    } else if findings.members.is_empty() {
        (false, reason::NO_NODES, "the selector selects no Windows node that is this pool's".to_owned())
    } else {
        let mut message = format!("{} configured", count(findings.members.len(), "node"));
        if !findings.unknown_build.is_empty() {
            message = format!("{message}; no build is known of {}", list(&findings.unknown_build));
        }
        (true, reason::CONFIGURED, message)
    };
    seen(kind::NODES_CONFIGURED, holds, reason, message)
}

fn classes_ready(pool: &WindowsNodePool, findings: &Findings, outcome: &Outcome) -> Observation {
    let held: Vec<&ClassVerdict> = findings.classes.iter().filter(|c| c.state != ClassState::Ready).collect();
    let names = || list(findings.classes.iter().map(|c| &c.name));
    let (holds, reason, message) = if !outcome.classes.is_empty() {
        (false, reason::CLASS_WRITE_FAILED, format!("not written: {}", failures(&outcome.classes)))
    } else if !held.is_empty() {
        (false, reason::CLASS_NOT_OURS, list(held.into_iter().map(holder)))
    } else if !findings.classes.is_empty() {
        (true, reason::CLASSES_EXIST, format!("as described: {}", names()))
    } else if pool.spec.runtime_classes.is_some() {
        (true, reason::NONE_REQUESTED, "the pool asks for no RuntimeClass".to_owned())
    } else {
        (false, reason::BUILD_UNKNOWN, "no build is known yet, from spec.build or from a node".to_owned())
    };
    seen(kind::RUNTIME_CLASSES_READY, holds, reason, message)
}

fn holder(class: &ClassVerdict) -> String {
    match &class.state {
        ClassState::OfPool(pool) => {
            format!("{} was made for pool {pool}, which describes it differently", class.name)
        }
        ClassState::Foreign | ClassState::Ready => {
            format!("{} exists and was not made by Bifold, so it is left as it is", class.name)
        }
    }
}

fn agents_ready(pool: &WindowsNodePool, findings: &Findings) -> Observation {
    let (holds, reason, message) = if !pool.spec.require_agent {
        (true, reason::NOT_REQUIRED, "the pool does not require agents".to_owned())
    } else if findings.agents_missing.is_empty() {
        (true, reason::ALL_REPORT_READY, format!("{} ready", count(findings.members.len(), "agent")))
    } else {
        let missing = list(&findings.agents_missing);
        (
            false,
            reason::WAITING_FOR_AGENTS,
            format!("kept free of pods until the agent reports ready: {missing}"),
        )
    };
    seen(kind::AGENTS_READY, holds, reason, message)
}

fn conflicted(findings: &Findings) -> Observation {
    let mut said = Vec::new();
    let shared = |pools: &BTreeMap<String, BTreeSet<String>>, who: &str| {
        list(pools.iter().map(|(pool, nodes)| format!("{who} pool {pool} selects {}", list(nodes))))
    };
    let mut first = None;
    if !findings.lost_to.is_empty() {
        first.get_or_insert(reason::NODES_CLAIMED_TWICE);
        said.push(format!("{}; they belong to the older pool", shared(&findings.lost_to, "the older")));
    }
    if !findings.contested_by.is_empty() {
        first.get_or_insert(reason::NODES_CLAIMED_TWICE);
        said.push(format!("{} too; they belong to this pool", shared(&findings.contested_by, "the younger")));
    }
    if !findings.held.is_empty() {
        first.get_or_insert(reason::FIELD_HELD);
        said.push(format!("set by somebody else and left as it is: {}", list(&findings.held)));
    }
    let held: Vec<&ClassVerdict> = findings.classes.iter().filter(|c| c.state != ClassState::Ready).collect();
    if !held.is_empty() {
        first.get_or_insert(reason::CLASS_HELD);
        said.push(list(held.into_iter().map(holder)));
    }
    match first {
        Some(reason) => seen(kind::CONFLICTED, true, reason, said.join(". ")),
        None => seen(
            kind::CONFLICTED,
            false,
            reason::NO_CONFLICT,
            "no other owner holds anything of it".to_owned(),
        ),
    }
}

fn ready(
    pool: &WindowsNodePool,
    findings: &Findings,
    outcome: &Outcome,
    parts: [&Observation; 3],
) -> Observation {
    let mut attention = Vec::new();
    if pool.spec.network.topology != Topology::Unmanaged {
        attention.push(format!(
            "network.topology {:?} is not enacted by this version of Bifold, which does nothing for the network",
            pool.spec.network.topology
        ));
    }
    if !findings.lost_to.is_empty() {
        attention.push("nodes that the selector selects belong to older pools".to_owned());
    }
    if !findings.held.is_empty() {
        attention.push(format!("set by somebody else: {}", list(&findings.held)));
    }
    let broken = |o: &&&Observation| o.holds != Some(true);
    let by_a_person = |o: &&&Observation| [reason::OTHER_BUILD, reason::CLASS_NOT_OURS].contains(&o.reason);
    attention.extend(parts.iter().filter(broken).filter(by_a_person).map(|o| o.message.clone()));

    let (holds, reason, message) = if !outcome.complete() {
        let failed =
            outcome.nodes.iter().chain(&outcome.classes).map(|(_, error)| error).chain(&outcome.pool);
        (false, reason::API_ERROR, list(failed.take(1)))
    } else if !attention.is_empty() {
        (false, reason::NEEDS_ATTENTION, attention.join(". "))
    } else if let Some(part) = parts.iter().find(broken) {
        (false, reason::IN_PROGRESS, format!("{}: {}", part.kind, part.message))
    } else {
        (true, reason::AS_SPECIFIED, format!("{} as specified", count(findings.members.len(), "node")))
    };
    seen(kind::READY, holds, reason, message)
}

/// `n1: forbidden, n2: timeout`
fn failures(of: &BTreeMap<String, String>) -> String {
    list(of.iter().map(|(name, error)| format!("{name}: {error}")))
}

#[cfg(test)]
mod tests;

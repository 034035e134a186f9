//! Fourth step: the writes of a plan. The only step that changes nodes and RuntimeClasses. A write that fails does
//! not keep the others from being made.

use std::collections::BTreeMap;

use bifold_crds::{WindowsNodePool, keys};
use bifold_runtime::client::chain;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::{core::v1::Node, node::v1::RuntimeClass};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ObjectMeta, Patch, Preconditions},
};
use serde_json::{Value, json};

use super::{
    plan::{
        Finalizer, Plan,
        classes::ClassStep,
        nodes::{self, Change, LabelChange, TaintChange},
    },
    validate::{Agents, NodeFacts, World},
};
use crate::writer::{WriteError, Writer, apply as apply_params, patch, post};

/// Nodes that are written at a time. The API server answers a patch in about 5 ms; 16 keep it busy without using up
/// the share that priority and fairness gives to a service account (about 30 seats by default).
const NODES_AT_ONCE: usize = 16;

/// How often a write is repeated on a newer version of the object. A heartbeat every few seconds is the usual rival.
const ATTEMPTS: usize = 5;

/// What was not written, and why.
#[derive(Debug, Default)]
pub struct Outcome {
    pub nodes: BTreeMap<String, String>,
    pub classes: BTreeMap<String, String>,
    /// Everything else: the finalizer.
    pub pool: Option<String>,
    /// The first error, for the back-off.
    pub error: Option<WriteError>,
}

impl Outcome {
    pub fn complete(&self) -> bool {
        self.nodes.is_empty() && self.classes.is_empty() && self.pool.is_none()
    }

    fn failed(&mut self, error: WriteError) -> String {
        let told = chain(&error);
        tracing::warn!(error = told, "not written");
        self.error.get_or_insert(error);
        told
    }
}

pub async fn apply(writer: &Writer, pool: &WindowsNodePool, plan: &Plan, world: &World<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    // Before anything that it will have to take back.
    if plan.finalizer == Finalizer::Add
        && let Err(error) = finalizer(writer, &pool.metadata, true).await
    {
        outcome.pool = Some(outcome.failed(error));
        return outcome;
    }
    let mut pending = Vec::with_capacity(plan.nodes.len());
    for step in &plan.nodes {
        let write = node(writer, &step.name, &step.change, &world.pools, &world.agents);
        pending.push(async move { (&step.name, write.await) });
    }
    let mut written = stream::iter(pending).buffer_unordered(NODES_AT_ONCE);
    while let Some((name, result)) = written.next().await {
        if let Err(error) = result {
            let told = outcome.failed(error);
            outcome.nodes.insert(name.clone(), told);
        }
    }
    for step in &plan.classes {
        if let Err(error) = class(writer, step).await {
            let told = outcome.failed(error);
            outcome.classes.insert(step.name(), told);
        }
    }
    // After everything that it stood for.
    if plan.finalizer == Finalizer::Remove
        && outcome.complete()
        && let Err(error) = finalizer(writer, &pool.metadata, false).await
    {
        outcome.pool = Some(outcome.failed(error));
    }
    outcome
}

/// Makes a change of a node; where somebody else was faster, the change that the newer version of it needs.
pub async fn node(
    writer: &Writer,
    name: &str,
    change: &Change,
    pools: &[&WindowsNodePool],
    agents: &Agents,
) -> Result<(), WriteError> {
    let api = Api::<Node>::all(writer.client.clone());
    let mut change = change.clone();
    for attempt in 1.. {
        match node_once(writer, &api, name, &change).await {
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
            Err(error) if error.is_not_found() => break,
            other => return other,
        }
        let Some(now) = writer.read("Node", name, api.get_opt(name)).await? else { break };
        let facts = NodeFacts::of(&now, pools);
        change = nodes::change(&facts, nodes::want(&facts, agents).as_ref());
    }
    Ok(())
}

async fn node_once(writer: &Writer, api: &Api<Node>, name: &str, change: &Change) -> Result<(), WriteError> {
    let mut version = change.version.clone();
    if let Some(taints) = &change.taints {
        let body = Patch::Merge(taints_patch(taints, version.as_deref()));
        let written = writer.write("patch", "Node", name, api.patch_metadata(name, &patch(), &body)).await?;
        version = written.resource_version();
    }
    if let Some(labels) = &change.labels {
        let mut params = apply_params();
        params.force = labels.correct_build;
        // Where something is taken by force, nothing but what was seen.
        let version = version.filter(|_| labels.correct_build);
        let body = Patch::Apply(labels_patch(name, labels, change.uid.as_deref(), version.as_deref()));
        writer.write("apply", "Node", name, api.patch_metadata(name, &params, &body)).await?;
    }
    Ok(())
}

/// Taints and memory change together or not at all.
fn taints_patch(change: &TaintChange, version: Option<&str>) -> Value {
    let taints = (!change.taints.is_empty()).then_some(&change.taints);
    let applied = change.applied.as_ref().and_then(|a| serde_json::to_string(a).ok());
    json!({
        "metadata": { "resourceVersion": version, "annotations": { keys::APPLIED_ANNOTATION: applied } },
        "spec": { "taints": taints },
    })
}

/// The uid keeps an apply from making a node that was deleted meanwhile.
fn labels_patch(name: &str, change: &LabelChange, uid: Option<&str>, version: Option<&str>) -> Value {
    let mut metadata = json!({ "name": name });
    let optional = [("uid", uid.map(Into::into)), ("resourceVersion", version.map(Into::into))];
    for (key, value) in optional {
        if let Some(value) = value {
            metadata[key] = value;
        }
    }
    if !change.labels.is_empty() {
        metadata["labels"] = json!(change.labels);
    }
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata })
}

pub async fn class(writer: &Writer, step: &ClassStep) -> Result<(), WriteError> {
    const KIND: &str = "RuntimeClass";
    let api = Api::<RuntimeClass>::all(writer.client.clone());
    let name = step.name();
    let delete = async |old: &RuntimeClass| {
        // Exactly the one that was seen: its name may be somebody else's by now.
        let preconditions = Preconditions { uid: old.uid(), resource_version: old.resource_version() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match writer.write("delete", KIND, &name, api.delete(&name, &params)).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    };
    match step {
        // Never by apply, which would take over one that somebody else made meanwhile.
        ClassStep::Create(class) => {
            writer.write("create", KIND, &name, api.create(&post(), class)).await?;
        }
        ClassStep::Update(class) => {
            writer.write("update", KIND, &name, api.replace(&name, &post(), class)).await?;
        }
        ClassStep::Replace { old, new } => {
            delete(old).await?;
            writer.write("create", KIND, &name, api.create(&post(), new)).await?;
        }
        ClassStep::Delete(old) => delete(old).await?,
    }
    Ok(())
}

/// Adds our finalizer to a pool, or removes it. Of the pool only the metadata is needed, so that one that cannot be
/// read can be let go.
pub async fn finalizer(writer: &Writer, pool: &ObjectMeta, wanted: bool) -> Result<(), WriteError> {
    let name = pool.name.clone().unwrap_or_default();
    let others = pool.finalizers.iter().flatten().filter(|f| *f != keys::POOL_FINALIZER);
    let finalizers: Vec<&str> =
        others.map(String::as_str).chain(wanted.then_some(keys::POOL_FINALIZER)).collect();
    // The whole list is written, so it must be the one that was read.
    let body = json!({ "metadata": {
        "uid": pool.uid, "resourceVersion": pool.resource_version, "finalizers": finalizers,
    } });
    let api = Api::<WindowsNodePool>::all(writer.client.clone());
    let (params, body) = (patch(), Patch::Merge(body));
    match writer.write("patch", "WindowsNodePool", &name, api.patch_metadata(&name, &params, &body)).await {
        Err(error) if wanted || !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

//! Before the first step: what is watched, and which pools each change wakes.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use bifold_crds::{WindowsNode, WindowsNodePool, conditions, keys};
use bifold_runtime::{client::chain, watch::objects};
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::{core::v1::Node, node::v1::RuntimeClass};
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{
        Controller, WatchStreamExt as _, controller,
        events::Recorder,
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use tokio_util::sync::CancellationToken;

use super::{
    observe::{Caches, trim_agent, trim_node},
    reconcile::{Context, error_policy, reconcile},
    validate::NodeFacts,
};
use crate::{
    metrics::Metrics,
    watch::{Change, changes, coalesce, outlive, readable},
    writer::Writer,
};

/// Changes within this time are one pass. Counted from the first of them: a debounce that starts again with every
/// change would starve while a thousand nodes join.
const WINDOW: Duration = Duration::from_millis(200);

/// Pools that are reconciled at a time.
const POOLS_AT_ONCE: u16 = 4;

/// Reconciles pools until `stop`; then lets passes in flight end.
pub async fn run(writer: Writer, recorder: Recorder, metrics: Arc<Metrics>, stop: CancellationToken) {
    let (caches, woken) = watch(writer.client.clone(), metrics.clone());
    let pools = caches.pools.clone();
    let context = Arc::new(Context {
        caches,
        writer,
        recorder,
        metrics: metrics.clone(),
        memory: std::sync::Mutex::default(),
    });
    // Everything comes through `reconcile_on`: the Controller's own trigger knows nothing of what changed.
    Controller::for_stream(stream::pending(), pools)
        .reconcile_on(woken)
        .with_config(controller::Config::default().concurrency(POOLS_AT_ONCE))
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(reconcile, error_policy, context)
        .for_each(|result| {
            // Its next turn came after it was deleted.
            if matches!(result, Err(controller::Error::ObjectNotFound(_))) {
                return futures::future::ready(());
            }
            metrics.reconciled("WindowsNodePool", result.is_ok());
            match result {
                Ok((pool, _)) => tracing::debug!(pool = pool.name, "reconciled"),
                Err(error) => {
                    tracing::warn!(error = chain(&error), "reconcile failed");
                }
            }
            futures::future::ready(())
        })
        .await;
}

/// The caches, and the stream that fills them and names the pools to reconcile.
fn watch(
    client: Client,
    metrics: Arc<Metrics>,
) -> (Caches, impl Stream<Item = ObjectRef<WindowsNodePool>> + Send) {
    let (pools, pools_writer) = reflector::store();
    let (nodes, nodes_writer) = reflector::store();
    let (classes, classes_writer) = reflector::store();
    let (agents, agents_writer) = reflector::store();

    let of_pools =
        readable::<WindowsNodePool>(client.clone(), "WindowsNodePool", metrics.clone()).reflect(pools_writer);
    let of_pools = changes(outlive(of_pools, "WindowsNodePool", metrics.clone()), pool_wake);

    let windows = watcher::Config::default().labels(&format!("{}={}", keys::OS_LABEL, keys::WINDOWS));
    let of_nodes = objects(Api::<Node>::all(client.clone()), windows).modify(trim_node).reflect(nodes_writer);
    let of_nodes = changes(outlive(of_nodes, "Node", metrics.clone()), node_wake);

    let of_classes = objects(Api::<RuntimeClass>::all(client.clone()), watcher::Config::default())
        .modify(|class| class.managed_fields_mut().clear())
        .reflect(classes_writer);
    let of_classes = changes(outlive(of_classes, "RuntimeClass", metrics.clone()), class_wake);

    let of_agents = readable::<WindowsNode>(client, "WindowsNode", metrics.clone())
        .modify(trim_agent)
        .reflect(agents_writer);
    let of_agents = changes(outlive(of_agents, "WindowsNode", metrics), agent_wake);

    let woken = stream::select_all([
        of_pools.map(|_| Wake::All).boxed(),
        of_nodes.map(|c| node_wakes(&c)).boxed(),
        of_classes.map(|_| Wake::All).boxed(),
        of_agents.map(|_| Wake::All).boxed(),
    ]);
    let known = pools.clone();
    let woken = coalesce(woken, WINDOW).flat_map(move |wakes| stream::iter(pools_to_wake(&wakes, &known)));
    (Caches { pools, nodes, classes, agents }, woken)
}

/// Whom a change concerns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    All,
    Pool(String),
}

fn pools_to_wake(wakes: &BTreeSet<Wake>, pools: &Store<WindowsNodePool>) -> Vec<ObjectRef<WindowsNodePool>> {
    let all = wakes.contains(&Wake::All);
    let woken = |pool: &Arc<WindowsNodePool>| all || wakes.contains(&Wake::Pool(pool.name_any()));
    pools.state().iter().filter(|p| woken(p)).map(|p| ObjectRef::from_obj(&**p)).collect()
}

/// Of a pool: what a plan reads. Its status is ours and wakes nobody.
fn pool_wake(pool: &WindowsNodePool) -> (Option<String>, Option<i64>, bool, Vec<String>) {
    let deleting = pool.metadata.deletion_timestamp.is_some();
    (pool.uid(), pool.metadata.generation, deleting, pool.finalizers().to_vec())
}

/// Of a node: what a plan reads, as fingerprints, because there can be thousands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeWake {
    /// Who selects it depends on the labels alone.
    labels: u64,
    rest: u64,
    pool: Option<String>,
}

fn node_wake(node: &Node) -> NodeWake {
    let facts = NodeFacts::of(node, &[]);
    let mut labels = DefaultHasher::new();
    (facts.labels, facts.uid).hash(&mut labels);
    let mut rest = DefaultHasher::new();
    (&facts.ours, facts.ready, facts.build, node.annotations().get(keys::APPLIED_ANNOTATION)).hash(&mut rest);
    for taint in facts.taints {
        (&taint.key, &taint.value, &taint.effect).hash(&mut rest);
    }
    NodeWake { labels: labels.finish(), rest: rest.finish(), pool: facts.marked_for().map(str::to_owned) }
}

/// A node that stays where it is concerns its pool; one whose labels changed may concern any.
fn node_wakes(change: &Change<NodeWake>) -> Wake {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) if before.labels == after.labels && before.pool == after.pool => {
            after.pool.clone().map_or(Wake::All, Wake::Pool)
        }
        _ => Wake::All,
    }
}

fn class_wake(class: &RuntimeClass) -> RuntimeClass {
    let mut class = class.clone();
    class.metadata.resource_version = None;
    class.metadata.managed_fields = None;
    class
}

fn agent_wake(agent: &WindowsNode) -> (bool, bool, Option<String>) {
    let Some(status) = &agent.status else { return (false, false, None) };
    let holds = |kind| conditions::holds(&status.conditions, kind);
    let build = status.host.as_ref().map(|h| h.build.clone());
    (holds(conditions::kind::RUNTIME_READY), holds(conditions::kind::NETWORK_READY), build)
}

#[cfg(test)]
mod tests;

//! The watches that fill the snapshot: each kind by itself, each with its own back-off.
//!
//! A watch that fails keeps what it said before and begins anew; the others do not notice.

mod kinds;

use std::time::Duration;

use bifold_admission::Cluster;
use bifold_crds::WindowsWorkloadPolicy;
use bifold_runtime::{client::chain, watch::objects};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::{
    core::v1::{Namespace, Node},
    node::v1::RuntimeClass,
};
use kube::{
    Api, Client,
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::watcher::{self, Config, Event},
};
use tokio::time::{MissedTickBehavior, interval};

use self::kinds::{Classes, Namespaces, Nodes, Policies};
use crate::{metrics::Metrics, snapshot::Snapshot};

/// How often it is looked whether a watch has been failing for too long.
const LOOK: Duration = Duration::from_secs(5);

/// A kind of object, and how it gets into the snapshot.
pub trait Kind {
    /// What the API server sends.
    type Object: Send;
    /// What is kept of it.
    type Value: Send;
    /// The name of the kind.
    const NAME: &'static str;

    /// Reduces an object.
    fn read(object: Self::Object) -> Read<Self::Value>;
    /// Puts one in.
    fn put(cluster: &mut Cluster, name: String, value: Self::Value);
    /// Takes one out.
    fn remove(cluster: &mut Cluster, name: &str);
    /// Puts exactly those of a list in; those in `kept` stay as they are.
    fn replace(cluster: &mut Cluster, listed: Vec<(String, Self::Value)>, kept: &[String]);
}

/// What became of an object.
pub enum Read<V> {
    /// It was read.
    Value(String, V),
    /// It is none of those that are kept.
    Ignored(String),
    /// It cannot be read. What was read of it before stays in force.
    Unreadable(String, String),
}

/// Runs all watches. Ends only when one of them ends, which none should.
pub async fn run(client: Client, snapshot: Snapshot, metrics: Metrics) -> anyhow::Result<()> {
    for kind in [Nodes::NAME, Classes::NAME, Namespaces::NAME, Policies::NAME] {
        snapshot.expect(kind);
    }
    let windows = Config::default().labels("kubernetes.io/os=windows");
    let nodes = objects(Api::<Node>::all(client.clone()), windows);
    let classes = objects(Api::<RuntimeClass>::all(client.clone()), Config::default());
    let namespaces = objects(Api::<PartialObjectMeta<Namespace>>::all(client.clone()), Config::default());
    let policies = objects(Api::<DeserializeGuard<WindowsWorkloadPolicy>>::all(client), Config::default());
    tokio::select! {
        () = follow::<Nodes>(nodes, &snapshot, &metrics) => anyhow::bail!("the watch of nodes ended"),
        () = follow::<Classes>(classes, &snapshot, &metrics) => anyhow::bail!("the watch of RuntimeClasses ended"),
        () = follow::<Namespaces>(namespaces, &snapshot, &metrics) => anyhow::bail!("the watch of namespaces ended"),
        () = follow::<Policies>(policies, &snapshot, &metrics) => anyhow::bail!("the watch of policies ended"),
        () = look(&snapshot) => anyhow::bail!("the look at the watches ended"),
    }
}

async fn follow<K: Kind>(
    events: impl Stream<Item = watcher::Result<Event<K::Object>>>,
    snapshot: &Snapshot,
    metrics: &Metrics,
) {
    let mut events = std::pin::pin!(events);
    let (mut listed, mut kept) = (Vec::new(), Vec::new());
    // One line when it begins to fail, not one for every attempt.
    let mut failing = false;
    while let Some(event) = events.next().await {
        failing &= event.is_err() || matches!(event, Ok(Event::Init));
        match event {
            Ok(Event::Init) => {
                listed.clear();
                kept.clear();
            }
            Ok(Event::InitApply(object)) => match K::read(object) {
                Read::Value(name, value) => listed.push((name, value)),
                Read::Ignored(_) => {}
                Read::Unreadable(name, error) => {
                    passed_over::<K>(&name, &error, metrics);
                    kept.push(name);
                }
            },
            Ok(Event::InitDone) => {
                tracing::debug!(kind = K::NAME, objects = listed.len(), "listed");
                let listed = std::mem::take(&mut listed);
                snapshot.listed(K::NAME, |cluster| K::replace(cluster, listed, &kept));
            }
            Ok(Event::Apply(object)) => match K::read(object) {
                Read::Value(name, value) => {
                    snapshot.change(K::NAME, |cluster| K::put(cluster, name, value));
                }
                Read::Ignored(name) => snapshot.change(K::NAME, |cluster| K::remove(cluster, &name)),
                Read::Unreadable(name, error) => {
                    passed_over::<K>(&name, &error, metrics);
                    snapshot.heard(K::NAME);
                }
            },
            Ok(Event::Delete(object)) => {
                let (Read::Value(name, _) | Read::Ignored(name) | Read::Unreadable(name, _)) =
                    K::read(object);
                snapshot.change(K::NAME, |cluster| K::remove(cluster, &name));
            }
            Err(error) if is_missing_kind(&error) => {
                metrics.watch_failed(K::NAME);
                tracing::warn!(
                    kind = K::NAME,
                    "the API server does not know this kind; is its CRD installed?"
                );
                snapshot.listed(K::NAME, |cluster| K::replace(cluster, Vec::new(), &[]));
            }
            Err(error) => {
                metrics.watch_failed(K::NAME);
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(kind = K::NAME, error = chain(&error), "watch failed; retrying");
                }
                snapshot.failed(K::NAME);
            }
        }
    }
}

fn passed_over<K: Kind>(name: &str, error: &str, metrics: &Metrics) {
    metrics.unreadable(K::NAME);
    tracing::warn!(kind = K::NAME, name, error, "cannot read the object; keeping what it said before");
}

/// Whether the kind is not served: its list answers 404, which the list of a kind that is served never does.
fn is_missing_kind(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

async fn look(snapshot: &Snapshot) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        snapshot.look();
    }
}

#[cfg(test)]
mod tests;

//! Streams of objects that survive what happens to watches: errors, objects that cannot be read, heartbeats.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Debug,
    sync::Arc,
    time::Duration,
};

use bifold_runtime::{client::chain, watch::objects};
use futures::{Stream, StreamExt as _, future};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    core::DeserializeGuard,
    runtime::watcher::{self, Event},
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::metrics::Metrics;

/// What a watch yields.
pub type Result<T> = std::result::Result<T, watcher::Error>;

/// Watches all objects of a kind of ours. One that does not deserialize, such as one that a newer version wrote,
/// is passed over with a warning instead of breaking the list; the last readable version of it stays in force.
pub fn readable<K>(
    client: Client,
    kind: &'static str,
    metrics: Arc<Metrics>,
) -> impl Stream<Item = Result<Event<K>>> + Send
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    let guarded = objects(Api::<DeserializeGuard<K>>::all(client), watcher::Config::default());
    pass_over(guarded, kind, metrics)
}

fn pass_over<K: Resource<DynamicType = ()> + Send>(
    stream: impl Stream<Item = Result<Event<DeserializeGuard<K>>>> + Send,
    kind: &'static str,
    metrics: Arc<Metrics>,
) -> impl Stream<Item = Result<Event<K>>> + Send {
    stream.filter_map(move |item| {
        let read = |guard: DeserializeGuard<K>| match guard.0 {
            Ok(object) => Some(object),
            Err(invalid) => {
                metrics.unreadable(kind);
                let name = invalid.metadata.name.unwrap_or_default();
                tracing::warn!(kind, name, error = invalid.error, "object passed over: it cannot be read");
                None
            }
        };
        future::ready(match item {
            Ok(Event::Apply(guard)) => read(guard).map(|k| Ok(Event::Apply(k))),
            Ok(Event::InitApply(guard)) => read(guard).map(|k| Ok(Event::InitApply(k))),
            Ok(Event::Delete(guard)) => guard.0.ok().map(|k| Ok(Event::Delete(k))),
            Ok(Event::Init) => Some(Ok(Event::Init)),
            Ok(Event::InitDone) => Some(Ok(Event::InitDone)),
            Err(error) => Some(Err(error)),
        })
    })
}

/// Keeps one failing watch from stalling the others.
///
/// `Controller` puts a single back-off around *all* of its streams, so an error that reaches it delays every other
/// watch. Each stream here has its own back-off already; count the error, tell it, drop it.
pub fn outlive<T: Send>(
    stream: impl Stream<Item = Result<T>> + Send,
    kind: &'static str,
    metrics: Arc<Metrics>,
) -> impl Stream<Item = T> + Send {
    stream.filter_map(move |item| {
        future::ready(match item {
            Ok(item) => Some(item),
            Err(error) => {
                metrics.watch_failed(kind);
                let told = chain(&error);
                if told.ends_with("(404)") {
                    tracing::warn!(
                        kind,
                        error = told,
                        "the API server does not serve this kind: install the CRDs"
                    );
                } else {
                    tracing::warn!(kind, error = told, "watch failed; retrying");
                }
                None
            }
        })
    })
}

/// What became of one object, in the part that somebody looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<P> {
    pub name: String,
    pub before: Option<P>,
    pub after: Option<P>,
}

/// Passes an event only where the part that `of` takes from the object has changed, and every deletion.
///
/// The stock predicates cannot do this: a deleted object hashes as it did before, so they drop it. An object that
/// vanished while the watch was broken is missing from the new list and counts as deleted.
pub fn changes<K, P>(
    stream: impl Stream<Item = Event<K>> + Send,
    of: fn(&K) -> P,
) -> impl Stream<Item = Change<P>> + Send
where
    K: Resource<DynamicType = ()> + Send,
    P: Clone + PartialEq + Send,
{
    let mut seen: HashMap<String, P> = HashMap::new();
    let mut listed: Option<HashMap<String, P>> = None;
    stream.flat_map(move |event| {
        let mut changed = Vec::new();
        let mut note = |name: String, before: Option<P>, after: Option<P>| {
            if before != after {
                changed.push(Change { name, before, after });
            }
        };
        match event {
            Event::Apply(k) => {
                let (name, now) = (k.name_any(), of(&k));
                let before = seen.insert(name.clone(), now.clone());
                note(name, before, Some(now));
            }
            Event::Delete(k) => {
                let name = k.name_any();
                // Also one that was never seen: a finalizer may be all that is left of it.
                let before = seen.remove(&name).or_else(|| Some(of(&k)));
                note(name, before, None);
            }
            Event::Init => listed = Some(HashMap::new()),
            Event::InitApply(k) => {
                let (name, now) = (k.name_any(), of(&k));
                note(name.clone(), seen.remove(&name), Some(now.clone()));
                listed.get_or_insert_default().insert(name, now);
            }
            Event::InitDone => {
                for (name, gone) in seen.drain() {
                    note(name, Some(gone), None);
                }
                seen = listed.take().unwrap_or_default();
            }
        }
        futures::stream::iter(changed)
    })
}

/// Everything that arrives within `window` of the first item, as one set.
pub fn coalesce<T: Ord + Send>(
    stream: impl Stream<Item = T> + Send + Unpin,
    window: Duration,
) -> impl Stream<Item = BTreeSet<T>> + Send {
    futures::stream::unfold(stream, move |mut stream| async move {
        let mut together = BTreeSet::from([stream.next().await?]);
        let end = Instant::now() + window;
        while let Ok(Some(item)) = timeout_at(end, stream.next()).await {
            together.insert(item);
        }
        Some((together, stream))
    })
}

#[cfg(test)]
mod tests {
    use bifold_crds::WindowsNodePool;
    use futures::stream;
    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;

    use super::*;

    fn node(name: &str, label: &str, version: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = Some(name.into());
        node.metadata.resource_version = Some(version.into());
        node.labels_mut().insert("l".into(), label.into());
        node
    }

    async fn names(events: Vec<Event<Node>>) -> Vec<(String, bool)> {
        changes(stream::iter(events), |n| n.labels().clone())
            .map(|c| (c.name, c.after.is_some()))
            .collect()
            .await
    }

    #[tokio::test]
    async fn heartbeats_do_not_pass_and_changes_and_deletions_do() {
        let events = vec![
            Event::Apply(node("n", "a", "1")),
            Event::Apply(node("n", "a", "2")),
            Event::Apply(node("n", "b", "3")),
            Event::Delete(node("n", "b", "4")),
        ];
        let yes = |there| ("n".to_owned(), there);
        assert_eq!(names(events).await, [yes(true), yes(true), yes(false)]);
    }

    #[tokio::test]
    async fn a_new_list_passes_what_changed_meanwhile_and_what_vanished() {
        let events = vec![
            Event::Init,
            Event::InitApply(node("same", "a", "1")),
            Event::InitApply(node("gone", "a", "2")),
            Event::InitDone,
            Event::Init,
            Event::InitApply(node("same", "a", "3")),
            Event::InitApply(node("new", "a", "4")),
            Event::InitDone,
            Event::Apply(node("same", "a", "5")),
        ];
        let named = |n: &str, there| (n.to_owned(), there);
        assert_eq!(
            names(events).await,
            [named("same", true), named("gone", true), named("new", true), named("gone", false)]
        );
    }

    #[tokio::test]
    async fn an_object_that_cannot_be_read_is_passed_over_and_the_others_go_on() {
        let pool = |name: &str, spec: serde_json::Value| -> DeserializeGuard<WindowsNodePool> {
            serde_json::from_value(json!({
                "apiVersion": "bifold.dev/v1alpha1", "kind": "WindowsNodePool",
                "metadata": { "name": name }, "spec": spec,
            }))
            .unwrap()
        };
        let events = [
            Event::Init,
            Event::InitApply(pool("broken", json!({ "selector": {}, "build": "Windows 95" }))),
            Event::InitApply(pool("fine", json!({ "selector": {} }))),
            Event::InitDone,
        ];
        let metrics = Arc::<Metrics>::default();
        let passed: Vec<_> = pass_over(stream::iter(events.map(Ok)), "WindowsNodePool", metrics)
            .map(|e| match e.unwrap() {
                Event::InitApply(p) => p.name_any(),
                _ => String::new(),
            })
            .collect()
            .await;
        assert_eq!(passed, ["", "fine", ""]);
    }
}

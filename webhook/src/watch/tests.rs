use bifold_admission::Freshness;
use bifold_runtime::watch::Retry;
use futures::stream;
use kube::core::Status;
use serde_json::json;

use super::*;
use crate::{
    snapshot::STALE_AFTER,
    testing::{metrics, snapshot},
};

fn node(name: &str, os: &str) -> Node {
    serde_json::from_value(json!({ "metadata": { "name": name, "labels": { "kubernetes.io/os": os } } }))
        .unwrap()
}

fn api_error(code: u16) -> watcher::Error {
    let status = Status { code, ..Status::failure("x", "y") };
    watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
}

fn policy(name: &str, spec: &serde_json::Value) -> DeserializeGuard<WindowsWorkloadPolicy> {
    let object = json!({ "apiVersion": "bifold.dev/v1alpha1", "kind": "WindowsWorkloadPolicy",
        "metadata": { "name": name }, "spec": spec });
    serde_json::from_value(object).unwrap()
}

async fn feed<K: Kind>(snapshot: &Snapshot, events: Vec<watcher::Result<Event<K::Object>>>) {
    follow::<K>(stream::iter(events), snapshot, &metrics()).await;
}

fn nodes(snapshot: &Snapshot) -> Vec<String> {
    snapshot.read().nodes().members().map(|(name, _)| name.to_owned()).collect()
}

#[tokio::test]
async fn a_list_replaces_and_deltas_change_what_is_known() {
    let (snapshot, readiness) = snapshot();
    snapshot.expect(Nodes::NAME);
    snapshot.expect(Classes::NAME);
    let windows = |name| node(name, "windows");
    feed::<Nodes>(&snapshot, vec![Ok(Event::Init), Ok(Event::InitApply(windows("a")))]).await;
    assert!(nodes(&snapshot).is_empty(), "half a list is none");
    feed::<Nodes>(
        &snapshot,
        vec![
            Ok(Event::Init),
            Ok(Event::InitApply(windows("a"))),
            Ok(Event::InitApply(windows("b"))),
            Ok(Event::InitDone),
            Ok(Event::Apply(windows("c"))),
            Ok(Event::Apply(node("b", "linux"))),
        ],
    )
    .await;
    assert_eq!(nodes(&snapshot), ["a", "c"]);
    assert_eq!((snapshot.read().freshness(), readiness.missing()), (Freshness::Cold, vec!["snapshot"]));
    feed::<Classes>(&snapshot, vec![Ok(Event::Init), Ok(Event::InitDone)]).await;
    assert_eq!((snapshot.read().freshness(), readiness.missing()), (Freshness::Warm, vec![]));
    feed::<Nodes>(&snapshot, vec![Ok(Event::Delete(windows("a")))]).await;
    feed::<Nodes>(&snapshot, vec![Ok(Event::Init), Ok(Event::InitApply(windows("d"))), Ok(Event::InitDone)])
        .await;
    assert_eq!(nodes(&snapshot), ["d"], "what vanished while the watch was broken is gone");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_takes_nothing_from_the_snapshot() {
    let (snapshot, readiness) = snapshot();
    snapshot.expect(Nodes::NAME);
    let list = || vec![Ok(Event::Init), Ok(Event::InitApply(node("a", "windows"))), Ok(Event::InitDone)];
    feed::<Nodes>(&snapshot, list()).await;
    feed::<Nodes>(&snapshot, vec![Err(api_error(503)), Ok(Event::Init), Err(api_error(503))]).await;
    snapshot.look();
    assert_eq!(snapshot.read().freshness(), Freshness::Warm);
    for _ in 0..3 {
        tokio::time::advance(STALE_AFTER / 3).await;
        feed::<Nodes>(&snapshot, vec![Err(api_error(503))]).await;
    }
    snapshot.look();
    assert_eq!((nodes(&snapshot), snapshot.read().freshness()), (vec!["a".to_owned()], Freshness::Stale));
    assert!(readiness.missing().is_empty(), "it goes on answering");
    feed::<Nodes>(&snapshot, list()).await;
    assert_eq!(snapshot.read().freshness(), Freshness::Warm);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_goes_on_where_it_was_need_not_say_anything_to_be_trusted_again() {
    let (snapshot, _) = snapshot();
    feed::<Nodes>(&snapshot, vec![Ok(Event::Init), Ok(Event::InitDone)]).await;
    for _ in 0..30 {
        feed::<Nodes>(&snapshot, vec![Err(api_error(503))]).await;
        tokio::time::advance(Retry::LONGEST).await;
    }
    snapshot.look();
    assert_eq!(snapshot.read().freshness(), Freshness::Stale);
    tokio::time::advance(Duration::from_secs(45)).await;
    snapshot.look();
    assert_eq!(snapshot.read().freshness(), Freshness::Warm);
}

#[tokio::test]
async fn without_the_crds_there_are_no_policies_and_the_webhook_is_ready() {
    let (snapshot, readiness) = snapshot();
    snapshot.expect(Policies::NAME);
    feed::<Policies>(&snapshot, vec![Ok(Event::Init), Err(api_error(404))]).await;
    assert_eq!((snapshot.read().policy_count(), readiness.missing()), (0, vec![]));
    let late = vec![Ok(Event::Init), Ok(Event::InitApply(policy("p", &json!({})))), Ok(Event::InitDone)];
    feed::<Policies>(&snapshot, late).await;
    assert_eq!(snapshot.read().policy_count(), 1);
}

#[tokio::test]
async fn a_bad_policy_does_not_take_the_good_one_away() {
    let (snapshot, _) = snapshot();
    let good = || policy("p", &json!({ "rules": { "secret-volume": "Warn" } }));
    let bad = || policy("p", &json!({ "priority": "high" }));
    let governed = || snapshot.read().policy_of("any").name.clone();
    feed::<Policies>(&snapshot, vec![Ok(Event::Init), Ok(Event::InitApply(good())), Ok(Event::InitDone)])
        .await;
    assert_eq!(governed().as_deref(), Some("p"));
    feed::<Policies>(&snapshot, vec![Ok(Event::Apply(bad()))]).await;
    feed::<Policies>(&snapshot, vec![Ok(Event::Init), Ok(Event::InitApply(bad())), Ok(Event::InitDone)])
        .await;
    assert_eq!(governed().as_deref(), Some("p"), "not after a new list either");
    feed::<Policies>(&snapshot, vec![Ok(Event::Delete(bad()))]).await;
    assert_eq!(governed(), None);
}

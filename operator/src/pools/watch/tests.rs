//! Which change wakes which pool.

use std::collections::BTreeMap;

use super::*;
use crate::pools::testing::{Model, NodeExt as _, agent, node, pool};

fn wake(before: Option<&Node>, after: Option<&Node>) -> Option<Wake> {
    let (before, after) = (before.map(node_wake), after.map(node_wake));
    (before != after).then(|| node_wakes(&Change { name: "n".into(), before, after }))
}

/// A node as the operator leaves it.
fn configured() -> Node {
    let mut model = Model::of([pool("p")], [node("n", "p")]);
    model.settle();
    model.nodes.remove("n").unwrap()
}

#[test]
fn a_heartbeat_wakes_nobody() {
    let before = configured();
    let mut beat = before.clone();
    beat.metadata.resource_version = Some("2".into());
    let ready = beat.status.as_mut().unwrap().conditions.as_mut().unwrap();
    ready[0].last_heartbeat_time =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
    beat.annotations_mut()
        .insert("volumes.kubernetes.io/controller-managed-attach-detach".into(), "true".into());
    assert_eq!(wake(Some(&before), Some(&beat)), None);
}

#[test]
fn what_a_plan_reads_of_a_node_wakes_its_pool() {
    let before = configured();
    let mut down = before.clone();
    down.status.as_mut().unwrap().conditions.as_mut().unwrap()[0].status = "Unknown".into();
    let mut forgotten = before.clone();
    forgotten.annotations_mut().insert(keys::APPLIED_ANNOTATION.into(), r#"{"pool":"p"}"#.into());
    let upgraded = before.clone().kernel("10.0.26100.1");
    let tainted = before.clone().taint("a=b:NoSchedule");
    for after in [down, forgotten, upgraded, tainted] {
        assert_eq!(wake(Some(&before), Some(&after)), Some(Wake::Pool("p".into())));
    }
}

#[test]
fn labels_and_coming_and_going_may_concern_any_pool() {
    let before = configured();
    let relabelled = before.clone().label("agentpool", "q");
    assert_eq!(wake(Some(&before), Some(&relabelled)), Some(Wake::All));
    assert_eq!(wake(None, Some(&before)), Some(Wake::All));
    assert_eq!(wake(Some(&before), None), Some(Wake::All));
    let mut another = before.clone();
    another.metadata.uid = Some("made again under the same name".into());
    assert_eq!(wake(Some(&before), Some(&another)), Some(Wake::All));
}

#[test]
fn a_node_that_no_pool_configured_may_concern_any() {
    let before = node("n", "p");
    assert_eq!(wake(Some(&before), Some(&before.clone().kernel("10.0.26100.1"))), Some(Wake::All));
}

#[test]
fn the_status_of_a_pool_wakes_nobody_and_its_spec_and_deletion_do() {
    let before = pool("p");
    let mut reported = before.clone();
    reported.status = Some(bifold_crds::WindowsNodePoolStatus { nodes: 3, ..Default::default() });
    assert_eq!(pool_wake(&before), pool_wake(&reported));
    let mut changed = before.clone();
    changed.metadata.generation = Some(2);
    assert_ne!(pool_wake(&before), pool_wake(&changed));
    let mut deleted = before.clone();
    deleted.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
    assert_ne!(pool_wake(&before), pool_wake(&deleted));
}

#[test]
fn of_an_agents_report_its_readiness_and_build_count() {
    let mut measured = agent("n", true, Some("10.0.20348"));
    let before = agent_wake(&measured);
    measured.status.as_mut().unwrap().agent_version = "2".into();
    assert_eq!(agent_wake(&measured), before);
    assert_ne!(agent_wake(&agent("n", false, Some("10.0.20348"))), before);
    assert_ne!(agent_wake(&agent("n", true, Some("10.0.17763"))), before);
}

#[test]
fn what_nobody_reads_is_not_kept() {
    let mut fat = configured().label("kept", "1");
    fat.annotations_mut().insert("dropped".into(), "1".into());
    fat.status.as_mut().unwrap().images = Some(vec![k8s_openapi::api::core::v1::ContainerImage::default()]);
    let before = (node_wake(&fat), fat.clone());
    trim_node(&mut fat);
    assert_eq!(node_wake(&fat), before.0, "a plan reads the same of it");
    assert!(fat.status.as_ref().unwrap().images.is_none());
    assert!(!fat.annotations().contains_key("dropped"));
    let labels: &BTreeMap<_, _> = fat.labels();
    assert_eq!(labels, before.1.labels());
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_one_pass_and_a_steady_stream_does_not_starve() {
    let ticks = tokio::time::interval(Duration::from_millis(50));
    let steady = stream::unfold(ticks, |mut ticks| async move {
        ticks.tick().await;
        Some(((), ticks))
    })
    .take(40);
    let passes = coalesce(steady.boxed(), WINDOW).count().await;
    assert!((5..=10).contains(&passes), "{passes} passes over two seconds of changes");
}

//! What the status says, and that it says the same of the same world.

use bifold_crds::conditions::holds;
use k8s_openapi::api::node::v1::RuntimeClass;

use super::*;
use crate::pools::testing::{Model, NodeExt as _, PoolExt as _, agent, at, node, pool};

fn told(model: &Model, name: &str) -> WindowsNodePoolStatus {
    status(&model.pools[name], &model.plan(name).findings, &Outcome::default(), at(1))
}

fn reason_of(status: &WindowsNodePoolStatus, kind: &str) -> (bool, String, String) {
    let condition = status.conditions.iter().find(|c| c.type_ == kind).unwrap();
    (holds(&status.conditions, kind), condition.reason.clone(), condition.message.clone())
}

fn settled(
    pools: impl IntoIterator<Item = WindowsNodePool>,
    nodes: impl IntoIterator<Item = k8s_openapi::api::core::v1::Node>,
) -> Model {
    let mut model = Model::of(pools, nodes);
    model.settle();
    model
}

#[test]
fn a_pool_that_has_what_it_asks_for_is_ready_and_says_how_much() {
    let nodes = [node("a", "p"), node("b", "p").kernel("10.0.17763.1")];
    let status = told(&settled([pool("p").default_classes()], nodes), "p");
    assert_eq!((status.nodes, status.ready_nodes, status.observed_generation), (2, 2, Some(1)));
    let builds: Vec<_> = status.builds.iter().map(|b| (&*b.build, &*b.product, b.nodes)).collect();
    assert_eq!(builds, [("10.0.17763", "Windows Server 2019", 1), ("10.0.20348", "Windows Server 2022", 1)]);
    assert!(status.runtime_classes.iter().all(|c| c.ready));
    let kinds: Vec<_> = status.conditions.iter().map(|c| (&*c.type_, &*c.status)).collect();
    assert_eq!(
        kinds,
        [
            ("Ready", "True"),
            ("NodesConfigured", "True"),
            ("RuntimeClassesReady", "True"),
            ("AgentsReady", "True"),
            ("Conflicted", "False"),
        ]
    );
    assert!(status.conditions.iter().all(|c| c.observed_generation == Some(1)));
}

#[test]
fn the_same_world_seen_later_gives_the_same_status() {
    let mut model = settled([pool("p").default_classes()], [node("a", "p")]);
    let first = told(&model, "p");
    model.pools.get_mut("p").unwrap().status = Some(first.clone());
    let later = status(&model.pools["p"], &model.plan("p").findings, &Outcome::default(), at(1_000));
    assert_eq!(later, first);
}

/// Condition, whether it holds, its reason, what its message says, the reason of `Ready`.
type Row<'a> = (&'a str, bool, &'a str, &'a str, &'a str);

fn says(model: &Model, pool: &str, (kind, holds, reason, says, ready): Row<'_>) {
    let status = told(model, pool);
    let (found, why, message) = reason_of(&status, kind);
    assert_eq!((found, &*why), (holds, reason), "{kind} of {pool}: {message}");
    assert!(message.contains(says), "{kind} of {pool}: {message}");
    assert_eq!(reason_of(&status, kind::READY).1, ready, "{reason}");
}

#[test]
fn a_lack_of_nodes_has_its_reason_and_names_what_is_lacking() {
    let empty = settled([pool("p")], []);
    says(
        &empty,
        "p",
        (kind::NODES_CONFIGURED, false, reason::NO_NODES, "no Windows node", reason::IN_PROGRESS),
    );
    let other = settled([pool("p").build("10.0.17763")], [node("a", "p")]);
    let row = (kind::NODES_CONFIGURED, false, reason::OTHER_BUILD, "a (10.0.20348)", reason::NEEDS_ATTENTION);
    says(&other, "p", row);
}

#[test]
fn a_lack_of_classes_has_its_reason_and_names_what_is_lacking() {
    let unknown = settled([pool("p").default_classes()], [node("a", "p").kernel("")]);
    let row = (kind::RUNTIME_CLASSES_READY, false, reason::BUILD_UNKNOWN, "spec.build", reason::IN_PROGRESS);
    says(&unknown, "p", row);
    let mut clash = Model::of([pool("p").default_classes()], [node("a", "p")]);
    let mut foreign = RuntimeClass { handler: "docker".into(), ..RuntimeClass::default() };
    foreign.metadata.name = Some("windows-20348".into());
    clash.classes.insert("windows-20348".into(), foreign);
    clash.settle();
    let (attention, name) = (reason::NEEDS_ATTENTION, "windows-20348");
    says(&clash, "p", (kind::RUNTIME_CLASSES_READY, false, reason::CLASS_NOT_OURS, name, attention));
    says(&clash, "p", (kind::CONFLICTED, true, reason::CLASS_HELD, name, attention));
}

#[test]
fn a_conflict_names_the_other_side() {
    let mut held = settled([pool("p").labels(&[("team", "web")])], [node("a", "p")]);
    held.someone_labels("a", "team", "ops");
    let label = "label team=ops on node a";
    says(&held, "p", (kind::CONFLICTED, true, reason::FIELD_HELD, label, reason::NEEDS_ATTENTION));
    let pools = [pool("p").created(1).selects_all(), pool("q").created(2).selects_all()];
    let twice = settled(pools, [node("a", "x")]);
    let claimed = reason::NODES_CLAIMED_TWICE;
    // The older pool has what it asks for.
    says(&twice, "p", (kind::CONFLICTED, true, claimed, "younger pool q selects a", reason::AS_SPECIFIED));
    says(&twice, "q", (kind::CONFLICTED, true, claimed, "older pool p selects a", reason::NEEDS_ATTENTION));
}

#[test]
fn agents_and_networks_that_are_not_there_are_named() {
    let mut waiting = Model::of([pool("p").require_agent()], [node("a", "p"), node("b", "p")]);
    waiting.agents.insert("b".into(), agent("b", true, None));
    waiting.settle();
    let row = (kind::AGENTS_READY, false, reason::WAITING_FOR_AGENTS, "ready: a", reason::IN_PROGRESS);
    says(&waiting, "p", row);
    let overlay = settled([pool("p").spec(|s| s.network.topology = Topology::Overlay)], [node("a", "p")]);
    let attention = reason::NEEDS_ATTENTION;
    says(&overlay, "p", (kind::READY, false, attention, "Overlay is not enacted", attention));
}

#[test]
fn what_could_not_be_written_is_told() {
    let model = settled([pool("p").default_classes()], [node("a", "p")]);
    let outcome = Outcome {
        nodes: [("a".to_owned(), "forbidden".to_owned())].into(),
        classes: [("windows-20348".to_owned(), "timed out".to_owned())].into(),
        ..Outcome::default()
    };
    let status = status(&model.pools["p"], &model.plan("p").findings, &outcome, at(1));
    assert_eq!(reason_of(&status, kind::READY).1, reason::API_ERROR);
    let (_, why, message) = reason_of(&status, kind::NODES_CONFIGURED);
    assert_eq!((&*why, message.contains("a: forbidden")), (reason::WRITES_PENDING, true));
    assert_eq!(reason_of(&status, kind::RUNTIME_CLASSES_READY).1, reason::CLASS_WRITE_FAILED);
    assert!(!status.runtime_classes[0].ready);
}

#[test]
fn a_thousand_names_make_a_short_sentence() {
    let names: Vec<String> = (0..1_000).map(|n| format!("node-{n}")).collect();
    let nodes = names.iter().map(|n| node(n, "p"));
    let status = told(&Model::of([pool("p").build("10.0.17763")], nodes), "p");
    assert!(status.conditions.iter().all(|c| c.message.len() < 400));
    assert!(reason_of(&status, kind::NODES_CONFIGURED).2.ends_with("and 995 more"));
}

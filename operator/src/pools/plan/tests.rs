//! What is planned, case by case; then that it holds for any cluster.

mod properties;

use bifold_crds::keys::{AGENT_NOT_READY_TAINT, POOL_LABEL, WINDOWS_BUILD_LABEL};

use super::*;
use crate::pools::testing::{Model, NodeExt, PoolExt as _, agent, node, pool};

#[test]
fn a_node_of_the_pool_gets_its_label_its_build_and_its_taint() {
    let mut model = Model::of([pool("p").labels(&[("team", "web")])], [node("n", "p")]);
    model.settle();
    assert_eq!(model.label("n", POOL_LABEL), Some("p"));
    assert_eq!(model.label("n", "team"), Some("web"));
    assert_eq!(model.label("n", WINDOWS_BUILD_LABEL), Some("10.0.20348"));
    assert_eq!(model.taints("n"), ["os=windows:NoSchedule"]);
}

#[test]
fn the_first_pass_adds_the_finalizer_before_anything_that_it_has_to_take_back() {
    let mut new = pool("p");
    new.metadata.finalizers = None;
    assert_eq!(Model::of([new], []).plan("p").finalizer, Finalizer::Add);
    assert_eq!(Model::of([pool("p")], []).plan("p").finalizer, Finalizer::Keep);
}

#[test]
fn nodes_of_linux_are_nobodys_whatever_a_selector_asks_for() {
    let linux = node("l", "p").label(keys::OS_LABEL, "linux");
    let plan = Model::of([pool("p").selects_all()], [linux]).plan("p");
    assert!(plan.nodes.is_empty() && plan.findings.members.is_empty());
}

#[test]
fn the_kubelets_build_label_is_left_to_the_kubelet_and_a_wrong_one_is_corrected() {
    let right = node("right", "p").label(WINDOWS_BUILD_LABEL, "10.0.20348");
    let wrong = node("wrong", "p").label(WINDOWS_BUILD_LABEL, "10.0.17763");
    let garbage = node("garbage", "p").label(WINDOWS_BUILD_LABEL, "Windows 95");
    let mut model = Model::of([pool("p")], [right, wrong, garbage]);
    model.settle();
    for name in ["right", "wrong", "garbage"] {
        assert_eq!(model.label(name, WINDOWS_BUILD_LABEL), Some("10.0.20348"), "{name}");
    }
    model.release_node("right");
    assert_eq!(model.label("right", WINDOWS_BUILD_LABEL), Some("10.0.20348"), "it never was ours");
}

#[test]
fn an_in_place_upgrade_is_followed() {
    let mut model = Model::of([pool("p").default_classes()], [node("n", "p")]);
    model.settle();
    assert!(model.classes.contains_key("windows-20348"));
    let upgraded = model.nodes.remove("n").unwrap().kernel("10.0.26100.1");
    model.nodes.insert("n".into(), upgraded);
    model.settle();
    assert_eq!(model.label("n", WINDOWS_BUILD_LABEL), Some("10.0.26100"));
    assert_eq!(model.classes.keys().collect::<Vec<_>>(), ["windows-26100"]);
}

#[test]
fn nodes_that_say_nothing_useful_are_configured_and_named() {
    let mut bare = node("bare", "p");
    bare.status = None;
    let pools = [pool("p").default_classes()];
    let mut model =
        Model::of(pools, [bare, node("empty", "p").kernel(""), node("linuxy", "p").kernel("6.1.0")]);
    model.settle();
    let findings = model.plan("p").findings;
    assert_eq!(findings.unknown_build.len(), 3);
    assert_eq!((findings.ready, findings.classes.len()), (2, 0));
    assert_eq!(model.label("bare", POOL_LABEL), Some("p"));
    assert_eq!(model.label("bare", WINDOWS_BUILD_LABEL), None);
}

#[test]
fn the_agents_word_on_the_build_counts_where_the_kubelet_has_none() {
    let mut model = Model::of([pool("p")], [node("n", "p").kernel("")]);
    model.agents.insert("n".into(), agent("n", true, Some("10.0.17763")));
    model.settle();
    assert_eq!(model.label("n", WINDOWS_BUILD_LABEL), Some("10.0.17763"));
}

#[test]
fn a_report_that_is_empty_for_a_moment_takes_nothing_back() {
    let mut model = Model::of([pool("p")], [node("n", "p")]);
    model.settle();
    let quiet = model.nodes.remove("n").unwrap().kernel("");
    model.nodes.insert("n".into(), quiet);
    assert!(model.plan("p").nodes.is_empty());
}

#[test]
fn nodes_of_another_build_are_reported_and_left_alone() {
    let pools = [pool("p").build("10.0.17763")];
    let mut model = Model::of(
        pools,
        [node("old", "p").kernel("10.0.17763.1"), node("new", "p"), node("odd", "p").kernel("")],
    );
    model.settle();
    assert_eq!(model.label("new", POOL_LABEL), None);
    let findings = model.plan("p").findings;
    assert_eq!(findings.members, ["old".to_owned()].into());
    let others: Vec<_> = findings.other_build.into_iter().map(|(n, b)| (n, b.is_some())).collect();
    assert_eq!(others, [("new".to_owned(), true), ("odd".to_owned(), false)]);
}

#[test]
fn the_older_pool_has_a_node_that_two_select_and_both_say_so() {
    let young = pool("a").created(2).selects_all();
    let old = pool("b").created(1).selects_all();
    let mut model = Model::of([young, old], [node("n", "x")]);
    model.settle();
    assert_eq!(model.label("n", POOL_LABEL), Some("b"));
    let names = |of: BTreeMap<String, BTreeSet<String>>| of.into_keys().collect::<Vec<_>>();
    assert_eq!(names(model.plan("a").findings.lost_to), ["b"]);
    assert_eq!(names(model.plan("b").findings.contested_by), ["a"]);
    assert!(model.plan("a").findings.members.is_empty());
}

#[test]
fn pools_of_the_same_second_are_ordered_by_name() {
    let mut model = Model::of([pool("b").selects_all(), pool("a").selects_all()], [node("n", "x")]);
    model.settle();
    assert_eq!(model.label("n", POOL_LABEL), Some("a"));
}

#[test]
fn what_others_put_on_a_node_stays_while_it_is_ours_and_after() {
    let before =
        node("n", "p").label("mine", "1").taint("dedicated=db:NoSchedule").taint("os=windows:NoSchedule");
    let mut model =
        Model::of([pool("p").taints(&["os=windows:NoSchedule", "x=y:NoExecute"])], [before.clone()]);
    model.settle();
    assert_eq!(model.taints("n"), ["dedicated=db:NoSchedule", "os=windows:NoSchedule", "x=y:NoExecute"]);
    model.pools.insert("p".into(), model.pools["p"].clone().deleting());
    model.settle();
    assert_eq!(model.nodes["n"].spec, before.spec, "the taint that was there before us is not ours");
    assert_eq!(model.nodes["n"].labels(), before.labels());
    assert!(model.nodes["n"].annotations().is_empty() && model.pools.is_empty());
}

#[test]
fn what_somebody_changed_meanwhile_is_theirs() {
    let mut model = Model::of([pool("p").labels(&[("team", "web")])], [node("n", "p")]);
    model.settle();
    model.someone_labels("n", "team", "ops");
    model.nodes.get_mut("n").unwrap().spec.as_mut().unwrap().taints.as_mut().unwrap()[0].value =
        Some("Other".into());
    model.settle();
    let held: Vec<String> = model.plan("p").findings.held.iter().map(ToString::to_string).collect();
    assert_eq!(held, ["label team=ops on node n", "taint os=Other:NoSchedule on node n"]);
    model.pools.insert("p".into(), model.pools["p"].clone().deleting());
    model.settle();
    assert_eq!(
        (model.label("n", "team"), &*model.taints("n")),
        (Some("ops"), &["os=Other:NoSchedule".to_owned()][..])
    );
}

#[test]
fn a_vendors_spelling_of_the_os_taint_is_no_conflict() {
    let mut model = Model::of([pool("p")], [node("n", "p").taint("os=Windows:NoSchedule")]);
    model.settle();
    assert_eq!(model.taints("n"), ["os=Windows:NoSchedule"]);
    assert!(model.plan("p").findings.held.is_empty());
}

#[test]
fn a_node_that_leaves_every_pool_is_released() {
    let mut model = Model::of([pool("p").labels(&[("team", "web")])], [node("n", "p")]);
    model.settle();
    model.someone_labels("n", "agentpool", "elsewhere");
    model.settle();
    assert_eq!(
        (model.label("n", POOL_LABEL), model.label("n", "team"), model.taints("n").len()),
        (None, None, 0)
    );
}

#[test]
fn a_node_that_moves_between_pools_is_turned_over_in_one_step() {
    let a = pool("a")
        .labels(&[("team", "a"), ("only", "a")])
        .taints(&["os=windows:NoSchedule", "a=a:NoSchedule"]);
    let b = pool("b").labels(&[("team", "b")]).taints(&["os=windows:NoSchedule", "b=b:NoSchedule"]);
    let mut model = Model::of([a, b], [node("n", "a")]);
    model.settle();
    model.someone_labels("n", "agentpool", "b");
    assert!(model.plan("a").nodes.is_empty(), "the old pool leaves it to the new one");
    model.pass("b");
    assert_eq!((model.label("n", "team"), model.label("n", "only")), (Some("b"), None));
    assert_eq!(model.taints("n"), ["os=windows:NoSchedule", "b=b:NoSchedule"]);
    assert!(model.plan("a").nodes.is_empty() && model.plan("b").nodes.is_empty());
}

#[test]
fn a_pool_that_is_deleted_hands_its_nodes_to_the_next_one() {
    let old = pool("old").created(1).selects_all().labels(&[("of", "old")]);
    let young = pool("young").created(2).selects_all().labels(&[("of", "young")]);
    let mut model = Model::of([old, young], [node("n", "x")]);
    model.settle();
    model.pools.insert("old".into(), model.pools["old"].clone().deleting());
    model.pass("old");
    assert_eq!((model.label("n", POOL_LABEL), model.label("n", "of")), (Some("young"), Some("young")));
    assert!(model.plan("young").nodes.is_empty());
}

#[test]
fn a_node_without_a_ready_agent_is_kept_free_of_pods() {
    let mut model = Model::of([pool("p").taints(&[]).require_agent()], [node("n", "p"), node("m", "p")]);
    model.agents.insert("m".into(), agent("m", true, None));
    model.agents.insert("n".into(), agent("n", false, None));
    model.settle();
    let startup = format!("{AGENT_NOT_READY_TAINT}=:NoSchedule");
    assert_eq!((model.taints("n"), model.taints("m")), (vec![startup], vec![]));
    assert_eq!(model.plan("p").findings.agents_missing, ["n".to_owned()].into());
    model.agents.insert("n".into(), agent("n", true, None));
    model.settle();
    assert!(model.taints("n").is_empty() && model.plan("p").findings.agents_missing.is_empty());
}

#[test]
fn a_network_that_is_asked_for_is_waited_for() {
    use bifold_crds::node_pool::Topology;
    let routed = pool("p").require_agent().spec(|s| s.network.topology = Topology::HostGateway);
    let mut model = Model::of([routed], [node("n", "p")]);
    model.agents.insert("n".into(), agent("n", true, None));
    assert_eq!(model.plan("p").findings.agents_missing.len(), 1);
}

#[test]
fn an_annotation_that_cannot_be_read_claims_nothing() {
    let mut odd = node("n", "p").taint("os=windows:NoSchedule");
    odd.annotations_mut().insert(keys::APPLIED_ANNOTATION.into(), "{not json".into());
    let mut model = Model::of([pool("p")], [odd]);
    model.settle();
    model.pools.insert("p".into(), model.pools["p"].clone().deleting());
    model.settle();
    assert_eq!(model.taints("n"), ["os=windows:NoSchedule"]);
}

#[test]
fn a_pool_that_is_gone_already_is_left_in_peace() {
    let mut gone = pool("p").deleting();
    gone.metadata.finalizers = None;
    let plan = Model::of([gone], [node("n", "p")]).plan("p");
    assert!(plan.nodes.is_empty() && plan.finalizer == Finalizer::Keep);
}

//! Which classes there are, whose they are, and what becomes of them.

use bifold_crds::keys::WINDOWS_BUILD_LABEL;

use super::*;
use crate::pools::testing::{Model, NodeExt as _, PoolExt as _, node, pool};

fn toleration(t: &Toleration) -> String {
    let of = |o: &Option<String>| o.clone().unwrap_or_default();
    format!("{}={}:{}", of(&t.key), of(&t.value), of(&t.effect))
}

#[test]
fn each_build_of_a_pool_has_its_class() {
    let nodes = [node("a", "p"), node("b", "p").kernel("10.0.17763.1"), node("c", "p")];
    let mut model = Model::of([pool("p").default_classes()], nodes);
    model.settle();
    assert_eq!(model.classes.keys().collect::<Vec<_>>(), ["windows-17763", "windows-20348"]);
    let class = &model.classes["windows-20348"];
    assert_eq!(class.handler, keys::PROCESS_HANDLER);
    let scheduling = class.scheduling.clone().unwrap();
    let selector: Vec<_> =
        scheduling.node_selector.unwrap().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(
        selector,
        [
            "kubernetes.io/arch=amd64",
            "kubernetes.io/os=windows",
            "node.kubernetes.io/windows-build=10.0.20348"
        ]
    );
    let tolerations: Vec<_> = scheduling.tolerations.unwrap().iter().map(toleration).collect();
    assert_eq!(tolerations, ["os=windows:NoSchedule"]);
}

#[test]
fn a_class_tolerates_the_os_taints_that_a_vendor_put_on_the_nodes() {
    let nodes =
        [node("a", "p").taint("node.kubernetes.io/os=windows:NoSchedule").taint("dedicated=db:NoSchedule")];
    let mut model = Model::of([pool("p").default_classes().taints(&[])], nodes);
    model.settle();
    let tolerations = model.classes["windows-20348"].scheduling.clone().unwrap().tolerations.unwrap();
    let told: Vec<_> = tolerations.iter().map(toleration).collect();
    assert_eq!(
        told,
        ["node.kubernetes.io/os=windows:NoSchedule"],
        "a taint for other reasons is not tolerated"
    );
}

#[test]
fn a_class_that_a_pool_names_has_the_build_only_where_there_is_one() {
    let named = || {
        pool("p").spec(|s| {
            s.runtime_classes = Some(vec![serde_json::from_str(r#"{"name": "win"}"#).unwrap()]);
        })
    };
    let build = |model: &Model| {
        let scheduling = model.classes["win"].scheduling.clone().unwrap();
        scheduling.node_selector.unwrap().get(WINDOWS_BUILD_LABEL).cloned()
    };
    let mut one = Model::of([named()], [node("a", "p")]);
    one.settle();
    assert_eq!(build(&one).as_deref(), Some("10.0.20348"));
    let mut two = Model::of([named()], [node("a", "p"), node("b", "p").kernel("10.0.17763.1")]);
    two.settle();
    assert_eq!(build(&two), None);
}

#[test]
fn a_class_that_somebody_else_made_is_never_touched() {
    let mut model = Model::of([pool("p").default_classes()], [node("n", "p")]);
    let mut foreign = RuntimeClass { handler: "docker".into(), ..Default::default() };
    foreign.metadata.name = Some("windows-20348".into());
    model.classes.insert("windows-20348".into(), foreign.clone());
    model.settle();
    assert_eq!(model.classes["windows-20348"], foreign);
    assert_eq!(model.plan("p").findings.classes[0].state, ClassState::Foreign);
    model.pools.insert("p".into(), model.pools["p"].clone().deleting());
    model.settle();
    assert_eq!(model.classes["windows-20348"], foreign);
}

#[test]
fn a_class_is_shared_by_pools_that_describe_it_alike_and_outlives_the_one_that_made_it() {
    let pools = [pool("a").created(1).default_classes(), pool("b").created(2).default_classes()];
    let mut model = Model::of(pools, [node("n", "a"), node("m", "b")]);
    model.pass("b");
    assert!(model.classes.is_empty(), "the older pool makes it");
    model.settle();
    assert_eq!(model.plan("b").findings.classes[0].state, ClassState::Ready);
    model.pools.insert("a".into(), model.pools["a"].clone().deleting());
    let plan = model.pass("a");
    assert!(
        matches!(plan.classes[..], [ClassStep::Update(_)]),
        "handed over, not deleted: {:?}",
        plan.classes
    );
    assert_eq!(made_for(&model.classes["windows-20348"]), Some("b"));
    assert!(model.plan("b").classes.is_empty());
}

#[test]
fn a_class_that_another_pool_describes_differently_is_a_conflict() {
    let pools = [
        pool("a").created(1).default_classes(),
        pool("b").created(2).default_classes().taints(&["b=b:NoSchedule"]),
    ];
    let mut model = Model::of(pools, [node("n", "a"), node("m", "b")]);
    model.settle();
    assert_eq!(model.plan("a").findings.classes[0].state, ClassState::Ready);
    assert_eq!(model.plan("b").findings.classes[0].state, ClassState::OfPool("a".into()));
}

#[test]
fn a_class_of_a_pool_that_is_long_gone_is_taken_over() {
    let mut model = Model::of([pool("a").default_classes()], [node("n", "a")]);
    model.settle();
    model.pools.clear();
    model.pools.insert("b".into(), pool("b").selects_all().default_classes());
    model.settle();
    assert_eq!(made_for(&model.classes["windows-20348"]), Some("b"));
}

#[test]
fn another_handler_is_another_class() {
    let with = |handler: &str| {
        pool("p").spec(|s| {
            let class = format!(r#"{{"name": "win", "handler": "{handler}"}}"#);
            s.runtime_classes = Some(vec![serde_json::from_str(&class).unwrap()]);
        })
    };
    let mut model = Model::of([with("runhcs-wcow-process")], []);
    model.settle();
    model.pools.insert("p".into(), with("runhcs-wcow-hypervisor"));
    assert!(matches!(model.plan("p").classes[..], [ClassStep::Replace { .. }]));
    model.settle();
    assert_eq!(model.classes["win"].handler, "runhcs-wcow-hypervisor");
}

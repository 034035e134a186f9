//! For any cluster: the operator comes to rest, and what it gave is taken back and nothing else.

use proptest::prelude::*;

use super::*;

const TAINTS: [&str; 5] =
    ["os=windows:NoSchedule", "os=Windows:NoSchedule", "a=1:NoSchedule", "a=2:NoSchedule", "b=:NoExecute"];
const KERNELS: [&str; 5] = ["10.0.17763.1", "10.0.20348.2700", "10.0.26100.1", "", "6.1.0-13-amd64"];
const BUILDS: [&str; 2] = ["10.0.17763", "10.0.20348"];

/// Taints of one slot each, as the API server has them.
fn taints() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(&TAINTS[..], 0..=TAINTS.len()).prop_map(|list| {
        let slot = |t: &str| {
            let (pair, effect) = t.split_once(':').unwrap();
            (pair.split('=').next().unwrap().to_owned(), effect.to_owned())
        };
        let mut seen = BTreeSet::new();
        list.into_iter().filter(|t| seen.insert(slot(t))).collect()
    })
}

fn some_node(name: &'static str) -> impl Strategy<Value = k8s_openapi::api::core::v1::Node> {
    let label = proptest::option::of(proptest::sample::select(vec!["10.0.17763", "10.0.20348", "junk"]));
    let team = proptest::option::of(proptest::sample::select(vec!["x", "y"]));
    let agentpool = proptest::sample::select(vec!["p", "q", "none"]);
    (agentpool, 0..KERNELS.len(), label, team, taints()).prop_map(
        move |(agentpool, kernel, label, team, taints)| {
            let mut node = node(name, agentpool).kernel(KERNELS[kernel]);
            if let Some(build) = label {
                node = node.label(WINDOWS_BUILD_LABEL, build);
            }
            if let Some(team) = team {
                node = node.label("team", team);
            }
            taints.into_iter().fold(node, NodeExt::taint)
        },
    )
}

fn some_pool(name: &'static str) -> impl Strategy<Value = WindowsNodePool> {
    let team = proptest::option::of(proptest::sample::select(vec!["x", "y"]));
    let build = proptest::option::of(0..BUILDS.len());
    (any::<bool>(), 0..3_i64, team, build, taints(), any::<bool>(), any::<bool>()).prop_map(
        move |(all, created, team, build, taints, classes, agents)| {
            let mut pool = pool(name).created(created).taints(&taints);
            if all {
                pool = pool.selects_all();
            }
            if let Some(team) = team {
                pool = pool.labels(&[("team", team)]);
            }
            if let Some(build) = build {
                pool = pool.build(BUILDS[build]);
            }
            if classes {
                pool = pool.default_classes();
            }
            if agents { pool.require_agent() } else { pool }
        },
    )
}

fn cluster() -> impl Strategy<Value = Model> {
    let nodes = (some_node("a"), some_node("b"), some_node("c"));
    let pools = (some_pool("p"), some_pool("q"));
    (nodes, pools, any::<bool>()).prop_map(|((a, b, c), (p, q), reporting)| {
        let mut model = Model::of([p, q], [a, b, c]);
        model.agents.insert("a".into(), agent("a", reporting, None));
        model
    })
}

/// What somebody may do to a node while pools hold it.
fn meddle(model: &mut Model, how: u8) {
    match how % 5 {
        0 => model.someone_labels("a", "team", "theirs"),
        1 => {
            let node = model.nodes.remove("b").unwrap();
            let free = !Model::taints_of(&node).iter().any(|t| t.starts_with("z="));
            model.nodes.insert("b".into(), if free { node.taint("z=1:NoSchedule") } else { node });
        }
        2 => model.someone_labels("b", "agentpool", "q"),
        3 => {
            let node = model.nodes.remove("c").unwrap().kernel("10.0.26100.7");
            model.nodes.insert("c".into(), node);
        }
        _ => model.someone_labels("c", "extra", "1"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_operator_comes_to_rest_whatever_happens(mut model in cluster(), events in proptest::collection::vec(any::<u8>(), 0..8)) {
        model.settle();
        for event in events {
            meddle(&mut model, event);
            model.settle();
        }
        for pool in model.pools.keys() {
            let plan = model.plan(pool);
            prop_assert!(plan.nodes.is_empty() && plan.classes.is_empty());
        }
    }

    #[test]
    fn deleting_the_pools_restores_what_was_there_and_keeps_what_others_added(
        before in cluster(), events in proptest::collection::vec(any::<u8>(), 0..8), by_command in any::<bool>(),
    ) {
        let mut model = before.clone();
        // The same meddling, in a world without Bifold.
        let mut alone = before;
        model.settle();
        for event in events {
            meddle(&mut model, event);
            meddle(&mut alone, event);
            model.settle();
        }
        if by_command {
            for name in ["a", "b", "c"] {
                model.release_node(name);
            }
        } else {
            let deleting: Vec<_> = model.pools.values().cloned().map(crate::pools::testing::PoolExt::deleting).collect();
            model.pools = deleting.into_iter().map(|p| (p.name_any(), p)).collect();
            model.settle();
            prop_assert!(model.pools.is_empty() && model.classes.is_empty());
        }
        for (name, node) in &model.nodes {
            let expected = &alone.nodes[name];
            prop_assert!(node.annotations().is_empty());
            prop_assert_eq!(model.taints(name), alone.taints(name));
            let (mut found, mut wanted) = (node.labels().clone(), expected.labels().clone());
            // A wrong build that was corrected is not made wrong again.
            if found.get(WINDOWS_BUILD_LABEL) != wanted.get(WINDOWS_BUILD_LABEL) {
                prop_assert_eq!(found.remove(WINDOWS_BUILD_LABEL), None);
                wanted.remove(WINDOWS_BUILD_LABEL);
            }
            prop_assert_eq!(found, wanted);
        }
    }
}

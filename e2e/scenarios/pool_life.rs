//! A pool is made, changed and deleted: nodes, RuntimeClasses and status follow, and what someone else put on a node
//! stays as it was.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{Context, Look, SimulatedNode, Story};
use k8s_openapi::api::{
    core::v1::{Node, Taint},
    node::v1::RuntimeClass,
};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

pub(crate) const STORY: Story =
    Story::plain("pool-life", "nodes and RuntimeClasses follow a pool from creation to deletion", |ctx| {
        Box::pin(tell(ctx))
    });

const SOON: Duration = Duration::from_secs(30);

const POOL: &str = "
apiVersion: bifold.dev/v1alpha1
kind: WindowsNodePool
metadata: {name: pool-life}
spec:
  selector: {matchLabels: {story: pool-life}}
  build: 10.0.20348
  labels: {team: web}
  runtimeClasses:
  - {name: pool-life-process}
";

async fn tell(ctx: Context) -> Result<()> {
    let nodes: Api<Node> = Api::all(ctx.client.clone());
    let node = |name: &str| SimulatedNode {
        labels: BTreeMap::from([("story".to_owned(), "pool-life".to_owned())]),
        ..SimulatedNode::named(name)
    };
    // The first has a taint and a label of its own, and a kubelet that set no build.
    let own = Taint {
        key: "team".into(),
        value: Some("web".into()),
        effect: "NoSchedule".into(),
        time_added: None,
    };
    let mut first = SimulatedNode { build_label: false, taints: vec![own], ..node("fake-pool-life-1") };
    first.labels.insert("rack".to_owned(), "r1".to_owned());
    let second = node("fake-pool-life-2");
    let other_build =
        SimulatedNode { kernel_version: "10.0.17763.6532".to_owned(), ..node("fake-pool-life-other-build") };
    for node in [&first, &second, &other_build] {
        ctx.simulated_node(node).await?;
    }
    let untouched = nodes.get(&other_build.name).await?;

    created(&ctx, &nodes, [&first, &second]).await?;
    changed(&ctx, &nodes, [&first, &second]).await?;

    let after = nodes.get(&other_build.name).await?;
    ensure!(
        after.labels() == untouched.labels() && taints(&after) == taints(&untouched),
        "another build: touched"
    );

    deleted(&ctx, &nodes, [&first, &second]).await
}

async fn created(ctx: &Context, nodes: &Api<Node>, [first, second]: [&SimulatedNode; 2]) -> Result<()> {
    ctx.apply(POOL).await?;
    for node in [first, second] {
        node_is(ctx, nodes, &node.name, |node| {
            let labels = node.labels();
            label_is(labels, "bifold.dev/pool", Some("pool-life"))?;
            label_is(labels, "team", Some("web"))?;
            label_is(labels, "node.kubernetes.io/windows-build", Some("10.0.20348"))?;
            has(&taints(node), "os=windows:NoSchedule")
        })
        .await?;
    }
    let tainted = nodes.get(&first.name).await?;
    has(&taints(&tainted), "team=web:NoSchedule").map_err(anyhow::Error::msg)?;

    let status = pool_status(ctx, |status| {
        // The third node is selected but has another build: the pool says so instead of being Ready.
        let complains = condition(status, "NodesConfigured").is_some_and(|c| c["reason"] == "OtherBuild");
        if status["nodes"] == 2 && complains { Ok(()) } else { Err(status.to_string()) }
    })
    .await?;
    ensure!(status["builds"][0]["build"] == "10.0.20348", "{status}");
    ensure!(status["conditions"].as_array().is_some_and(|c| c.len() == 5), "{status}");

    let classes: Api<RuntimeClass> = Api::all(ctx.client.clone());
    let class = classes.get("pool-life-process").await?;
    ensure!(class.handler == "runhcs-wcow-process", "{class:?}");
    let scheduling = class.scheduling.context("the RuntimeClass has no scheduling")?;
    let selector = scheduling.node_selector.unwrap_or_default();
    label_is(&selector, "kubernetes.io/os", Some("windows")).map_err(anyhow::Error::msg)?;
    label_is(&selector, "node.kubernetes.io/windows-build", Some("10.0.20348"))
        .map_err(anyhow::Error::msg)?;
    ensure!(
        scheduling.tolerations.is_some_and(|t| t.iter().any(|t| t.key.as_deref() == Some("os"))),
        "no toleration"
    );
    Ok(())
}

async fn changed(ctx: &Context, nodes: &Api<Node>, [first, second]: [&SimulatedNode; 2]) -> Result<()> {
    // Someone else adds to the node meanwhile.
    let theirs = json!({"metadata": {"labels": {"rack": "r2", "floor": "3"}}});
    nodes.patch(&second.name, &PatchParams::default(), &Patch::Merge(&theirs)).await?;

    ctx.apply(&POOL.replace(
        "labels: {team: web}",
        "labels: {tier: front}\n  taints: [{key: dedicated, value: iis, effect: NoSchedule}]",
    ))
    .await?;
    for node in [first, second] {
        node_is(ctx, nodes, &node.name, |node| {
            label_is(node.labels(), "team", None)?;
            label_is(node.labels(), "tier", Some("front"))?;
            has(&taints(node), "dedicated=iis:NoSchedule")?;
            has_not(&taints(node), "os=windows:NoSchedule")
        })
        .await?;
    }
    Ok(())
}

async fn deleted(ctx: &Context, nodes: &Api<Node>, [first, second]: [&SimulatedNode; 2]) -> Result<()> {
    ctx.delete(POOL).await?;
    for node in [first, second] {
        node_is(ctx, nodes, &node.name, |node| {
            label_is(node.labels(), "bifold.dev/pool", None)?;
            label_is(node.labels(), "tier", None)?;
            has_not(&taints(node), "dedicated=iis:NoSchedule")?;
            match node.annotations().keys().find(|key| key.starts_with("bifold.dev/")) {
                Some(key) => Err(format!("annotation {key} is left")),
                None => Ok(()),
            }
        })
        .await?;
    }
    let tainted = nodes.get(&first.name).await?;
    ensure!(
        taints(&tainted) == ["team=web:NoSchedule"],
        "the taint of another is gone: {:?}",
        taints(&tainted)
    );
    ensure!(tainted.labels().get("rack").map(String::as_str) == Some("r1"), "a label of another is gone");
    let labelled = nodes.get(&second.name).await?;
    for (key, value) in [("rack", "r2"), ("floor", "3")] {
        label_is(labelled.labels(), key, Some(value)).map_err(anyhow::Error::msg)?;
    }

    let classes: Api<RuntimeClass> = Api::all(ctx.client.clone());
    ctx.wait_for("the deletion of the RuntimeClass", SOON, || async {
        Ok(match classes.get_opt("pool-life-process").await? {
            None => Look::Done(()),
            Some(_) => Look::NotYet("still there".to_owned()),
        })
    })
    .await
}

async fn node_is(
    ctx: &Context,
    nodes: &Api<Node>,
    name: &str,
    check: impl Fn(&Node) -> Result<(), String>,
) -> Result<()> {
    let check = &check;
    ctx.wait_for(&format!("node {name}"), SOON, || async move {
        Ok(check(&nodes.get(name).await?).map_or_else(Look::NotYet, Look::Done))
    })
    .await
}

async fn pool_status(ctx: &Context, check: impl Fn(&Value) -> Result<(), String>) -> Result<Value> {
    let check = &check;
    ctx.wait_for("the pool's status", SOON, || async move {
        let output = ctx.kubectl(["get", "windowsnodepool", "pool-life", "--output=json"]).await?;
        let pool: Value = serde_json::from_str(&output.stdout).context(output.stderr)?;
        let status = pool["status"].clone();
        if status["observedGeneration"] != pool["metadata"]["generation"] {
            return Ok(Look::NotYet(format!("of another generation: {status}")));
        }
        Ok(check(&status).map_or_else(Look::NotYet, |()| Look::Done(status)))
    })
    .await
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|c| c["type"] == kind)
}

/// As kubectl writes them, sorted.
fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten();
    let mut written: Vec<String> =
        taints.map(|t| format!("{}={}:{}", t.key, t.value.as_deref().unwrap_or(""), t.effect)).collect();
    written.sort();
    written
}

fn label_is(labels: &BTreeMap<String, String>, key: &str, wanted: Option<&str>) -> Result<(), String> {
    let found = labels.get(key).map(String::as_str);
    if found == wanted { Ok(()) } else { Err(format!("label {key} is {found:?} and not {wanted:?}")) }
}

fn has(taints: &[String], wanted: &str) -> Result<(), String> {
    if taints.iter().any(|taint| taint == wanted) {
        Ok(())
    } else {
        Err(format!("no taint {wanted}: {taints:?}"))
    }
}

fn has_not(taints: &[String], unwanted: &str) -> Result<(), String> {
    if taints.iter().any(|taint| taint == unwanted) {
        Err(format!("still tainted {unwanted}"))
    } else {
        Ok(())
    }
}

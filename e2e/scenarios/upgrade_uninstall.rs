//! `helm upgrade` changes what it was told to, under load; `helm uninstall` leaves nothing but CRDs and the objects that
//! people made of them, and no pod creation fails afterwards.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{CHART, Context, Look, SimulatedNode, Story};
use futures::future::try_join;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};
use serde_json::Value;

pub(crate) const STORY: Story = Story::plain(
    "upgrade-uninstall",
    "an upgrade fails no creation, an uninstall leaves nothing behind",
    |ctx| Box::pin(tell(ctx)),
);

const NAMESPACE: &str = "bifold-system";
const SOON: Duration = Duration::from_mins(1);
const NODE: &str = "fake-uninstall";

const POOL: &str = "
apiVersion: bifold.dev/v1alpha1
kind: WindowsNodePool
metadata: {name: uninstall}
spec:
  selector: {matchLabels: {story: uninstall}}
  labels: {team: web}
  runtimeClasses: [{name: uninstall-process}]
";

async fn tell(ctx: Context) -> Result<()> {
    let values = ctx.installed_values().await?;
    let upgrade = ["upgrade", "bifold", CHART, "--values", &values, "--set=webhook.replicas=3", "--wait"];
    let (missed, _) = try_join(create_pods(&ctx), ctx.helm(upgrade)).await?;
    ensure!(missed == 0, "{missed} pods were created without their placement during the upgrade");
    let replicas = ctx.replicas().await?.len();
    ensure!(replicas == 3, "{replicas} webhook replicas after the upgrade to 3");

    ctx.simulated_node(&SimulatedNode {
        labels: BTreeMap::from([("story".to_owned(), "uninstall".to_owned())]),
        ..SimulatedNode::named(NODE)
    })
    .await?;
    let nodes: Api<Node> = Api::all(ctx.client.clone());
    let before = nodes.get(NODE).await?;
    ctx.apply(POOL).await?;
    labelled(&ctx, &nodes, true).await?;

    ctx.helm(["uninstall", "bifold", "--wait"]).await?;
    let uninstalled = without_bifold(&ctx, &before).await;
    ctx.helm(["install", "bifold", CHART, "--values", &values, "--wait"]).await?;
    uninstalled?;

    // Installed again, Bifold takes up the pool that was left.
    labelled(&ctx, &nodes, true).await?;
    ctx.delete(POOL).await?;
    labelled(&ctx, &nodes, false).await
}

async fn without_bifold(ctx: &Context, before: &Node) -> Result<()> {
    nothing_is_left(ctx, before).await?;
    let placed = ctx.create_gated_pod().await.context("after the uninstall")?;
    ensure!(!placed, "a pod was placed after the uninstall");
    Ok(())
}

async fn nothing_is_left(ctx: &Context, before: &Node) -> Result<()> {
    let kinds = list(ctx, &["api-resources", "--verbs=list"]).await?;
    let kinds = kinds.lines().filter(|kind| !kind.starts_with("events")).collect::<Vec<_>>().join(",");
    for selector in [
        "app.kubernetes.io/instance=bifold",
        "app.kubernetes.io/managed-by=bifold-operator",
        "bifold.dev/made-for-pool",
    ] {
        let selector = format!("--selector={selector}");
        ctx.wait_for(&format!("the deletion of everything with {selector}"), SOON, || async {
            let left = list(ctx, &["get", &kinds, "--all-namespaces", &selector]).await?;
            Ok(if left.trim().is_empty() { Look::Done(()) } else { Look::NotYet(left) })
        })
        .await?;
    }
    let left = list(ctx, &["get", "secrets,leases,pods", "--namespace", NAMESPACE]).await?;
    ensure!(left.trim().is_empty(), "left in {NAMESPACE}: {left}");

    let nodes: Api<Node> = Api::all(ctx.client.clone());
    let after = nodes.get(NODE).await?;
    ensure!(after.labels() == before.labels(), "labels were {:?}, are {:?}", before.labels(), after.labels());
    // Others annotate the node meanwhile; labels and taints are nobody's but ours.
    let annotation = after.annotations().keys().find(|key| key.starts_with("bifold.dev/"));
    ensure!(annotation.is_none(), "the annotation {annotation:?} is left");
    let taints = |node: &Node| node.spec.as_ref().and_then(|s| s.taints.clone()).unwrap_or_default();
    ensure!(taints(&after) == taints(before), "taints are {:?}", taints(&after));

    let pool = ctx.kubectl(["get", "windowsnodepool", "uninstall", "--output=json"]).await?;
    let pool: Value = serde_json::from_str(&pool.stdout).context(pool.stderr)?;
    ensure!(
        pool["metadata"]["finalizers"].is_null(),
        "the pool cannot be deleted any more: {}",
        pool["metadata"]
    );
    Ok(())
}

async fn list(ctx: &Context, args: &[&str]) -> Result<String> {
    let output = ctx.kubectl(args.iter().copied().chain(["--output=name"])).await?;
    ensure!(output.status.success(), "kubectl {}: {}", args.join(" "), output.stderr);
    Ok(output.stdout)
}

/// Creates pods one after the other for as long as the upgrade takes at least; returns how many were not placed.
async fn create_pods(ctx: &Context) -> Result<usize> {
    let mut missed = 0;
    let mut pace = tokio::time::interval(Duration::from_millis(50));
    for number in 1..=400 {
        pace.tick().await;
        let placed = ctx.create_gated_pod().await.with_context(|| format!("pod {number}"))?;
        missed += usize::from(!placed);
    }
    ctx.delete_pods().await?;
    Ok(missed)
}

async fn labelled(ctx: &Context, nodes: &Api<Node>, wanted: bool) -> Result<()> {
    ctx.wait_for("the pool's label", SOON, || async {
        let labels = nodes.get(NODE).await?.labels().clone();
        let found = labels.contains_key("bifold.dev/pool");
        Ok(if found == wanted { Look::Done(()) } else { Look::NotYet(format!("{labels:?}")) })
    })
    .await
}

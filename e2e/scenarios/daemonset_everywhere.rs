//! A third-party DaemonSet that tolerates every taint and selects no OS runs on Linux nodes only.
//!
//! Taints cannot keep it away from Windows, and its pods cannot be sent elsewhere one by one: each is made for one node.
//! So its template is what the webhook changes.

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{BUILDS_FOR_LTSC2022, Context, PAUSE_IMAGE, Story, build_of, os_of};
use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Node};
use kube::{Api, api::ListParams};

pub(crate) const STORY: Story = Story::placement(
    "daemonset-everywhere",
    "a DaemonSet that tolerates everything runs on Linux nodes only",
    |ctx| Box::pin(with(ctx)),
    |ctx| Box::pin(without(ctx)),
);

fn daemon_set() -> String {
    format!(
        "
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: node-exporter
spec:
  selector:
    matchLabels: {{app: node-exporter}}
  template:
    metadata:
      labels: {{app: node-exporter}}
    spec:
      tolerations:
      - operator: Exists
      containers:
      - name: node-exporter
        image: {PAUSE_IMAGE}
"
    )
}

async fn with(ctx: Context) -> Result<()> {
    ctx.apply(&daemon_set()).await?;
    let linux = nodes(&ctx, "linux").await?;
    for placed in ctx.placed("app=node-exporter", linux).await? {
        ensure!(os_of(&placed.node) == "linux", "{placed} is no Linux node");
    }
    let daemon_sets: Api<DaemonSet> = Api::namespaced(ctx.client.clone(), &ctx.namespace);
    let status = daemon_sets.get("node-exporter").await?.status.context("the DaemonSet has no status")?;
    let desired = usize::try_from(status.desired_number_scheduled)?;
    ensure!(desired == linux, "the DaemonSet controller wants {desired} pods, for {linux} Linux nodes");

    // An update is made from the author's file, which still selects nothing.
    ctx.apply(&daemon_set().replace("operator: Exists", "operator: Exists\n        effect: NoSchedule"))
        .await?;
    let updated = daemon_sets.get("node-exporter").await?;
    let template = updated.spec.and_then(|spec| spec.template.spec).context("the template has no spec")?;
    let selected = template.node_selector.unwrap_or_default();
    ensure!(
        selected.get("kubernetes.io/os").map(String::as_str) == Some("linux"),
        "after an update: {selected:?}"
    );

    // What was written for the old image must not hold the new one back.
    ctx.apply(&daemon_set().replace(PAUSE_IMAGE, "mcr.microsoft.com/windows/nanoserver:ltsc2022")).await?;
    for placed in ctx.placed("app=node-exporter", 4).await? {
        ensure!(BUILDS_FOR_LTSC2022.contains(&build_of(&placed.node)), "{placed} cannot run the image");
    }
    Ok(())
}

async fn without(ctx: Context) -> Result<()> {
    ctx.apply(&daemon_set()).await?;
    let all = nodes(&ctx, "linux").await? + nodes(&ctx, "windows").await?;
    let bound = ctx.bound("app=node-exporter", all).await?;
    ensure!(bound.iter().any(|placed| os_of(&placed.node) == "windows"), "no pod landed on Windows");
    Ok(())
}

async fn nodes(ctx: &Context, os: &str) -> Result<usize> {
    let nodes: Api<Node> = Api::all(ctx.client.clone());
    let of_os = ListParams::default().labels(&format!("kubernetes.io/os={os}"));
    Ok(nodes.list_metadata(&of_os).await?.items.len())
}

//! A Windows DaemonSet with a selector and no toleration runs once on every Windows node that can run its image.
//!
//! Without Bifold the DaemonSet controller makes no pod for a tainted node, and nothing is Pending: nothing shows that
//! anything is missing. On the nodes without a taint it makes pods whose image does not run there.
//!
//! When the image is replaced by one of another build, the pods move to the nodes of that build.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use bifold_e2e::story::{BUILDS_FOR_LTSC2022, Context, Placed, Story, build_of};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt, api::ListParams};

pub(crate) const STORY: Story = Story::placement(
    "windows-daemonset",
    "a Windows DaemonSet has one pod on every node that runs its image",
    |ctx| Box::pin(with(ctx)),
    |ctx| Box::pin(without(ctx)),
);

const DAEMON_SET: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: log-shipper
spec:
  selector:
    matchLabels: {app: log-shipper}
  template:
    metadata:
      labels: {app: log-shipper}
    spec:
      nodeSelector:
        kubernetes.io/os: windows
      containers:
      - name: log-shipper
        image: mcr.microsoft.com/windows/nanoserver:ltsc2022
";

async fn with(ctx: Context) -> Result<()> {
    ctx.apply(DAEMON_SET).await?;
    runs_on(&ctx, &BUILDS_FOR_LTSC2022, 4).await?;
    // What was added for the old image must not keep the new one to the old nodes.
    ctx.apply(&DAEMON_SET.replace("ltsc2022", "ltsc2019")).await?;
    runs_on(&ctx, &["10.0.17763"], 2).await
}

/// Waits until there is one pod on every node of these builds, of which there are `count`, and no other.
async fn runs_on(ctx: &Context, builds: &[&str], count: usize) -> Result<()> {
    let wanted = windows_nodes(ctx, |node| builds.contains(&build_of(node))).await?;
    ensure!(wanted.len() == count, "the cluster has other nodes than this story knows: {wanted:?}");
    let placed = ctx.placed("app=log-shipper", count).await?;
    ensure!(names(&placed) == wanted, "the pods are on {:?} and not on {wanted:?}", names(&placed));
    Ok(())
}

async fn without(ctx: Context) -> Result<()> {
    ctx.apply(DAEMON_SET).await?;
    let untainted =
        |node: &Node| node.spec.as_ref().and_then(|s| s.taints.as_ref()).is_none_or(Vec::is_empty);
    let open = windows_nodes(&ctx, untainted).await?;
    let placed = ctx.bound("app=log-shipper", open.len()).await?;
    ensure!(names(&placed) == open, "the pods are on {:?} and not on {open:?}", names(&placed));
    for placed in placed {
        ensure!(
            !BUILDS_FOR_LTSC2022.contains(&build_of(&placed.node)),
            "{placed}, where its image would run"
        );
    }
    Ok(())
}

async fn windows_nodes(ctx: &Context, choose: impl Fn(&Node) -> bool) -> Result<BTreeSet<String>> {
    let nodes: Api<Node> = Api::all(ctx.client.clone());
    let windows = nodes.list(&ListParams::default().labels("kubernetes.io/os=windows")).await?;
    Ok(windows.items.iter().filter(|node| choose(node)).map(ResourceExt::name_any).collect())
}

fn names(placed: &[Placed]) -> BTreeSet<String> {
    placed.iter().map(|placed| placed.node.name_any()).collect()
}

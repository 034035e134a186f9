//! A webhook replica goes away while pods are being created: none of the creations fails, and every pod is placed.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{Context, Look, Story};
use futures::future::try_join;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};

pub(crate) const STORY: Story = Story::plain(
    "replica-lost",
    "no pod creation fails while a webhook replica is deleted or killed",
    |ctx| Box::pin(tell(ctx)),
);

const NAMESPACE: &str = "bifold-system";
const WEBHOOK: &str = "bifold-webhook";
const WEBHOOK_PODS: &str = "app.kubernetes.io/component=webhook";
/// Enough that creations are under way before, while and after the replica is gone.
const PODS: usize = 400;
/// The last of them are created when a crash must have been noticed.
const AFTER: usize = 100;

async fn tell(ctx: Context) -> Result<()> {
    // An orderly end, as in a roll-out: the replica drains, and no pod goes without its placement.
    let (placed, ()) = try_join(create_pods(&ctx), lose_a_replica(&ctx, Loss::Deleted)).await?;
    let missed = placed.iter().filter(|placed| !**placed).count();
    ensure!(
        missed == 0,
        "{missed} of {PODS} pods were created without their placement while a replica drained"
    );
    both_ready(&ctx).await?;

    // A crash: until it is noticed, pods for which the API server turns to the dead replica are admitted unchanged.
    let (placed, ()) = try_join(create_pods(&ctx), lose_a_replica(&ctx, Loss::Killed)).await?;
    let missed = placed[PODS - AFTER..].iter().filter(|placed| !**placed).count();
    ensure!(missed == 0, "long after a crash {missed} of {AFTER} pods were created without their placement");
    both_ready(&ctx).await
}

/// Creates pods one after the other; none may fail. Says of each whether the webhook placed it.
async fn create_pods(ctx: &Context) -> Result<Vec<bool>> {
    let mut placed = Vec::with_capacity(PODS);
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    for number in 0..PODS {
        pace.tick().await;
        placed.push(ctx.create_gated_pod().await.with_context(|| format!("pod {number}"))?);
    }
    ctx.delete_pods().await?;
    Ok(placed)
}

/// How a replica goes away.
enum Loss {
    /// It is told to end, and drains.
    Deleted,
    /// It is gone from one moment to the next.
    Killed,
}

/// Loses one replica once creations have begun.
async fn lose_a_replica(ctx: &Context, how: Loss) -> Result<()> {
    let created: Api<Pod> = Api::namespaced(ctx.client.clone(), &ctx.namespace);
    ctx.wait_for("the first pods", Duration::from_secs(30), || async {
        let count = created.list_metadata(&ListParams::default()).await?.items.len();
        Ok(if count > PODS / 10 { Look::Done(()) } else { Look::NotYet(format!("{count} pods")) })
    })
    .await?;
    let replicas: Api<Pod> = Api::namespaced(ctx.client.clone(), NAMESPACE);
    let running = replicas.list_metadata(&ListParams::default().labels(WEBHOOK_PODS)).await?;
    let victim = running.items.first().context("no webhook pod runs")?.name_any();
    match how {
        Loss::Deleted => replicas.delete(&victim, &DeleteParams::default()).await.map(drop)?,
        Loss::Killed => ctx.kill_containers(&victim)?,
    }
    Ok(())
}

async fn both_ready(ctx: &Context) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(ctx.client.clone(), NAMESPACE);
    let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), NAMESPACE);
    ctx.wait_for("two ready webhook replicas", Duration::from_mins(1), || async {
        let ready = deployments.get(WEBHOOK).await?.status.and_then(|s| s.ready_replicas).unwrap_or(0);
        let pods = pods.list_metadata(&ListParams::default().labels(WEBHOOK_PODS)).await?.items.len();
        let seen = format!("{ready} ready of {pods} pods");
        Ok(if (ready, pods) == (2, 2) { Look::Done(()) } else { Look::NotYet(seen) })
    })
    .await
}

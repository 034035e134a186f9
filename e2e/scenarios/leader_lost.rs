//! The leading operator goes away; the other replica takes over and pools are reconciled again.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{Context, Look, SimulatedNode, Story};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use kube::{Api, ResourceExt as _, api::DeleteParams};

pub(crate) const STORY: Story =
    Story::plain("leader-lost", "the second operator takes over when the leader is killed", |ctx| {
        Box::pin(tell(ctx))
    });

const NAMESPACE: &str = "bifold-system";
/// The term of the lease, and as much again for a slow machine.
const TAKEN_OVER_WITHIN: Duration = Duration::from_mins(1);

const POOL: &str = "
apiVersion: bifold.dev/v1alpha1
kind: WindowsNodePool
metadata: {name: leader-lost}
spec:
  selector: {matchLabels: {story: leader-lost}}
  runtimeClasses: []
";

async fn tell(ctx: Context) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(ctx.client.clone(), NAMESPACE);
    let before = holder(&leases).await?.context("nobody leads")?;
    let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), NAMESPACE);
    // It cannot give the lease back, and its pod is not there to be started again.
    ctx.kill_containers(&before)?;
    pods.delete(&before, &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }).await?;

    ctx.simulated_node(&SimulatedNode {
        labels: BTreeMap::from([("story".to_owned(), "leader-lost".to_owned())]),
        ..SimulatedNode::named("fake-leader-lost")
    })
    .await?;
    ctx.apply(POOL).await?;
    let nodes: Api<Node> = Api::all(ctx.client.clone());
    ctx.wait_for("the node's pool label", TAKEN_OVER_WITHIN, || async {
        let node = nodes.get("fake-leader-lost").await?;
        let pool = node.labels().get("bifold.dev/pool").cloned();
        Ok(if pool.as_deref() == Some("leader-lost") {
            Look::Done(())
        } else {
            Look::NotYet(format!("{pool:?}"))
        })
    })
    .await?;
    let after = holder(&leases).await?.context("nobody leads")?;
    ensure!(after != before, "{before} still leads");

    // The pool goes before its node does, by the new leader's hand.
    ctx.delete(POOL).await?;
    ctx.wait_for("the node's release", TAKEN_OVER_WITHIN, || async {
        let node = nodes.get("fake-leader-lost").await?;
        let left = node.labels().contains_key("bifold.dev/pool");
        Ok(if left { Look::NotYet("labelled".to_owned()) } else { Look::Done(()) })
    })
    .await
}

async fn holder(leases: &Api<Lease>) -> Result<Option<String>> {
    let lease = leases.get("bifold-operator").await?;
    Ok(lease.spec.and_then(|spec| spec.holder_identity).filter(|holder| !holder.is_empty()))
}

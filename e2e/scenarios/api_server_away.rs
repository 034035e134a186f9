//! The API server is away for a minute: the webhook answers from memory all the while, and afterwards webhook and
//! operator follow what changes in the cluster, without anybody's help.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{Context, Look, Replica, SimulatedNode, Story};
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) const STORY: Story =
    Story::plain("api-server-away", "webhook and operator survive a minute without the API server", |ctx| {
        Box::pin(tell(ctx))
    });

const AWAY: Duration = Duration::from_mins(1);
/// Pods reach the API server through kube-proxy, whose own watches come back after up to a minute; then ours are
/// retried, and an operator that lost its lease has been started again by the kubelet.
const RECOVERED_WITHIN: Duration = Duration::from_mins(4);
const APISERVER: &str = "kube-apiserver";

const POOL: &str = "
apiVersion: bifold.dev/v1alpha1
kind: WindowsNodePool
metadata: {name: api-server-away}
spec:
  selector: {matchLabels: {story: api-server-away}}
  taints: []
  runtimeClasses: []
";

async fn tell(ctx: Context) -> Result<()> {
    let restarts = ctx.webhook_restarts().await?;
    let replicas = ctx.replicas().await?;

    ctx.cluster.stop_part(APISERVER).await?;
    let answered = answers_while_away(&replicas).await;
    ctx.cluster.restart_part(APISERVER).await?;
    answered?;

    // Neither has seen this node before: both must be watching again.
    let taint = Taint {
        key: "os".into(),
        value: Some("windows-after-the-outage".into()),
        effect: "NoSchedule".into(),
        time_added: None,
    };
    ctx.simulated_node(&SimulatedNode {
        labels: BTreeMap::from([("story".to_owned(), "api-server-away".to_owned())]),
        taints: vec![taint],
        ..SimulatedNode::named("fake-after-the-outage")
    })
    .await?;
    ctx.apply(POOL).await?;
    let nodes: Api<Node> = Api::all(ctx.client.clone());
    ctx.wait_for("the operator's label on the new node", RECOVERED_WITHIN, || async {
        let pool = nodes.get("fake-after-the-outage").await?.labels().get("bifold.dev/pool").cloned();
        Ok(if pool.is_some() { Look::Done(()) } else { Look::NotYet("none".to_owned()) })
    })
    .await?;
    for replica in &replicas {
        ctx.wait_for(&format!("the new node's taint in {}", replica.name), RECOVERED_WITHIN, || async {
            let patch = patch_of(replica).await?;
            let known = patch.contains("windows-after-the-outage");
            Ok(if known { Look::Done(()) } else { Look::NotYet(patch) })
        })
        .await?;
    }
    ensure!(ctx.webhook_restarts().await? == restarts, "a webhook replica was started again");
    Ok(())
}

/// Asks every replica again and again for the whole time; each answer must place the pod, by what it knows of nodes.
async fn answers_while_away(replicas: &[Replica]) -> Result<()> {
    let until = Instant::now() + AWAY;
    let mut pace = tokio::time::interval(Duration::from_secs(1));
    while Instant::now() < until {
        pace.tick().await;
        for replica in replicas {
            let patch = patch_of(replica).await?;
            ensure!(
                patch.contains("tolerations") && patch.contains("10.0.20348"),
                "{}: {patch}",
                replica.name
            );
        }
    }
    Ok(())
}

/// The patch for a Windows pod, as the JSON it is.
async fn patch_of(replica: &Replica) -> Result<String> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "admin"},
            "object": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {
                    "nodeSelector": {"kubernetes.io/os": "windows"},
                    "containers": [{"name": "c", "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022"}],
                },
            },
        },
    });
    let (status, answer) = replica.mutate(review.to_string()).await?;
    ensure!(status == 200, "{status} {answer}");
    let answer: Value = serde_json::from_str(&answer)?;
    let patch: k8s_openapi::ByteString =
        serde_json::from_value(answer["response"]["patch"].clone()).with_context(|| answer.to_string())?;
    Ok(String::from_utf8(patch.0)?)
}

//! Whatever is sent to the webhook gets a clear answer, and the process lives on.

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{Context, Replica, Story};
use serde_json::{Value, json};

pub(crate) const STORY: Story =
    Story::plain("bad-input", "what is no review of a pod gets a clear answer and harms nothing", |ctx| {
        Box::pin(tell(ctx))
    });

async fn tell(ctx: Context) -> Result<()> {
    let restarts = ctx.webhook_restarts().await?;
    let replicas = ctx.replicas().await?;
    let replica = replicas.first().context("no replica")?;

    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let without_pod = review(&json!({"kind": "Pod", "spec": "windows"}), "pods").to_string();
    let no_reviews = [
        ("nothing", Vec::new()),
        ("no JSON", b"{\"apiVersion\": ".to_vec()),
        ("no UTF-8", vec![0xff; 64]),
        ("no review", b"{}".to_vec()),
        ("a list", b"[1, 2, 3]".to_vec()),
        (
            "a review without a request",
            br#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#.to_vec(),
        ),
        ("deep nesting", nested.into_bytes()),
    ];
    for (what, body) in no_reviews {
        let (status, sentence) = replica.mutate(body).await.context(what)?;
        ensure!(status == 400, "{what}: {status} {sentence}");
        ensure!(sentence.trim().len() > 10, "{what}: no sentence: {sentence:?}");
    }
    let (status, _) = replica.mutate(vec![b' '; 8 << 20]).await.context("8 MiB")?;
    ensure!(status == 413, "8 MiB: {status}");

    // These are reviews, so each is answered as one: allowed and unchanged.
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"os": "windows"}});
    unchanged(replica, "another kind", &review(&foreign, "configmaps")).await?;
    unchanged(replica, "no object", &review(&Value::Null, "pods")).await?;
    // This one is a review of something that is no pod: the answer may be either, but it is an answer.
    let (status, answer) = replica.mutate(without_pod).await?;
    ensure!(status == 200 || status == 400, "a pod whose spec is a string: {status} {answer}");

    let pod = large_pod();
    let size = pod.to_string().len();
    ensure!(size > 1 << 20, "the large pod has only {size} bytes");
    let (status, answer) = replica.mutate(review(&pod, "pods").to_string()).await?;
    let answer: Value = serde_json::from_str(&answer)?;
    ensure!(status == 200 && answer["response"]["patch"].is_string(), "1,000 containers: {status} {answer}");

    ensure!(ctx.webhook_restarts().await? == restarts, "a replica was started again");
    let (status, answer) = replica.mutate(review(&small_pod(), "pods").to_string()).await?;
    ensure!(status == 200 && answer.contains("\"patch\""), "an ordinary pod afterwards: {status} {answer}");
    Ok(())
}

async fn unchanged(replica: &Replica, what: &str, review: &Value) -> Result<()> {
    let (status, answer) = replica.mutate(review.to_string()).await.context(what.to_owned())?;
    let answer: Value =
        serde_json::from_str(&answer).with_context(|| format!("{what}: {status} {answer}"))?;
    let response = &answer["response"];
    ensure!(
        status == 200
            && response["allowed"] == true
            && response["patch"].is_null()
            && response["uid"] == "u-1",
        "{what}: {status} {answer}"
    );
    Ok(())
}

fn review(object: &Value, resource: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": object["kind"].as_str().unwrap_or("Pod")},
            "resource": {"group": "", "version": "v1", "resource": resource},
            "namespace": "default",
            "operation": if object.is_null() { "DELETE" } else { "CREATE" },
            "userInfo": {"username": "admin"},
            "object": object,
            "oldObject": null,
            "dryRun": false,
            "options": null,
        },
    })
}

fn small_pod() -> Value {
    pod(&[json!({"name": "c", "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022"})])
}

/// More than 1 MiB in 1,000 containers.
fn large_pod() -> Value {
    let container = |number: usize| {
        json!({
            "name": format!("c{number}"),
            "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022",
            "args": ["x".repeat(1000)],
        })
    };
    pod(&(0..1000).map(container).collect::<Vec<_>>())
}

fn pod(containers: &[Value]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"os": {"name": "windows"}, "containers": containers},
    })
}

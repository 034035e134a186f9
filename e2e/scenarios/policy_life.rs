//! A policy for one namespace is in force there as soon as it is made, says in its status what it governs and what of it
//! is not known, and is in force no more when it is deleted.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{Context, Look, Story};
use serde_json::Value;

pub(crate) const STORY: Story =
    Story::plain("policy-life", "a policy changes what a rule does, in its namespaces only", |ctx| {
        Box::pin(tell(ctx))
    });

const SOON: Duration = Duration::from_secs(20);

/// `NAMESPACE` is filled in.
const POLICY: &str = "
apiVersion: bifold.dev/v1alpha1
kind: WindowsWorkloadPolicy
metadata: {name: policy-life}
spec:
  priority: 10
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
  rules: {secret-volume: Warn, a-rule-of-next-year: Deny}
";

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: with-volume}
spec:
  nodeSelector: {kubernetes.io/os: windows}
  containers:
  - name: app
    image: mcr.microsoft.com/windows/servercore:ltsc2022
    volumeMounts: [{name: db, mountPath: 'C:\\db'}]
  volumes: [{name: db, secret: {secretName: db}}]
";

async fn tell(ctx: Context) -> Result<()> {
    let before = dry_run(&ctx, &ctx.namespace).await?;
    ensure!(before.contains("denied the request: secret-volume"), "before: {before}");

    let policy = POLICY.replace("NAMESPACE", &ctx.namespace);
    ctx.apply(&policy).await?;
    said(&ctx, "Warning: bifold: secret-volume").await?;
    let elsewhere = dry_run(&ctx, "default").await?;
    ensure!(elsewhere.contains("denied the request: secret-volume"), "in another namespace: {elsewhere}");

    ctx.wait_for("the policy's status", SOON, || async {
        let output = ctx.kubectl(["get", "windowsworkloadpolicy", "policy-life", "--output=json"]).await?;
        let policy: Value = serde_json::from_str(&output.stdout).context(output.stderr)?;
        let status = &policy["status"];
        let told = status["observedGeneration"] == policy["metadata"]["generation"]
            && status["namespaces"] == 1
            && status["unknownRules"] == serde_json::json!(["a-rule-of-next-year"]);
        Ok(if told { Look::Done(()) } else { Look::NotYet(status.to_string()) })
    })
    .await?;

    ctx.delete(&policy).await?;
    said(&ctx, "denied the request: secret-volume").await
}

async fn said(ctx: &Context, wanted: &str) -> Result<()> {
    ctx.wait_for(&format!("{wanted:?}"), SOON, || async {
        let said = dry_run(ctx, &ctx.namespace).await?;
        Ok(if said.contains(wanted) { Look::Done(()) } else { Look::NotYet(said) })
    })
    .await
}

/// What kubectl says when the pod would be created, and whether or not it would be.
async fn dry_run(ctx: &Context, namespace: &str) -> Result<String> {
    let mut kubectl = ctx.cluster.kubectl()?;
    kubectl.args(["create", "--dry-run=server", "--filename=-", "--namespace", namespace]);
    Ok(bifold_e2e::shell::output_with_input(&mut kubectl, POD).await?.stderr)
}

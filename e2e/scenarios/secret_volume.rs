//! A Windows pod that mounts a Secret is refused with a sentence that says why and what to write instead; written so,
//! it runs. Every Windows pod keeps its service-account token.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{Context, Look, Story, os_of};

pub(crate) const STORY: Story = Story::placement(
    "secret-volume",
    "a Secret volume is refused on Windows, an environment variable is not",
    |ctx| Box::pin(with(ctx)),
    |ctx| Box::pin(without(ctx)),
);

const SECRET: &str = "
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: correct-horse}
";

/// `NAME`, `VOLUME` and `CONTAINER` are filled in.
const POD: &str = "
apiVersion: v1
kind: Pod
metadata:
  name: NAME
  labels: {app: NAME}
spec:
  nodeSelector: {kubernetes.io/os: windows}
  containers:
  - name: app
    image: mcr.microsoft.com/windows/servercore:ltsc2022
CONTAINER
VOLUME
";

const MOUNT: &str = "    volumeMounts: [{name: VOLUME_NAME, mountPath: 'C:\\secrets'}]";

fn pod(name: &str, container: &str, volumes: &str) -> String {
    POD.replace("NAME", name).replace("CONTAINER", container).replace("VOLUME", volumes)
}

fn mounting(name: &str, volume: &str, source: &str) -> String {
    pod(name, &MOUNT.replace("VOLUME_NAME", volume), &format!("  volumes: [{{name: {volume}, {source}}}]"))
}

async fn with(ctx: Context) -> Result<()> {
    ctx.apply(SECRET).await?;

    let why = ctx.refused(&mounting("plain", "db", "secret: {secretName: db}")).await?;
    for word in ["secret-volume", "spec.volumes[0]", "secretKeyRef"] {
        ensure!(why.contains(word), "the refusal does not say {word:?}: {why}");
    }
    ensure!(!why.contains("correct-horse"), "the refusal shows the Secret: {why}");

    // The ServiceAccount plug-in takes any volume of such a name for its own: a name must not be enough.
    let disguised = "projected: {sources: [{secret: {name: db}}]}";
    let why = ctx.refused(&mounting("disguised", "kube-api-access-zzzzz", disguised)).await?;
    ensure!(why.contains("secret-volume") && why.contains("projected.sources[0]"), "{why}");

    // A refused pod of a Deployment shows in events only: the Deployment itself is never refused.
    ctx.apply(&deployment()).await?;
    ctx.wait_for("an event that names the rule", Duration::from_secs(30), || async {
        let output = ctx.kubectl(["get", "events", "--field-selector=reason=FailedCreate"]).await?;
        Ok(if output.stdout.contains("secret-volume") { Look::Done(()) } else { Look::NotYet(output.stdout) })
    })
    .await?;

    let env = "    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}]";
    ctx.apply(&pod("with-env", env, "")).await?;
    for placed in ctx.placed("app=with-env", 1).await? {
        ensure!(os_of(&placed.node) == "windows", "{placed} is no Windows node");
        let volumes = placed.pod.spec.context("a pod without spec")?.volumes.unwrap_or_default();
        let token = volumes.iter().filter_map(|v| v.projected.as_ref()?.sources.as_ref()).flatten();
        ensure!(token.filter(|s| s.service_account_token.is_some()).count() == 1, "no token: {volumes:?}");
    }
    Ok(())
}

/// Kubernetes itself does not mind.
async fn without(ctx: Context) -> Result<()> {
    ctx.apply(SECRET).await?;
    ctx.apply(&mounting("plain", "db", "secret: {secretName: db}")).await?;
    Ok(())
}

fn deployment() -> String {
    let mount = MOUNT.replace("VOLUME_NAME", "db");
    let template = format!(
        "    spec:
      nodeSelector: {{kubernetes.io/os: windows}}
      containers:
      - name: app
        image: mcr.microsoft.com/windows/servercore:ltsc2022
    {mount}
      volumes: [{{name: db, secret: {{secretName: db}}}}]
"
    );
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: with-volume}}
spec:
  replicas: 1
  selector:
    matchLabels: {{app: with-volume}}
  template:
    metadata:
      labels: {{app: with-volume}}
{template}"
    )
}

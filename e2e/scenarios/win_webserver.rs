//! The `win-webserver` Deployment of the Kubernetes documentation, which says which operating system it is for and
//! nothing else, runs on a node whose Windows can run its image.

use anyhow::{Result, ensure};
use bifold_e2e::story::{BUILDS_FOR_LTSC2022, Context, Story, build_of};

pub(crate) const STORY: Story = Story::placement(
    "win-webserver",
    "the documentation's Deployment lands where its image runs",
    |ctx| Box::pin(with(ctx)),
    |ctx| Box::pin(without(ctx)),
);

/// As in "Deploying Windows workloads", shortened; the image is of Windows Server 2022.
const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: win-webserver
  labels: {app: win-webserver}
spec:
  replicas: 2
  selector:
    matchLabels: {app: win-webserver}
  template:
    metadata:
      name: win-webserver
      labels: {app: win-webserver}
    spec:
      containers:
      - name: windowswebserver
        image: mcr.microsoft.com/windows/servercore:ltsc2022
        command: [powershell.exe, -command, 'while ($true) { Start-Sleep 60 }']
      nodeSelector:
        kubernetes.io/os: windows
";

async fn with(ctx: Context) -> Result<()> {
    ctx.apply(DEPLOYMENT).await?;
    for placed in ctx.placed("app=win-webserver", 2).await? {
        ensure!(BUILDS_FOR_LTSC2022.contains(&build_of(&placed.node)), "{placed} cannot run the image");
    }
    Ok(())
}

/// The selector is satisfied by any Windows node, and only those of Windows Server 2019 have no taint.
async fn without(ctx: Context) -> Result<()> {
    ctx.apply(DEPLOYMENT).await?;
    for placed in ctx.placed("app=win-webserver", 2).await? {
        ensure!(build_of(&placed.node) == "10.0.17763", "{placed}, where its image would run");
    }
    Ok(())
}

//! A Deployment that says nothing about Windows but its image runs on a node whose Windows can run that image.

use anyhow::{Result, ensure};
use bifold_e2e::story::{BUILDS_FOR_LTSC2022, Context, Story, build_of};

pub(crate) const STORY: Story = Story::placement(
    "image-only-deployment",
    "a Deployment with nothing but a Windows image lands where the image runs",
    |ctx| Box::pin(with(ctx)),
    |ctx| Box::pin(without(ctx)),
);

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: aspnet
spec:
  replicas: 3
  selector:
    matchLabels: {app: aspnet}
  template:
    metadata:
      labels: {app: aspnet}
    spec:
      containers:
      - name: web
        image: mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2022
";

async fn with(ctx: Context) -> Result<()> {
    ctx.apply(DEPLOYMENT).await?;
    for placed in ctx.placed("app=aspnet", 3).await? {
        ensure!(BUILDS_FOR_LTSC2022.contains(&build_of(&placed.node)), "{placed} cannot run the image");
    }
    Ok(())
}

/// Linux and Windows Server 2019 are all that the scheduler may choose from: the other nodes are tainted.
async fn without(ctx: Context) -> Result<()> {
    ctx.apply(DEPLOYMENT).await?;
    for placed in ctx.bound("app=aspnet", 3).await? {
        ensure!(
            !BUILDS_FOR_LTSC2022.contains(&build_of(&placed.node)),
            "{placed}, where its image would run"
        );
    }
    Ok(())
}

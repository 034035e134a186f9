//! A Deployment for Linux that says so nowhere stays on Linux, though Windows nodes have no taint and the most room.

use anyhow::{Result, ensure};
use bifold_e2e::story::{Context, PAUSE_IMAGE, Story, os_of};

pub(crate) const STORY: Story = Story::placement(
    "linux-deployment",
    "no replica of a Deployment without a selector lands on Windows",
    |ctx| Box::pin(with(ctx)),
    |ctx| Box::pin(without(ctx)),
);

const REPLICAS: usize = 6;

fn deployment() -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: api
spec:
  replicas: {REPLICAS}
  selector:
    matchLabels: {{app: api}}
  template:
    metadata:
      labels: {{app: api}}
    spec:
      containers:
      - name: api
        image: {PAUSE_IMAGE}
        resources:
          requests: {{cpu: 10m, memory: 8Mi}}
"
    )
}

async fn with(ctx: Context) -> Result<()> {
    ctx.apply(&deployment()).await?;
    for placed in ctx.placed("app=api", REPLICAS).await? {
        ensure!(os_of(&placed.node) == "linux", "{placed} is no Linux node");
    }
    Ok(())
}

async fn without(ctx: Context) -> Result<()> {
    ctx.apply(&deployment()).await?;
    let bound = ctx.bound("app=api", REPLICAS).await?;
    ensure!(
        bound.iter().any(|placed| os_of(&placed.node) == "windows"),
        "every replica landed on Linux by itself"
    );
    Ok(())
}

//! A second cluster comes up beside the first, is used, loses its supervisor to `kill -9`, and is removed without a trace.

use std::{collections::BTreeSet, fs, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::{
    cluster::layout::Layout,
    story::{Context, Look, Story},
};
use serde_json::Value;
use tokio::process::Command;

pub(crate) const STORY: Story =
    Story::plain("second-cluster", "a second cluster lives beside the first and leaves no trace", |ctx| {
        Box::pin(tell(ctx))
    });

async fn tell(ctx: Context) -> Result<()> {
    let name = format!("{}-2", ctx.cluster.layout.name());
    let before = traces()?;
    let used = use_it(&ctx, &name).await;
    let removed = e2e(&["down", "--name", &name]).await;
    used?;
    removed?;

    let left: BTreeSet<_> = traces()?.difference(&before).cloned().collect();
    ensure!(left.is_empty(), "left after `down`: {left:?}");
    ensure!(Layout::find(&name)?.is_none(), "the cluster is still known");
    // The first one has not noticed.
    let ready = ctx.kubectl(["get", "--raw=/readyz"]).await?;
    ensure!(ready.stdout == "ok", "the first cluster is not ready: {}", ready.stderr);
    // And again: there is nothing left to remove.
    e2e(&["down", "--name", &name]).await.map(drop)
}

async fn use_it(ctx: &Context, name: &str) -> Result<()> {
    e2e(&["up", "--name", name, "--without-bifold"]).await?;
    let nodes = e2e(&["kubectl", "--name", name, "get", "nodes", "--output=name"]).await?;
    ensure!(nodes.lines().count() == 7, "the nodes are {nodes}");
    let status = e2e(&["status", "--name", name]).await?;
    ensure!(status.contains("kube-apiserver"), "{status}");

    let layout = Layout::find(name)?.context("the cluster is not known")?;
    let owners: Value = serde_json::from_str(&fs::read_to_string(layout.path("supervisor.json"))?)?;
    for owner in owners.as_array().into_iter().flatten() {
        let killed =
            Command::new("kill").args(["-9", &owner["pid"].to_string()]).stderr(Stdio::null()).status();
        // The first of them takes the other with it.
        killed.await?;
    }
    ctx.wait_for("the end of the second API server", Duration::from_secs(20), || async {
        let answer = e2e(&["kubectl", "--name", name, "get", "--raw=/readyz", "--request-timeout=1s"]).await;
        Ok(if answer.is_err() { Look::Done(()) } else { Look::NotYet("it answers".to_owned()) })
    })
    .await
}

/// This very program, as a person would run it; what it prints.
async fn e2e(args: &[&str]) -> Result<String> {
    // By this name it is found even when it has been built again meanwhile.
    let output = Command::new("/proc/self/exe").args(args).stdin(Stdio::null()).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo e2e {}: {said}", args.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a cluster could leave on this machine: interfaces, mounts, routes, control groups and processes.
fn traces() -> Result<BTreeSet<String>> {
    let mut traces = BTreeSet::new();
    for interface in fs::read_dir("/sys/class/net")? {
        traces.insert(format!("interface {}", interface?.file_name().to_string_lossy()));
    }
    for file in ["/proc/self/mounts", "/proc/net/route"] {
        traces.extend(fs::read_to_string(file)?.lines().map(|line| format!("{file} {line}")));
    }
    for group in fs::read_dir("/sys/fs/cgroup")?.flatten() {
        let inside = fs::read_dir(group.path()).into_iter().flatten().flatten();
        traces.extend(inside.filter(|e| e.path().is_dir()).map(|e| format!("group {}", e.path().display())));
    }
    for process in fs::read_dir("/proc")?.flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if ["kube", "etcd", "containerd", "kwok"].iter().any(|program| command.contains(program)) {
            traces.insert(format!("process {} {command}", process.file_name().to_string_lossy()));
        }
    }
    Ok(traces)
}

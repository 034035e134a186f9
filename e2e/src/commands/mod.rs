//! One function for every subcommand.

mod test;

use std::process::{ExitCode, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

pub(crate) use test::test;

use crate::cluster::claim::Claim;
use crate::cluster::layout::Layout;
use crate::cluster::{Cluster, start, status as look, stop};
use crate::progress::Steps;
use crate::tools::Tools;
use crate::{images, install, machine, shell};

pub(crate) async fn up(name: &str, with_bifold: bool) -> Result<ExitCode> {
    let steps = Steps::new();
    let _claim = Claim::new(name)?;
    let cluster = bring_up(&steps, name, with_bifold).await?;
    println!("{}\n", steps.table());
    println!("Cluster {name:?} is running. To use it:\n");
    println!("  export KUBECONFIG={}", cluster.layout.kubeconfig().display());
    println!("  cargo e2e kubectl get nodes -o wide      (or your own kubectl)");
    println!("  cargo e2e status | logs kubelet | down");
    Ok(ExitCode::SUCCESS)
}

/// Starts a cluster, or finds it running, and installs Bifold as the checkout has it.
async fn bring_up(steps: &Steps, name: &str, with_bifold: bool) -> Result<Cluster> {
    let former = Layout::find(name)?;
    machine::prepare(steps).await?;
    let tools = Tools::build(steps).await?;
    let pause = images::pause(steps).await?;
    let bifold = if with_bifold { Some(images::bifold(steps).await?) } else { None };
    let cluster = match former {
        Some(layout) if start::is_complete(&layout) => {
            steps.say(&format!("cluster {name:?} is already running"));
            Cluster::new(layout, tools)
        }
        unfinished => {
            if let Some(layout) = unfinished {
                steps
                    .run(&format!("remove what is left of a former cluster {name:?}"), stop::stop(&layout))
                    .await?;
            }
            let hint = || {
                format!("see `cargo e2e logs PART --name {name}`; `cargo e2e down --name {name}` removes it")
            };
            let started = start::start(steps, Layout::reserve(name)?, tools, &pause);
            Box::pin(started).await.with_context(hint)?
        }
    };
    if let Some(bifold) = bifold {
        install::install(steps, &cluster, &bifold).await?;
    }
    Ok(cluster)
}

pub(crate) async fn down(name: Option<&str>) -> Result<ExitCode> {
    let layouts = match name {
        Some(name) => Layout::find(name)?.into_iter().collect(),
        None => Layout::all()?,
    };
    if layouts.is_empty() {
        println!("there is no such cluster");
    }
    for layout in layouts {
        stop::stop(&layout).await.with_context(|| format!("remove cluster {:?}", layout.name()))?;
        println!("cluster {:?} is removed", layout.name());
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn status(name: &str) -> Result<ExitCode> {
    println!("{}", look::describe(&Cluster::find(name)?).await?);
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn kubectl(name: &str, args: &[String]) -> Result<ExitCode> {
    let cluster = Cluster::find(name)?;
    // As `up` prints it and a terminal expects it: kubectl sees exactly what was typed.
    pass_on(cluster.kubectl()?.args(args)).await
}

pub(crate) async fn helm(name: &str, args: &[String]) -> Result<ExitCode> {
    let cluster = Cluster::find(name)?;
    pass_on(cluster.helm()?.args(args)).await
}

pub(crate) async fn logs(name: &str, part: &str, follow: bool) -> Result<ExitCode> {
    let layout = Cluster::find(name)?.layout;
    let log = layout.log(part);
    if !log.exists() {
        let logs = std::fs::read_dir(layout.path("logs"))?.flatten();
        let mut parts: Vec<String> =
            logs.filter_map(|log| Some(log.path().file_stem()?.to_string_lossy().into_owned())).collect();
        parts.sort();
        bail!("{part:?} has no log; these have: {}", parts.join(", "));
    }
    if follow {
        return pass_on(shell::command("tail").args(["--lines=50", "--follow"]).arg(log)).await;
    }
    print!("{}", std::fs::read_to_string(log)?);
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn load_images(name: &str) -> Result<ExitCode> {
    let (steps, cluster) = (Steps::new(), Cluster::find(name)?);
    let bifold = images::bifold(&steps).await?;
    steps.run("load Bifold's images", install::load(&cluster, &bifold)).await?;
    println!("tag {}", bifold.tag);
    Ok(ExitCode::SUCCESS)
}

/// Runs a program in the place of this one: same terminal, same exit code.
async fn pass_on(command: &mut Command) -> Result<ExitCode> {
    let status = command.stdin(Stdio::inherit()).status().await?;
    Ok(exit_code(status))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

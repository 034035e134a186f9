//! Every command of the README that needs a cluster, as it is written there and in that order.

use std::{collections::BTreeMap, path::Path, process::Stdio};

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::{
    shell,
    story::{BUILDS_FOR_LTSC2022, CHART, Context, Story, build_of, os_of},
};
use tokio::{io::AsyncWriteExt as _, process::Command};

pub(crate) const STORY: Story =
    Story::plain("readme", "the README's walk-through does what it says", |ctx| Box::pin(tell(ctx)));

const README: &str = include_str!("../../README.md");
/// Told elsewhere: by the story `second-cluster`, and by the run that this story is part of.
const TOLD_ELSEWHERE: [&str; 2] = ["cargo e2e up", "cargo e2e test"];

/// A block of commands in the README.
struct Block {
    commands: String,
    /// Marked `sh refused`: the API server must refuse what it applies.
    refused: bool,
}

async fn tell(ctx: Context) -> Result<()> {
    let values = ctx.installed_values().await?;
    // The README starts from a cluster without Bifold.
    ctx.helm(["uninstall", "bifold", "--wait"]).await?;
    let told = walk_through(&ctx, &values).await;
    let again = ctx.helm(["upgrade", "--install", "bifold", CHART, "--values", &values, "--wait"]).await;
    ctx.kubectl(["delete", "windowsnodepool", "ws2022", "--ignore-not-found"]).await?;
    told?;
    again.map(drop)
}

async fn walk_through(ctx: &Context, values: &str) -> Result<()> {
    let blocks = blocks(README);
    ensure!(blocks.len() >= 6, "only {} blocks of commands were found", blocks.len());
    ensure!(blocks.iter().any(|block| block.refused), "no refusal is shown");
    for block in blocks {
        // The one difference to what a reader types: the images of this checkout are in no registry.
        let images = format!("helm install --values={values} bifold ");
        let commands = block.commands.replace("helm install bifold ", &images);
        let (success, said) = run(ctx, &commands).await?;
        ensure!(success != block.refused, "{commands}\n{said}");
        if block.refused {
            ensure!(said.contains("secret-volume") && said.contains("secretKeyRef"), "{said}");
        }
        if commands.contains("kubectl create deployment") {
            landed(ctx).await?;
        }
    }
    Ok(())
}

async fn landed(ctx: &Context) -> Result<()> {
    for placed in ctx.placed("app=aspnet", 1).await? {
        ensure!(BUILDS_FOR_LTSC2022.contains(&build_of(&placed.node)), "{placed} cannot run the image");
    }
    for placed in ctx.bound("app=web", 3).await? {
        ensure!(os_of(&placed.node) == "linux", "{placed} is no Linux node");
    }
    Ok(())
}

/// Runs commands in the root of the checkout, in the story's namespace, with kubectl and Helm of this cluster.
async fn run(ctx: &Context, commands: &str) -> Result<(bool, String)> {
    let (kubectl, helm) = (ctx.cluster.kubectl()?, ctx.cluster.helm()?);
    let mut path: Vec<_> = std::env::split_paths(&shell::search_path()).collect();
    for program in [&kubectl, &helm] {
        let program = Path::new(program.as_std().get_program());
        path.insert(0, program.parent().context("a program without a directory")?.to_owned());
    }
    let told: BTreeMap<_, _> =
        helm.as_std().get_envs().filter_map(|(key, value)| Some((key, value?))).collect();
    let kubeconfig = in_namespace(ctx).await?;
    let mut bash = Command::new("bash")
        .args(["-euo", "pipefail", "-s"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .envs(told)
        .env("PATH", std::env::join_paths(path)?)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = bash.stdin.take().context("bash has no input")?;
    input.write_all(commands.as_bytes()).await?;
    drop(input);
    let output = bash.wait_with_output().await?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// A kubeconfig whose default namespace is the story's, since the README's commands name none.
async fn in_namespace(ctx: &Context) -> Result<std::path::PathBuf> {
    let path = ctx.cluster.layout.path("conf/readme-kubeconfig");
    std::fs::copy(ctx.cluster.layout.kubeconfig(), &path)?;
    let mut kubectl = ctx.cluster.kubectl()?;
    kubectl
        .args(["config", "set-context", "--current", "--namespace", &ctx.namespace])
        .env("KUBECONFIG", &path);
    shell::capture(&mut kubectl).await?;
    Ok(path)
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```sh") else { continue };
        let commands: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let commands = commands.join("\n") + "\n";
        if !TOLD_ELSEWHERE.contains(&commands.trim()) {
            blocks.push(Block { commands, refused: info.trim() == "refused" });
        }
    }
    blocks
}

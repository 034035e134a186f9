//! What is tested without a cluster, as a developer would run it by hand.

use anyhow::Result;
use tokio::process::Command;

use crate::progress::Steps;
use crate::story::run::Tally;
use crate::tools::{Tools, built};
use crate::{machine::WINDOWS_TARGET, paths, shell};

/// Runs every check, whatever the one before it found.
pub(crate) async fn run(steps: &Steps, tools: &Tools, tally: &mut Tally) -> Result<()> {
    let mut helm_lint = in_workspace(built(tools.helm())?);
    helm_lint.args(["lint", "--strict", "charts/bifold"]);
    let checks = [
        ("cargo fmt", cargo("fmt --all --check")),
        ("cargo clippy", cargo("clippy --workspace --all-targets --quiet -- -D warnings")),
        // Its Windows half is compiled for no other reason on this machine.
        (
            "cargo clippy for Windows",
            cargo(&format!(
                "clippy --package bifold-node-agent --target {WINDOWS_TARGET} --quiet -- -D warnings"
            )),
        ),
        ("cargo test", cargo("test --workspace --quiet")),
        ("helm lint", helm_lint),
    ];
    for (name, mut command) in checks {
        let result = steps.run(name, async { shell::capture(&mut command).await }).await;
        tally.count(steps, result.map(drop));
    }
    Ok(())
}

fn cargo(args: &str) -> Command {
    let mut command = in_workspace("cargo");
    command.args(args.split(' '));
    command
}

fn in_workspace(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = shell::command(program);
    command.current_dir(paths::workspace());
    command
}

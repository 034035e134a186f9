//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::cluster::nodes::linux;
use crate::cluster::supervisor::{client, serve};
use crate::commands;
use crate::story::Story;

/// A real Kubernetes cluster with Linux and simulated Windows nodes on this machine, and Bifold's tests on it.
#[derive(Parser)]
#[command(name = "cargo e2e", bin_name = "cargo e2e", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Bring a cluster up, install Bifold, leave it running.
    Up {
        #[command(flatten)]
        which: Which,
        /// The cluster only.
        #[arg(long)]
        without_bifold: bool,
    },
    /// Remove a cluster and everything that belongs to it.
    Down {
        #[command(flatten)]
        which: Which,
        /// Every cluster that was ever started here.
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// What runs, since when, and which nodes there are.
    Status(Which),
    /// kubectl, talking to the cluster.
    Kubectl(PassedOn),
    /// Helm, talking to the cluster.
    Helm(PassedOn),
    /// Show the log of a part: etcd, kube-apiserver, kubelet, … (`cargo e2e status` lists them).
    Logs {
        part: String,
        /// Go on showing what is added.
        #[arg(short, long)]
        follow: bool,
        #[command(flatten)]
        which: Which,
    },
    /// Build Bifold's images from the checkout and bring them to the node, without changing what is installed.
    LoadImages(Which),
    /// Run every test of the project: those without a cluster, then the stories on a cluster of their own.
    Test(Test),
    #[command(name = client::SUBCOMMAND, hide = true)]
    Supervise { directory: PathBuf },
    #[command(name = linux::SUBCOMMAND, hide = true)]
    HoldNode { directory: PathBuf },
}

/// Which cluster is meant.
#[derive(Args)]
struct Which {
    /// The cluster's name.
    #[arg(long, default_value = "bifold", env = "BIFOLD_E2E_CLUSTER")]
    name: String,
}

#[derive(Args)]
struct PassedOn {
    #[command(flatten)]
    which: Which,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// What `test` runs.
#[derive(Args)]
pub(crate) struct Test {
    /// The name of the tests' own cluster; one of that name is removed first.
    #[arg(long, default_value = "test")]
    pub(crate) name: String,
    /// Only the stories with these ids.
    #[arg(long, num_args = 1.., value_name = "STORY")]
    pub(crate) only: Vec<String>,
    /// Leave the cluster running afterwards.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Leave out what needs no cluster: formatting, lints, unit tests, the chart's lint.
    #[arg(long)]
    pub(crate) no_unit: bool,
}

/// Runs the program with the stories it was compiled with.
#[must_use]
pub fn main(stories: &'static [Story]) -> ExitCode {
    // Only fails if there is one already, and nothing before this line installs any.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run(Cli::parse().command, stories) {
        Ok(code) => code,
        Err(error) => {
            // Not `{error:?}`: a backtrace would hide what a person can act on.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command, stories: &'static [Story]) -> anyhow::Result<ExitCode> {
    // These two must not have more threads than they start themselves.
    match &command {
        Command::Supervise { directory } => return serve::serve(directory).map(|()| ExitCode::SUCCESS),
        Command::HoldNode { directory } => return linux::hold(directory).map(|()| ExitCode::SUCCESS),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Up { which, without_bifold } => commands::up(&which.name, !without_bifold).await,
            Command::Down { which, all } => commands::down(if all { None } else { Some(&which.name) }).await,
            Command::Status(which) => commands::status(&which.name).await,
            Command::Kubectl(PassedOn { which, args }) => commands::kubectl(&which.name, &args).await,
            Command::Helm(PassedOn { which, args }) => commands::helm(&which.name, &args).await,
            Command::Logs { part, follow, which } => commands::logs(&which.name, &part, follow).await,
            Command::LoadImages(which) => commands::load_images(&which.name).await,
            Command::Test(test) => commands::test(test, stories).await,
            Command::Supervise { .. } | Command::HoldNode { .. } => Ok(ExitCode::FAILURE),
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}

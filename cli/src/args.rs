//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The rules of Bifold's admission webhook, on files and without a cluster.
#[derive(Parser)]
#[command(name = "kubectl-bifold", bin_name = "kubectl bifold", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check manifests as the webhook would.
    ///
    /// Nothing is asked of a cluster, so rules that need one, such as build-mismatch, do not fire.
    #[command(
        after_help = "Exit codes: 0 nothing is refused, 1 something is refused, 2 something could not be read."
    )]
    Check(Check),
    /// List the rules, or show one.
    Rules {
        /// The id of a rule, such as secret-volume.
        id: Option<String>,
    },
}

/// What `check` looks at.
#[derive(Args)]
pub(crate) struct Check {
    /// Files or directories with YAML or JSON; `-` for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A file with the WindowsWorkloadPolicy to apply instead of the built-in defaults.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// How to print what was found.
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// How to print what was found.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON list.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

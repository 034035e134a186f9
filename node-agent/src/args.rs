//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// The Bifold agent of a Windows host.
#[derive(Parser, Debug)]
#[command(name = "bifold-node-agent", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Print what this Windows host is and which container runtime is installed on it.
    Facts {
        /// The form of the output.
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
        /// Read a recorded host instead of this one; works on every operating system.
        #[arg(long, value_name = "FILE")]
        replay: Option<PathBuf>,
    },
    /// Write down everything that `facts` reads from this Windows host, for `--replay` or for a bug report.
    Record {
        /// The file to write; `-` for stdout. It holds registry values only, the command lines of services among them:
        /// read it before you give it away.
        file: PathBuf,
    },
}

/// The form of the output.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// For a person.
    Text,
    /// For a program.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}

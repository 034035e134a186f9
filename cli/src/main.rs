//! `kubectl bifold`: the rules of the webhook, on files and without a cluster.
//!
//! ```text
//! args ─▶ read (files, directories, standard input ─▶ documents) ─▶ check (document ─▶ decision) ─▶ report
//! ```

mod args;
mod check;
mod read;
mod report;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};

/// Something could not be read.
const UNREADABLE: u8 = 2;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(UNREADABLE)
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check(check) => {
            let documents = read::documents(&check.files)?;
            let policy = check.policy.as_deref().map(read::policy).transpose()?.unwrap_or_default();
            let checked: Vec<_> =
                documents.iter().map(|d| check::check(d, &policy)).collect::<Result<Vec<_>, _>>()?;
            let checked: Vec<_> = checked.into_iter().flatten().collect();
            let refused = checked.iter().any(check::Checked::refused);
            report::print(&checked, documents.len(), check.output)?;
            Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        Command::Rules { id } => report::rules(id.as_deref()).map(|()| ExitCode::SUCCESS),
    }
}

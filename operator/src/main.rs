//! `bifold-operator`: reconciles pools, the status of policies, and the certificates of the webhook.

mod args;
mod certificates;
mod events;
mod metrics;
mod policies;
mod pools;
mod release;
mod run;
mod text;
mod watch;
mod writer;

use clap::Parser as _;

use crate::args::{Cli, Command};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    bifold_runtime::crypto::install()?;
    match Cli::parse().command {
        Command::Run(args) => run::run(args).await,
        Command::Release(args) => release::release(args).await,
    }
}

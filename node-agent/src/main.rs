//! The agent on every Windows host.
//!
//! ```text
//! host (Windows, or a recording of it) -> facts -> report -> stdout
//! ```
//!
//! What it does so far: reads what a host is and which container runtime is installed there, and prints it. It talks
//! to no API server yet.

mod args;
mod facts;
mod host;
mod report;

use anyhow::Context as _;
use clap::Parser as _;

use crate::{
    args::{Args, Command},
    host::{Host, Recorder, Recording},
};

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::Facts { output, replay } => {
            let host: Box<dyn Host> = match replay {
                Some(file) => Box::new(Recording::read(&file)?),
                None => host::this_one()?,
            };
            report::print(&facts::read(&*host), output).context("print the facts")
        }
        Command::Record { file } => {
            let recorder = Recorder::new(host::this_one()?);
            facts::read(&recorder);
            Ok(recorder.finish().write(&file)?)
        }
    }
}

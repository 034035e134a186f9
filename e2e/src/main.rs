//! `cargo e2e`: a mixed cluster on one machine, and the stories that Bifold is judged by.
//!
//! Everything but the stories is in the library beside this file. The stories are compiled in here, so that a story
//! uses the framework exactly as written in [`bifold_e2e::story`] and nothing that is private to it.

use std::process::ExitCode;

#[path = "../scenarios/mod.rs"]
mod scenarios;

fn main() -> ExitCode {
    bifold_e2e::main(scenarios::ALL)
}

//! A real Kubernetes cluster with Linux and Windows nodes on one machine, without Docker, and the stories that are
//! told on it.
//!
//! ```text
//! machine   what this machine must have: packages, Go, a Rust target
//! tools     the cluster's programs, built from Go modules once and cached
//! images    Bifold's own images, built from their Dockerfiles
//! cluster   processes, network, certificates, nodes: start, look at, remove
//! install   Bifold, by its Helm chart, as a user would
//! story     the framework that scenarios/ is written with, and its runner
//! checks    what needs no cluster: formatting, lints, unit tests, the chart's lint
//! commands  one function for every subcommand
//! ```
//!
//! Nothing here reads Bifold's source: the product is reached through its images, its chart and the API server, as a
//! user reaches it. The vocabulary (`bifold-crds`) is the one exception.

mod args;
mod checks;
pub mod cluster;
mod commands;
mod images;
mod install;
mod machine;
mod paths;
mod progress;
pub mod shell;
pub mod story;
mod tools;
pub mod wait;

pub use args::main;

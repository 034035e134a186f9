//! `bifold-operator`: reconciles pools, the status of policies, and the certificates of the webhook.
//!
//! # What it may do
//!
//! | group, resource | verbs | why |
//! |---|---|---|
//! | nodes | get list watch patch | labels by server-side apply, taints with the version that was read; get: the newer version after a conflict |
//! | node.k8s.io runtimeclasses | list watch create update delete | those it made for pools; others are only looked at |
//! | bifold.dev windowsnodepools | list watch patch | patch: the finalizer |
//! | bifold.dev windowsworkloadpolicies, windowsnodes | list watch | what they ask for, what agents report |
//! | bifold.dev windowsnodepools/status, windowsworkloadpolicies/status | patch | what was found and done |
//! | namespaces | list watch | their labels: which a policy governs |
//! | admissionregistration.k8s.io mutatingwebhookconfigurations, one by name | get list watch patch | the caBundle |
//! | events.k8s.io events | create patch | patch counts a repeated event up |
//! | secrets, two by name, in its namespace | get update delete | the authority and the webhook's certificate; delete: `release` |
//! | secrets, in its namespace | create | the name of a new object cannot be checked |
//! | coordination.k8s.io leases, one by name, in its namespace | get update | who leads; create as well where nobody ships the Lease |
//!
//! `release` needs no more than `run`.

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

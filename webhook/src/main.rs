//! `bifold-webhook`: HTTPS around the rules of admission.
//!
//! ```text
//! API server ─▶ serve (TLS, drain) ─▶ routes (limits, panics) ─▶ bifold_admission::review ─▶ API server
//!                  ▲                                                   ▲
//!             certificate ◀─ Secret                   snapshot ◀─ watch (nodes, classes, namespaces, policies)
//! ```

mod args;
mod certificate;
mod metrics;
mod routes;
mod serve;
mod snapshot;
#[cfg(test)]
mod testing;
mod watch;

use anyhow::Context as _;
use bifold_runtime::{client, crypto, probes, shutdown};
use clap::Parser as _;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    crypto::install()?;
    let args = args::Args::parse();
    args.log.clone().start()?;
    let stop = shutdown::on_signal()?;
    let (metrics, registry) = metrics::Metrics::new();
    let readiness = probes::Readiness::default();
    let snapshot = snapshot::Snapshot::new(metrics.clone(), readiness.part("snapshot"));
    let certificate = certificate::Served::new(metrics.clone(), readiness.part("certificate"));
    let listener = probes::bind(args.probes).await?;
    let routes = routes::routes(snapshot.clone(), metrics.clone(), readiness.clone());

    let watches = async {
        let client = client::connect().await?;
        tokio::try_join!(
            watch::run(client.clone(), snapshot, metrics.clone()),
            certificate::watch(client, args.secret(), certificate.clone(), metrics),
        )
    };
    tokio::select! {
        served = serve::serve(&args, routes, certificate.clone(), readiness.clone(), stop) => served.context("serve reviews"),
        // Alive until the end: the kubelet must see a process that drains as one that is not ready, not as a dead one.
        ended = probes::serve(listener, readiness, registry, CancellationToken::new()) => {
            ended.context("serve probes").and_then(|()| anyhow::bail!("the probe server ended by itself"))
        }
        ended = watches => ended.and_then(|_| anyhow::bail!("the watches ended by themselves")),
    }
}

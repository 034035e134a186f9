//! `bifold-operator run`: wait for the lease, then every controller, until somebody asks to stop.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use bifold_runtime::{client, lease::Leadership, metrics, probes, shutdown};
use kube::Client;
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    args::RunArgs,
    certificates::{self, Lifetimes, Names},
    events,
    metrics::Metrics,
    policies, pools,
    writer::Writer,
};

/// Passes in flight get this long after a signal; below the 30 s that the kubelet waits.
const DRAIN: Duration = Duration::from_secs(10);

pub async fn run(args: RunArgs) -> anyhow::Result<()> {
    args.log.clone().start()?;
    let stop = shutdown::on_signal()?;
    let mut registry = metrics::registry("operator", env!("CARGO_PKG_VERSION"));
    let metrics = Arc::new(Metrics::register(&mut registry));
    let readiness = probes::Readiness::default();
    let answers = readiness.part("API server");
    let listener = probes::bind(args.probes).await?;
    let serve = probes::serve(listener, readiness, Arc::new(registry), CancellationToken::new());
    let work = async {
        let client = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            client = client::connect() => client?,
        };
        // A replica that waits for the lease is as ready as it can be: it takes over at once.
        answers.ready();
        let lease = args.lease.params();
        let leadership = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            leadership = lease.acquire(client.clone()) => leadership,
        };
        lead(&args, client, &leadership, &metrics, &stop).await?;
        leadership.release().await;
        Ok(())
    };
    tokio::select! {
        served = serve => served.context("serve probes").and_then(|()| bail!("the probe server ended by itself")),
        worked = work => worked,
    }
}

/// Runs every controller until `stop`. A controller that ends by itself and a lease that is lost end the process:
/// the kubelet starts a new one, which queues for the lease.
async fn lead(
    args: &RunArgs,
    client: Client,
    leadership: &Leadership,
    metrics: &Arc<Metrics>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    metrics.leads(true);
    let writer = Writer::new(client.clone(), leadership.fence(), metrics.clone());
    let recorder = events::recorder(client, args.lease.identity.clone());
    let mut parts = JoinSet::new();
    let names = Names::new(&args.lease.namespace, &args.webhook);
    let lifetimes = Lifetimes { leaf: args.lifetimes.leaf_lifetime, authority: args.lifetimes.ca_lifetime };
    parts.spawn(certificates::run(
        writer.clone(),
        recorder.clone(),
        metrics.clone(),
        names,
        lifetimes,
        stop.clone(),
    ));
    parts.spawn(policies::run(writer.clone(), metrics.clone(), stop.clone()));
    parts.spawn(pools::watch::run(writer, recorder, metrics.clone(), stop.clone()));
    tokio::select! {
        () = stop.cancelled() => {}
        () = leadership.lost() => bail!("the lease is lost"),
        ended = parts.join_next() => bail!("a controller ended by itself: {ended:?}"),
    }
    let drained = timeout(DRAIN, async { while parts.join_next().await.is_some() {} }).await;
    metrics.leads(false);
    drained.context("controllers did not end in time")
}

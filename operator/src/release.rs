//! `bifold-operator release`: takes back everything, before the operator is uninstalled. Run by Helm as a Job.
//!
//! # Expected flow
//!
//! Take the lease by force, for long; wait until the leader must have noticed; release nodes; delete RuntimeClasses;
//! remove finalizers; delete the Secrets. Pools and policies stay: they are the user's.
//!
//! # Guarantees
//!
//! Idempotent: what is gone already is passed over, and a second run ends what a first one began. An operator that
//! starts again meanwhile waits for the lease, and by the time it has it, it is uninstalled.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::bail;
use bifold_crds::{WindowsNodePool, keys};
use bifold_runtime::{
    client::{self, chain},
    lease::Fence,
    shutdown,
};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::{
    core::v1::{Node, Secret},
    node::v1::RuntimeClass,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, PartialObjectMeta, Preconditions},
};

use crate::{
    args::ReleaseArgs,
    certificates,
    metrics::Metrics,
    pools::{
        apply,
        plan::{classes::ClassStep, nodes},
        validate::NodeFacts,
    },
    writer::{WriteError, Writer},
};

/// How long nobody else may lead: longer than any uninstallation takes.
const TERM: Duration = Duration::from_mins(10);
/// Nodes that are read and written at a time.
const PAGE: u32 = 500;
const NODES_AT_ONCE: usize = 16;

pub async fn release(args: ReleaseArgs) -> anyhow::Result<()> {
    args.log.clone().start()?;
    let stop = shutdown::on_signal()?;
    tokio::select! {
        () = stop.cancelled() => bail!("stopped before everything was released; run it again"),
        released = take_back(&args) => released,
    }
}

async fn take_back(args: &ReleaseArgs) -> anyhow::Result<()> {
    let client = client::connect().await?;
    let lease = args.lease.params();
    let seized = lease.seize(client.clone(), TERM).await?;
    if let Some(leader) = seized.from {
        // A leader that does not hear of it stops by itself this long after its last renewal.
        println!("took the lease from {leader}; waiting until it must have stopped");
        tokio::time::sleep(lease.give_up.min(seized.term)).await;
    }
    // We hold the lease, for longer than this takes.
    let writer = Writer::new(client, Fence::open(), Arc::new(Metrics::default()));
    let mut failures = Vec::new();
    nodes(&writer, &mut failures).await?;
    classes(&writer, &mut failures).await?;
    // Last of what they stand for: a run that fails before leaves them, and the pools, for the next.
    if failures.is_empty() {
        finalizers(&writer, &mut failures).await?;
        secrets(&writer, args, &mut failures).await?;
    }
    match failures.first() {
        None => Ok(()),
        Some(first) => bail!("{} of the writes failed; the first: {}", failures.len(), chain(first)),
    }
}

/// Also nodes whose pool is long gone, and those that are no Windows nodes any more.
async fn nodes(writer: &Writer, failures: &mut Vec<WriteError>) -> kube::Result<()> {
    let api = Api::<Node>::all(writer.client.clone());
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = api.list(&page).await?;
        let mut pending = Vec::new();
        for node in &list.items {
            let facts = NodeFacts::of(node, &[]);
            let change = nodes::change(&facts, None);
            if !change.is_empty() {
                let name = facts.name.to_owned();
                pending.push(async move {
                    let written = apply::node(writer, &name, &change, &[], &BTreeMap::new()).await;
                    (name, written)
                });
            }
        }
        let mut written = stream::iter(pending).buffer_unordered(NODES_AT_ONCE);
        while let Some((name, result)) = written.next().await {
            told(result, &format!("node {name} released"), failures);
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

async fn classes(writer: &Writer, failures: &mut Vec<WriteError>) -> kube::Result<()> {
    let api = Api::<RuntimeClass>::all(writer.client.clone());
    for class in api.list(&ListParams::default().labels(keys::MADE_FOR_LABEL)).await? {
        let said = format!("RuntimeClass {} deleted", class.name_any());
        told(apply::class(writer, &ClassStep::Delete(class)).await, &said, failures);
    }
    Ok(())
}

/// By their metadata alone: a pool that cannot be read is let go as well.
async fn finalizers(writer: &Writer, failures: &mut Vec<WriteError>) -> kube::Result<()> {
    let api = Api::<PartialObjectMeta<WindowsNodePool>>::all(writer.client.clone());
    let pools = match api.list_metadata(&ListParams::default()).await {
        // The definitions are gone, and the pools with them.
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
        listed => listed?,
    };
    for pool in pools.items.iter().filter(|p| p.finalizers().iter().any(|f| f == keys::POOL_FINALIZER)) {
        let said = format!("pool {} let go", pool.name_any());
        told(apply::finalizer(writer, &pool.metadata, false).await, &said, failures);
    }
    Ok(())
}

async fn secrets(writer: &Writer, args: &ReleaseArgs, failures: &mut Vec<WriteError>) -> kube::Result<()> {
    let api = Api::<Secret>::namespaced(writer.client.clone(), &args.lease.namespace);
    for name in [&args.webhook.tls_secret, &args.webhook.ca_secret] {
        let Some(secret) = api.get_opt(name).await?.filter(certificates::is_ours) else { continue };
        let preconditions = Preconditions { uid: secret.uid(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let deleted = writer.write("delete", "Secret", name, api.delete(name, &params)).await.map(drop);
        told(deleted, &format!("Secret {name} deleted"), failures);
    }
    Ok(())
}

/// Prints what was done, keeps what failed; what is gone already needs neither.
fn told(result: Result<(), WriteError>, said: &str, failures: &mut Vec<WriteError>) {
    match result {
        Ok(()) => println!("{said}"),
        Err(error) if error.is_not_found() => {}
        Err(error) => {
            println!("failed: {}", chain(&error));
            failures.push(error);
        }
    }
}

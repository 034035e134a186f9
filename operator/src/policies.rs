//! The controller of `WindowsWorkloadPolicy`: its status. What a policy does, the webhook does; here it is told which
//! namespaces it governs, by the same engine.
//!
//! ```text
//! watch ─▶ observe ─▶ plan (pure) ─▶ report
//! ```

mod plan;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bifold_admission::{Cluster, Namespace as NamespaceFacts};
use bifold_crds::{WindowsWorkloadPolicy, WindowsWorkloadPolicyStatus};
use bifold_runtime::{client::chain, watch::objects};
use futures::{Stream, StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{PartialObjectMeta, Patch},
    runtime::{
        Controller, WatchStreamExt as _,
        controller::{self, Action},
        reflector::{self, ObjectRef, Store, store::WriterDropped},
        watcher,
    },
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    metrics::Metrics,
    watch::{changes, coalesce, outlive, readable},
    writer::{WriteError, Writer, apply},
};

const KIND: &str = "WindowsWorkloadPolicy";
/// Namespaces come and go in bursts, and a count may be late.
const WINDOW: Duration = Duration::from_millis(500);
const AGAIN: Duration = Duration::from_mins(10);
const RETRY: Duration = Duration::from_secs(10);

struct Context {
    policies: Store<WindowsWorkloadPolicy>,
    namespaces: Store<PartialObjectMeta<Namespace>>,
    writer: Writer,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("read the caches")]
    Observe(#[from] WriterDropped),
    #[error("report the status")]
    Report(#[from] WriteError),
}

/// Keeps the status of policies until `stop`.
pub async fn run(writer: Writer, metrics: Arc<Metrics>, stop: CancellationToken) {
    let ((policies, namespaces), woken) = watch(writer.client.clone(), metrics.clone());
    let context = Arc::new(Context { policies: policies.clone(), namespaces, writer });
    Controller::for_stream(stream::pending(), policies)
        .reconcile_on(woken)
        .with_config(controller::Config::default().concurrency(1))
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(reconcile, |_, _, _| Action::requeue(RETRY), context)
        .for_each(|result| {
            // Its next turn came after it was deleted.
            if matches!(result, Err(controller::Error::ObjectNotFound(_))) {
                return futures::future::ready(());
            }
            metrics.reconciled(KIND, result.is_ok());
            if let Err(error) = result {
                tracing::warn!(error = chain(&error), "reconcile failed");
            }
            futures::future::ready(())
        })
        .await;
}

type Caches = (Store<WindowsWorkloadPolicy>, Store<PartialObjectMeta<Namespace>>);

fn watch(
    client: Client,
    metrics: Arc<Metrics>,
) -> (Caches, impl Stream<Item = ObjectRef<WindowsWorkloadPolicy>> + Send) {
    let (policies, policies_writer) = reflector::store();
    let (namespaces, namespaces_writer) = reflector::store();
    let of_policies =
        readable::<WindowsWorkloadPolicy>(client.clone(), KIND, metrics.clone()).reflect(policies_writer);
    let of_policies = changes(outlive(of_policies, KIND, metrics.clone()), |p: &WindowsWorkloadPolicy| {
        (p.uid(), p.metadata.generation)
    });
    let of_namespaces = objects(Api::<PartialObjectMeta<Namespace>>::all(client), watcher::Config::default())
        .modify(|namespace| {
            namespace.managed_fields_mut().clear();
            namespace.annotations_mut().clear();
        })
        .reflect(namespaces_writer);
    let of_namespaces =
        changes(outlive(of_namespaces, "Namespace", metrics), |n: &PartialObjectMeta<Namespace>| {
            n.labels().clone()
        });
    // A change of one policy can shadow any other.
    let woken = stream::select(of_policies.map(drop).boxed(), of_namespaces.map(drop).boxed());
    let known = policies.clone();
    let all = move |_| -> Vec<_> { known.state().iter().map(|p| ObjectRef::from_obj(&**p)).collect() };
    let woken = coalesce(woken, WINDOW).flat_map(move |set| stream::iter(all(set)));
    ((policies, namespaces), woken)
}

async fn reconcile(policy: Arc<WindowsWorkloadPolicy>, context: Arc<Context>) -> Result<Action, Error> {
    // observe (caches)
    context.policies.wait_until_ready().await?;
    context.namespaces.wait_until_ready().await?;
    let mut cluster = Cluster::default();
    for other in context.policies.state() {
        cluster.put_policy(&other);
    }
    let labels: BTreeMap<String, _> =
        context.namespaces.state().iter().map(|n| (n.name_any(), n.labels().clone())).collect();
    let facts =
        labels.iter().map(|(name, l)| (name.clone(), NamespaceFacts::new(l.clone(), &BTreeMap::new())));
    cluster.replace_namespaces(facts);
    // plan (pure, cannot fail)
    let status = plan::status(&policy, &cluster, &labels, Timestamp::now());
    // report, only what differs
    report(&context.writer, &policy, &status).await?;
    Ok(Action::requeue(AGAIN))
}

async fn report(
    writer: &Writer,
    policy: &WindowsWorkloadPolicy,
    status: &WindowsWorkloadPolicyStatus,
) -> Result<(), WriteError> {
    if policy.status.as_ref() == Some(status) {
        return Ok(());
    }
    let name = policy.name_any();
    let body = json!({
        "apiVersion": WindowsWorkloadPolicy::api_version(&()),
        "kind": WindowsWorkloadPolicy::kind(&()),
        "status": status,
    });
    let api = Api::<WindowsWorkloadPolicy>::all(writer.client.clone());
    // By force: the status has one writer, and that is this operator.
    let (params, body) = (apply().force(), Patch::Apply(body));
    match writer
        .write("apply", "WindowsWorkloadPolicy/status", &name, api.patch_status(&name, &params, &body))
        .await
    {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

//! The certificates of the webhook: an authority that rotates with an overlap, a certificate for the Service, and
//! the bundle by which API servers trust it.
//!
//! # Expected flow
//!
//! Observe the two Secrets and the `MutatingWebhookConfiguration`, plan (pure, of state and time), write, sleep until
//! the next deadline or until the configuration changes: a Helm upgrade may reset the bundle.
//!
//! # Guarantees
//!
//! A Secret without our mark is never overwritten. A crash between two writes leaves a state that the next plan goes
//! on from: an authority is stored before it is trusted, and trusted before it signs.
//!
//! # Assumptions
//!
//! Replicas of the webhook pick up a new certificate before the old one expires: within a third of its life.

mod apply;
mod issue;
mod observe;
mod plan;

use std::{sync::Arc, time::Duration};

use bifold_runtime::{client::chain, watch::objects};
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret};
use kube::{
    Api, Resource as _, ResourceExt as _,
    runtime::{
        events::{Event, EventType, Recorder},
        watcher,
    },
};
use tokio_util::sync::CancellationToken;

use self::observe::Found;
pub use self::{observe::is_ours, plan::Lifetimes};
use crate::{
    args::WebhookArgs,
    events,
    metrics::Metrics,
    watch::{changes, outlive},
    writer::{WriteError, Writer},
};

/// The Secrets are not watched, so that nobody needs the right to list them; this is how late a lost one is noticed.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// After a failure, and between two passes at least.
const RETRY: Duration = Duration::from_secs(1);

/// What the objects are called.
#[derive(Clone, Debug)]
pub struct Names {
    pub namespace: String,
    pub service: String,
    pub configuration: String,
    pub tls_secret: String,
    pub ca_secret: String,
}

impl Names {
    pub fn new(namespace: &str, webhook: &WebhookArgs) -> Self {
        Self {
            namespace: namespace.to_owned(),
            service: webhook.webhook_service.clone(),
            configuration: webhook.webhook_configuration.clone(),
            tls_secret: webhook.tls_secret.clone(),
            ca_secret: webhook.ca_secret.clone(),
        }
    }

    /// The API server asks for the first; the others are for people with curl.
    fn dns(&self) -> Vec<String> {
        let name = format!("{}.{}", self.service, self.namespace);
        vec![format!("{name}.svc"), format!("{name}.svc.cluster.local"), name, self.service.clone()]
    }
}

/// Keeps the certificates until `stop`.
pub async fn run(
    writer: Writer,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    names: Names,
    lifetimes: Lifetimes,
    stop: CancellationToken,
) {
    let mut changed = configuration_changes(&writer, &names, metrics.clone());
    let mut warned = false;
    loop {
        let passed = pass(&writer, &metrics, &names, lifetimes).await;
        metrics.reconciled("Certificates", passed.is_ok());
        let wait = match passed {
            Ok(Passed::Until(at)) => {
                warned = false;
                Duration::try_from(at.duration_since(Timestamp::now()))
                    .unwrap_or_default()
                    .clamp(RETRY, LOOK_AGAIN)
            }
            Ok(Passed::Foreign(secret)) => {
                if !std::mem::replace(&mut warned, true) {
                    foreign(&recorder, &secret).await;
                }
                LOOK_AGAIN
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "certificates not kept");
                RETRY
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            _ = changed.next() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// How a pass ended.
enum Passed {
    /// There may be something to do at this time.
    Until(Timestamp),
    /// A Secret is somebody else's, and with it the whole matter.
    Foreign(Box<Secret>),
}

async fn pass(
    writer: &Writer,
    metrics: &Metrics,
    names: &Names,
    lifetimes: Lifetimes,
) -> Result<Passed, apply::Error> {
    // observe
    let found = find(writer, names).await?;
    let foreign = [&found.ca, &found.tls].into_iter().flatten().find(|s| !is_ours(s));
    if let Some(secret) = foreign {
        return Ok(Passed::Foreign(Box::new(secret.clone())));
    }
    // plan (pure, cannot fail)
    let now = Timestamp::now();
    let stored = observe::authorities(&found, now, lifetimes);
    let state = observe::state(&found, &stored, &names.dns());
    let plan = plan::plan(&state, now, lifetimes);
    // apply
    let wanted = apply::wanted(&plan, stored, &names.dns(), now, lifetimes)?;
    apply::write(writer, names, &found, &wanted).await?;
    // report
    for step in &plan.steps {
        tracing::info!("{step}");
    }
    if let Some(leaf) = &state.leaf {
        metrics.certificate_expires("webhook", leaf.not_after);
    }
    if let Some(authority) = state.authorities.last() {
        metrics.certificate_expires("authority", authority.not_after);
    }
    // What was written is looked at once more: the next step may only wait for having been seen.
    let again = if plan.steps.is_empty() { plan.again } else { now };
    Ok(Passed::Until(again))
}

async fn find(writer: &Writer, names: &Names) -> Result<Found, WriteError> {
    let secrets = Api::<Secret>::namespaced(writer.client.clone(), &names.namespace);
    let configurations = Api::<MutatingWebhookConfiguration>::all(writer.client.clone());
    let (ca, tls) = (&names.ca_secret, &names.tls_secret);
    let configuration = &names.configuration;
    Ok(Found {
        ca: writer.read("Secret", ca, secrets.get_opt(ca)).await?,
        tls: writer.read("Secret", tls, secrets.get_opt(tls)).await?,
        configuration: writer
            .read("MutatingWebhookConfiguration", configuration, configurations.get_opt(configuration))
            .await?,
    })
}

/// One item for each change of a bundle in the configuration, or of the entries.
fn configuration_changes(
    writer: &Writer,
    names: &Names,
    metrics: Arc<Metrics>,
) -> impl Stream<Item = ()> + Send + Unpin + use<> {
    const KIND: &str = "MutatingWebhookConfiguration";
    let only = watcher::Config::default().fields(&format!("metadata.name={}", names.configuration));
    let api = Api::<MutatingWebhookConfiguration>::all(writer.client.clone());
    let watched = outlive(objects(api, only), KIND, metrics);
    changes(watched, |c: &MutatingWebhookConfiguration| {
        let entries = c.webhooks.iter().flatten();
        entries.map(|e| (e.name.clone(), e.client_config.ca_bundle.clone())).collect::<Vec<_>>()
    })
    .map(drop)
    .boxed()
}

async fn foreign(recorder: &Recorder, secret: &Secret) {
    let name = secret.name_any();
    tracing::warn!(secret = name, "not made by the operator and left as it is; no certificate is made");
    let event = Event {
        type_: EventType::Warning,
        reason: "SecretNotOurs".to_owned(),
        note: Some(format!(
            "the Secret {name} was not made by bifold-operator and is left as it is; delete it to have certificates made"
        )),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    events::publish(recorder, &event, &secret.object_ref(&())).await;
}

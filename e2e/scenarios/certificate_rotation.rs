//! The webhook's authority and its certificate are replaced while pods are being created: no creation fails, and none
//! goes by without its placement because the API server did not trust a replica.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{CHART, Context, Story};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Api;
use tokio::time::Instant;

pub(crate) const STORY: Story = Story::plain(
    "certificate-rotation",
    "no creation fails while certificates and their authority rotate",
    |ctx| Box::pin(tell(ctx)),
);

const SHORT_LIVED: [&str; 2] =
    ["--set=operator.certificates.leafLifetime=30s", "--set=operator.certificates.caLifetime=60s"];
/// An authority of one minute is replaced after two thirds of it, and trusted until what it signed has expired.
const LIMIT: Duration = Duration::from_mins(5);
/// The authorities that must have been trusted, one after the other, before the story ends.
const AUTHORITIES: usize = 4;

async fn tell(ctx: Context) -> Result<()> {
    let values = ctx.installed_values().await?;
    let as_before = ["upgrade", "bifold", CHART, "--values", &values, "--wait"];
    ctx.helm(as_before.into_iter().chain(SHORT_LIVED)).await?;
    let rotated = rotate(&ctx).await;
    ctx.helm(as_before).await?;
    rotated
}

async fn rotate(ctx: &Context) -> Result<()> {
    let until = Instant::now() + LIMIT;
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    let (mut created, mut missed) = (0, Vec::new());
    let (mut seen, mut overlapped) = (BTreeSet::new(), false);
    while seen.len() < AUTHORITIES {
        ensure!(Instant::now() < until, "only {} authorities within {} s", seen.len(), LIMIT.as_secs());
        pace.tick().await;
        let placed = ctx.create_gated_pod().await;
        if !placed.with_context(|| format!("pod {created}, after {} authorities", seen.len()))? {
            missed.push(created);
        }
        created += 1;
        if created % 10 == 0 {
            let trusted = trusted(ctx).await?;
            overlapped |= trusted.len() > 1;
            seen.extend(trusted);
        }
        if created % 100 == 0 {
            ctx.delete_pods().await?;
        }
    }
    ensure!(missed.is_empty(), "of {created} pods these were not placed: {missed:?}");
    ensure!(overlapped, "two authorities were never trusted at the same time");
    ensure!(created > 300, "only {created} pods were created meanwhile");
    Ok(())
}

/// The certificates in the webhook configuration, as text.
async fn trusted(ctx: &Context) -> Result<BTreeSet<String>> {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(ctx.client.clone());
    let webhooks = configurations.get("bifold-webhook").await?.webhooks.unwrap_or_default();
    let bundle = webhooks.into_iter().find_map(|webhook| webhook.client_config.ca_bundle).unwrap_or_default();
    let bundle = String::from_utf8(bundle.0)?;
    Ok(bundle
        .split_inclusive("-----END CERTIFICATE-----")
        .map(str::trim)
        .filter(|c| !c.is_empty())
        .map(str::to_owned)
        .collect())
}

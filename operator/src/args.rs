//! The command line. Every value is checked here; the environment is asked once.

use std::{net::SocketAddr, time::Duration};

use bifold_runtime::{args::object_name, lease::LeaseParams, log::LogArgs};
use clap::{Args, Parser, Subcommand};

/// Reconciles WindowsNodePools, policies' status and the certificates of the webhook.
#[derive(Parser, Debug)]
#[command(name = "bifold-operator", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Reconcile until asked to stop; of several replicas one leads.
    Run(RunArgs),
    /// Take back everything that the operator gave to nodes and made in the cluster, before it is uninstalled.
    Release(ReleaseArgs),
}

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub lease: LeaseArgs,
    #[command(flatten)]
    pub webhook: WebhookArgs,
    #[command(flatten)]
    pub lifetimes: LifetimeArgs,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, env = "BIFOLD_PROBES", default_value = "0.0.0.0:8081", value_name = "ADDRESS")]
    pub probes: SocketAddr,
}

#[derive(Args, Debug)]
pub struct ReleaseArgs {
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub lease: LeaseArgs,
    #[command(flatten)]
    pub webhook: WebhookArgs,
}

/// Who leads.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Lease")]
pub struct LeaseArgs {
    /// The namespace of the Lease and of the Secrets.
    #[arg(long, env = "POD_NAMESPACE", default_value = "bifold-system", value_parser = object_name)]
    pub namespace: String,
    /// The Lease by which one replica leads.
    #[arg(long, env = "BIFOLD_LEASE", default_value = "bifold-operator", value_parser = object_name)]
    pub lease: String,
    /// The name of this replica: the pod's.
    #[arg(long, env = "POD_NAME", value_parser = object_name)]
    pub identity: String,
}

/// What the webhook is called.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Webhook")]
pub struct WebhookArgs {
    /// The Service that the API server calls; the certificate is for its names.
    #[arg(long, env = "BIFOLD_WEBHOOK_SERVICE", default_value = "bifold-webhook", value_parser = object_name)]
    pub webhook_service: String,
    /// The MutatingWebhookConfiguration whose caBundle is kept.
    #[arg(long, env = "BIFOLD_WEBHOOK_CONFIGURATION", default_value = "bifold-webhook", value_parser = object_name)]
    pub webhook_configuration: String,
    /// The Secret with the webhook's certificate and key.
    #[arg(long, env = "BIFOLD_TLS_SECRET", default_value = "bifold-webhook-tls", value_parser = object_name)]
    pub tls_secret: String,
    /// The Secret with the certificate authority.
    #[arg(long, env = "BIFOLD_CA_SECRET", default_value = "bifold-webhook-ca", value_parser = object_name)]
    pub ca_secret: String,
}

/// How long certificates are valid; each is renewed at two thirds of its life.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Certificates")]
pub struct LifetimeArgs {
    /// Of the webhook's certificate, such as 168h.
    #[arg(long, env = "BIFOLD_LEAF_LIFETIME", default_value = "168h", value_parser = lifetime)]
    pub leaf_lifetime: Duration,
    /// Of the certificate authority, such as 8760h. At least twice the webhook's.
    #[arg(long, env = "BIFOLD_CA_LIFETIME", default_value = "8760h", value_parser = lifetime)]
    pub ca_lifetime: Duration,
}

impl LeaseArgs {
    pub fn params(&self) -> LeaseParams {
        LeaseParams::new(self.namespace.clone(), self.lease.clone(), self.identity.clone())
    }
}

/// Ten seconds is too short for any life, and long enough for a test.
const SHORTEST: Duration = Duration::from_secs(10);

/// `90s`, `2m`, `168h`, `1h 30m`.
fn lifetime(text: &str) -> Result<Duration, String> {
    let span: jiff::SignedDuration = text.parse().map_err(|e: jiff::Error| e.to_string())?;
    let duration = Duration::try_from(span).map_err(|_| "must not be negative".to_owned())?;
    if duration < SHORTEST { Err("must be at least 10s".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_are_written_as_people_write_them() {
        assert_eq!(lifetime("168h"), Ok(Duration::from_hours(168)));
        assert_eq!(lifetime("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(lifetime("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(lifetime("1h 30m"), Ok(Duration::from_mins(90)));
        for wrong in ["", "5", "-1h", "1s", "soon"] {
            assert!(lifetime(wrong).is_err(), "{wrong}");
        }
    }
}

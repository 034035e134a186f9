//! The command line. Every value is checked here; the environment is asked once.

use std::{net::SocketAddr, time::Duration};

use bifold_runtime::{args::object_name, log::LogArgs};
use clap::Parser;

/// Places pods of a mixed cluster and refuses those that cannot work, when the API server asks.
#[derive(Parser, Clone, Debug)]
#[command(name = "bifold-webhook", version)]
pub struct Args {
    #[command(flatten)]
    pub log: LogArgs,
    /// Where the API server asks, over HTTPS.
    #[arg(long, env = "BIFOLD_LISTEN", default_value = "0.0.0.0:9443", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, env = "BIFOLD_PROBES", default_value = "0.0.0.0:8081", value_name = "ADDRESS")]
    pub probes: SocketAddr,
    /// The namespace of the Secret with the certificate: the webhook's own.
    #[arg(long, env = "POD_NAMESPACE", default_value = "bifold-system", value_parser = object_name)]
    pub namespace: String,
    /// The Secret with the certificate and its key.
    #[arg(long, env = "BIFOLD_TLS_SECRET", default_value = "bifold-webhook-tls", value_parser = object_name)]
    pub tls_secret: String,
    /// How long requests are still answered after a signal to stop, in seconds: as long as it takes until every API
    /// server has heard that this replica is going.
    #[arg(long, env = "BIFOLD_DRAIN_SECONDS", default_value_t = 10, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(..=600))]
    pub drain_seconds: u64,
}

/// A Secret by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    pub namespace: String,
    pub name: String,
}

impl Args {
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_seconds)
    }

    pub fn secret(&self) -> SecretName {
        SecretName { namespace: self.namespace.clone(), name: self.tls_secret.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent_and_checked() {
        Args::command().debug_assert();
        assert!(Args::try_parse_from(["w", "--tls-secret=A"]).is_err());
        assert!(Args::try_parse_from(["w", "--drain-seconds=601"]).is_err());
        let args = Args::try_parse_from(["w", "--drain-seconds=3", "--listen=[::]:9443"]).unwrap();
        assert_eq!(args.drain(), Duration::from_secs(3));
    }
}

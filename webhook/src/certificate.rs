//! The certificate: from the Secret that the operator keeps to every new connection, without a restart.
//!
//! # Guarantees
//! - A Secret that cannot be used (no PEM, a key of another certificate) changes nothing but the log.
//! - A connection sees the certificate of the moment at which it was made; a rotation breaks none.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwapOption;
use bifold_runtime::{client::chain, probes::Part, watch};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    runtime::watcher::{Config, Event},
};
use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::time::{MissedTickBehavior, interval};

use crate::{args::SecretName, metrics::Metrics};

/// How often it is looked whether the certificate has ended.
const LOOK: Duration = Duration::from_secs(30);

/// The certificate that is served. Clones share it.
#[derive(Clone, Debug)]
pub struct Served(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    current: ArcSwapOption<Certificate>,
    metrics: Metrics,
    part: Part,
}

#[derive(Debug)]
struct Certificate {
    key: Arc<CertifiedKey>,
    /// Seconds since 1970.
    ends: i64,
}

/// Why a Secret cannot be served from.
#[derive(Debug, thiserror::Error)]
pub enum BadSecret {
    /// A key of the Secret is missing.
    #[error("the Secret has no {0}")]
    Missing(&'static str),
    /// A key of the Secret is no PEM of the right kind.
    #[error("{0} is no PEM: {1}")]
    Pem(&'static str, #[source] rustls::pki_types::pem::Error),
    /// `tls.crt` holds no certificate.
    #[error("tls.crt holds no certificate")]
    Empty,
    /// Certificate and key do not go together, or are of a kind that is not supported.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    /// The first certificate is none.
    #[error("the first certificate in tls.crt cannot be read")]
    NoCertificate,
}

impl Served {
    pub fn new(metrics: Metrics, part: Part) -> Self {
        Self(Arc::new(Shared { current: ArcSwapOption::empty(), metrics, part }))
    }

    /// Serves what the Secret holds from now on, unless it is broken.
    pub fn take(&self, secret: &Secret) {
        match read(secret) {
            Ok(certificate) => {
                let valid_for = certificate.ends - now();
                tracing::info!(valid_for_seconds = valid_for, "serving a new certificate");
                self.0.metrics.certificate_ends(certificate.ends);
                self.0.current.store(Some(Arc::new(certificate)));
                self.look();
            }
            Err(error) => {
                self.0.metrics.certificate_failed();
                tracing::warn!(
                    error = chain(&error),
                    "the certificate cannot be served; keeping the old one"
                );
            }
        }
    }

    /// Nobody can talk to us with a certificate that has ended; a replica that is not ready is at least passed over.
    pub fn look(&self) {
        match &*self.0.current.load() {
            Some(certificate) if certificate.ends > now() => self.0.part.ready(),
            _ => self.0.part.revoke(),
        }
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.current.load().as_ref().map(|certificate| certificate.key.clone())
    }
}

/// Follows the Secret. Ends only when the watch ends, which it should not.
pub async fn watch(
    client: Client,
    secret: SecretName,
    served: Served,
    metrics: Metrics,
) -> anyhow::Result<()> {
    let config = Config::default().fields(&format!("metadata.name={}", secret.name));
    let events = watch::objects(Api::<Secret>::namespaced(client, &secret.namespace), config);
    let mut events = std::pin::pin!(events);
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = ticks.tick() => {
                served.look();
                continue;
            }
        };
        failing &= matches!(event, Some(Err(_) | Ok(Event::Init)));
        match event {
            Some(Ok(Event::Apply(secret) | Event::InitApply(secret))) => served.take(&secret),
            Some(Ok(Event::Delete(_))) => tracing::warn!("the Secret is gone; keeping the certificate"),
            Some(Ok(Event::Init | Event::InitDone)) => {}
            Some(Err(error)) => {
                metrics.watch_failed("Secret");
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(kind = "Secret", error = chain(&error), "watch failed; retrying");
                }
            }
            None => anyhow::bail!("the watch of the Secret ended"),
        }
    }
}

fn read(secret: &Secret) -> Result<Certificate, BadSecret> {
    let field = |name: &'static str| {
        let data = secret.data.as_ref().and_then(|data| data.get(name));
        data.map(|bytes| bytes.0.as_slice()).ok_or(BadSecret::Missing(name))
    };
    let (certificates, key) = (field("tls.crt")?, field("tls.key")?);
    let chain = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| BadSecret::Pem("tls.crt", error))?;
    let first = chain.first().ok_or(BadSecret::Empty)?;
    let (_, parsed) = x509_parser::parse_x509_certificate(first).map_err(|_| BadSecret::NoCertificate)?;
    let ends = parsed.validity().not_after.timestamp();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| BadSecret::Pem("tls.key", error))?;
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider())?;
    Ok(Certificate { key: Arc::new(key), ends })
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{metrics, secret, self_signed};
    use bifold_runtime::probes::Readiness;

    #[test]
    fn a_broken_secret_keeps_the_certificate_that_is_served() {
        let readiness = Readiness::default();
        let served = Served::new(metrics(), readiness.part("certificate"));
        assert_eq!(readiness.missing(), ["certificate"]);
        let (good, other) = (self_signed("a"), self_signed("b"));
        served.take(&secret(&good.0, &good.1));
        assert!(readiness.missing().is_empty());
        let serving = || served.0.current.load().as_ref().unwrap().key.clone();
        let first = serving();
        for (certificate, key) in [
            ("", good.1.as_str()),
            ("nonsense", good.1.as_str()),
            (good.0.as_str(), ""),
            (good.0.as_str(), "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            (good.0.as_str(), other.1.as_str()),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", good.1.as_str()),
        ] {
            served.take(&secret(certificate, key));
            assert!(Arc::ptr_eq(&serving(), &first), "{certificate}");
        }
        served.take(&Secret::default());
        assert!(Arc::ptr_eq(&serving(), &first) && readiness.missing().is_empty());
        served.take(&secret(&other.0, &other.1));
        assert!(!Arc::ptr_eq(&serving(), &first), "a good one replaces it");
    }

    #[test]
    fn with_a_certificate_that_has_ended_the_process_is_not_ready() {
        let readiness = Readiness::default();
        let served = Served::new(metrics(), readiness.part("certificate"));
        let (certificate, key) = crate::testing::ended();
        served.take(&secret(&certificate, &key));
        assert_eq!(readiness.missing(), ["certificate"]);
    }
}

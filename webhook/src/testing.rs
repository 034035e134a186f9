//! What tests share: certificates, Secrets and parts.

use std::collections::BTreeMap;

use bifold_runtime::probes::Readiness;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::{metrics::Metrics, snapshot::Snapshot};

pub fn metrics() -> Metrics {
    Metrics::new().0
}

/// A cold snapshot, and the readiness that it is part of.
pub fn snapshot() -> (Snapshot, Readiness) {
    let readiness = Readiness::default();
    (Snapshot::new(metrics(), readiness.part("snapshot")), readiness)
}

/// Certificate and key in PEM.
pub fn self_signed(name: &str) -> (String, String) {
    signed(&CertificateParams::new([name.to_owned()]).unwrap())
}

/// A certificate that ended in 2001.
pub fn ended() -> (String, String) {
    let mut params = CertificateParams::new(["a".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1));
    signed(&params)
}

fn signed(params: &CertificateParams) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

pub fn secret(certificate: &str, key: &str) -> Secret {
    let field = |name: &str, text: &str| (name.to_owned(), ByteString(text.as_bytes().to_vec()));
    let data = BTreeMap::from([field("tls.crt", certificate), field("tls.key", key)]);
    Secret { data: Some(data), ..Secret::default() }
}

//! Real keys, and a real handshake: rustls on both ends, as strict as the API server's Go.

use std::sync::Arc;

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};

use super::*;

const SERVICE: &str = "bifold-webhook.bifold-system.svc";

fn names() -> Vec<String> {
    vec![SERVICE.to_owned(), format!("{SERVICE}.cluster.local")]
}

/// Whether a client that trusts `bundle` and asks for `name` accepts a server with `leaf`.
fn accepts(bundle: &str, leaf: &Pair, name: &str) -> bool {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let client = ClientConfig::builder_with_provider(provider.clone());
    let client = client.with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let chain = CertificateDer::pem_slice_iter(leaf.certificate.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).unwrap();
    let server = ServerConfig::builder_with_provider(provider);
    let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let server = server.with_single_cert(chain, key).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        if client.process_new_packets().is_err() {
            return false;
        }
    }
    true
}

fn ca() -> Pair {
    authority(Timestamp::now(), Duration::from_hours(24)).unwrap()
}

fn leaf_by(by: &Pair) -> Pair {
    leaf(by, &names(), Timestamp::now(), Duration::from_hours(1)).unwrap()
}

#[test]
fn during_a_rotation_both_certificates_validate_against_the_bundle_of_both() {
    let (old, new) = (ca(), ca());
    let both = format!("{}{}", old.certificate, new.certificate);
    let (of_old, of_new) = (leaf_by(&old), leaf_by(&new));
    for name in names() {
        assert!(accepts(&old.certificate, &of_old, &name));
        assert!(accepts(&both, &of_old, &name));
        assert!(accepts(&both, &of_new, &name));
        assert!(accepts(&new.certificate, &of_new, &name));
    }
    assert!(!accepts(&new.certificate, &of_old, SERVICE), "a test that cannot fail proves nothing");
    assert!(!accepts(&both, &of_old, "elsewhere.svc"));
}

#[test]
fn what_was_made_can_be_read_back() {
    let ca = ca();
    let leaf = leaf_by(&ca);
    let (of_ca, of_leaf) = (read(&ca.certificate).unwrap(), read(&leaf.certificate).unwrap());
    assert_eq!(of_leaf.issuer, of_ca.id);
    assert_eq!(of_leaf.names, names());
    assert!(of_leaf.has_key(&leaf.key) && !of_leaf.has_key(&ca.key) && !of_leaf.has_key("junk"));
    let bundle = format!("{}\n{}", ca.certificate, leaf.certificate);
    assert_eq!((read_all(bundle.as_bytes()).len(), blocks(&bundle).count()), (2, 2));
}

#[test]
fn a_certificate_does_not_outlive_its_authority() {
    let now = Timestamp::now();
    let short = authority(now, Duration::from_mins(5)).unwrap();
    let leaf = leaf(&short, &names(), now, Duration::from_hours(1)).unwrap();
    assert_eq!(read(&leaf.certificate).unwrap().not_after, read(&short.certificate).unwrap().not_after);
}

#[test]
fn what_is_no_certificate_is_none() {
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for text in ["", "junk", broken, "-----BEGIN CERTIFICATE-----"] {
        assert_eq!(read(text), None, "{text:?}");
    }
}

//! Real certificates in real objects: what is recognised as ours, and what is not.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, WebhookClientConfig};

use super::*;
use crate::certificates::{
    apply::{self, Wanted},
    plan::{self, Signer, Step},
};

const LIFETIMES: Lifetimes =
    Lifetimes { leaf: std::time::Duration::from_hours(1), authority: std::time::Duration::from_hours(24) };

fn names() -> Vec<String> {
    vec!["w.ns.svc".to_owned()]
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// A cluster in which nothing was made yet, with a configuration of two entries.
fn empty() -> Found {
    let entry = |name: &str| MutatingWebhook {
        name: name.to_owned(),
        client_config: WebhookClientConfig::default(),
        ..MutatingWebhook::default()
    };
    let webhooks = Some(vec![entry("pods"), entry("daemonsets")]);
    Found {
        configuration: Some(MutatingWebhookConfiguration { webhooks, ..Default::default() }),
        ..Found::default()
    }
}

/// One pass: the steps, carried out on the objects as `apply::write` does on the API server.
fn pass(found: &mut Found, now: Timestamp) -> Vec<Step> {
    let stored = authorities(found, now, LIFETIMES);
    let plan = plan::plan(&state(found, &stored, &names()), now, LIFETIMES);
    let Wanted { authorities, authorities_changed, bundle, leaf } =
        apply::wanted(&plan, stored, &names(), now, LIFETIMES).unwrap();
    let secret = |data: Vec<(&str, String)>| Secret {
        data: Some(data.into_iter().map(|(k, v)| (k.to_owned(), ByteString(v.into_bytes()))).collect()),
        ..Secret::default()
    };
    if authorities_changed {
        found.ca = Some(secret(vec![(AUTHORITIES, serde_json::to_string(&authorities).unwrap())]));
    }
    if let Some(bundle) = bundle {
        trust(found, &bundle);
    }
    if let Some(leaf) = leaf {
        found.tls = Some(secret(vec![("tls.crt", leaf.certificate), ("tls.key", leaf.key)]));
    }
    plan.steps
}

fn trust(found: &mut Found, bundle: &str) {
    for entry in found.configuration.as_mut().unwrap().webhooks.as_mut().unwrap() {
        entry.client_config.ca_bundle = Some(ByteString(bundle.as_bytes().to_vec()));
    }
}

fn settled() -> Found {
    let mut found = empty();
    while !pass(&mut found, now()).is_empty() {}
    found
}

fn bundle_of(found: &Found) -> String {
    String::from_utf8(bundles(found).unwrap().remove(0)).unwrap()
}

#[test]
fn what_was_made_is_recognised_and_there_is_nothing_left_to_do() {
    let mut found = settled();
    assert_eq!(pass(&mut found, now()), []);
    assert_eq!(issue::blocks(&bundle_of(&found)).count(), 1);
}

#[test]
fn a_bundle_that_differs_in_one_entry_is_written_again() {
    let mut found = settled();
    let good = bundle_of(&found);
    let entries = |found: &mut Found, bundle: Option<&str>| {
        let webhooks = found.configuration.as_mut().unwrap().webhooks.as_mut().unwrap();
        webhooks[1].client_config.ca_bundle = bundle.map(|b| ByteString(b.as_bytes().to_vec()));
    };
    let foreign = issue::authority(now(), LIFETIMES.authority).unwrap().certificate;
    for spoilt in [None, Some("junk"), Some(&*foreign), Some(&*format!("{good}{foreign}"))] {
        entries(&mut found, spoilt);
        assert_eq!(pass(&mut found, now()), [Step::WriteBundle], "{spoilt:?}");
        assert_eq!(pass(&mut found, now()), []);
    }
}

#[test]
fn a_certificate_that_cannot_be_served_is_made_again() {
    let good = settled();
    let text = |key: &str| text(good.tls.as_ref(), key).unwrap().to_owned();
    let other = issue::authority(now(), LIFETIMES.authority).unwrap();
    let misnamed = {
        let stored = authorities(&good, now(), LIFETIMES).remove(0);
        let by = issue::Pair { certificate: stored.certificate, key: stored.key.unwrap() };
        issue::leaf(&by, &["else.ns.svc".to_owned()], now(), LIFETIMES.leaf).unwrap()
    };
    let table = [
        ("another key", text("tls.crt"), other.key.clone()),
        ("junk", "junk".to_owned(), text("tls.key")),
        ("another authority", other.certificate, other.key),
        ("another name", misnamed.certificate, misnamed.key),
    ];
    for (what, certificate, key) in table {
        let mut found = good.clone();
        let data = found.tls.as_mut().unwrap().data.as_mut().unwrap();
        data.insert("tls.crt".to_owned(), ByteString(certificate.into_bytes()));
        data.insert("tls.key".to_owned(), ByteString(key.into_bytes()));
        assert!(matches!(pass(&mut found, now())[..], [Step::IssueLeaf(_)]), "{what}");
        assert_eq!(pass(&mut found, now()), [], "{what}");
    }
}

#[test]
fn a_lost_or_broken_authority_is_replaced_and_what_was_trusted_stays_so_for_a_while() {
    let broken = Secret {
        data: Some([(AUTHORITIES.to_owned(), ByteString(b"{".to_vec()))].into()),
        ..Secret::default()
    };
    for ca in [None, Some(broken)] {
        let mut found = settled();
        let before = bundle_of(&found);
        found.ca = ca;
        assert_eq!(
            pass(&mut found, now()),
            [Step::AddAuthority, Step::WriteBundle],
            "the certificate still serves"
        );
        let both = bundle_of(&found);
        assert!(both.contains(before.trim()) && issue::blocks(&both).count() == 2);
        assert!(matches!(pass(&mut found, now())[..], [Step::MarkTrusted(_)]));
        let later = now().checked_add(LIFETIMES.margin()).unwrap();
        assert!(matches!(pass(&mut found, later)[..], [Step::IssueLeaf(Signer::Authority(_))]));
        let end = now().checked_add(LIFETIMES.leaf).unwrap();
        assert!(pass(&mut found, end).iter().any(|s| matches!(s, Step::Drop(_))));
        assert!(!bundle_of(&found).contains(before.trim()));
    }
}

#[test]
fn a_secret_without_our_mark_is_somebody_elses() {
    let mut secret = Secret::default();
    assert!(!is_ours(&secret));
    let mark = |value: &str| Some([(MANAGED_BY.0.to_owned(), value.to_owned())].into());
    secret.metadata.labels = mark("Helm");
    assert!(!is_ours(&secret));
    secret.metadata.labels = mark(MANAGED_BY.1);
    assert!(is_ours(&secret));
}

//! The two Secrets and the webhook configuration, read into the state that the plan decides on.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret},
};
use serde::{Deserialize, Serialize};

use super::{
    issue,
    plan::{Authority, Leaf, Lifetimes, State},
};

/// Label on what the operator made; without it a Secret is somebody else's.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "bifold-operator");
/// Key of the CA Secret: [`Stored`], oldest first, as JSON.
pub const AUTHORITIES: &str = "authorities.json";

/// The objects as they were found.
#[derive(Clone, Default)]
pub struct Found {
    pub ca: Option<Secret>,
    pub tls: Option<Secret>,
    pub configuration: Option<MutatingWebhookConfiguration>,
}

/// An authority as it is kept in the CA Secret.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stored {
    pub certificate: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_until: Option<Timestamp>,
}

/// Whether a Secret was made by the operator.
pub fn is_ours(secret: &Secret) -> bool {
    let labels = secret.metadata.labels.as_ref();
    labels.and_then(|l| l.get(MANAGED_BY.0)).is_some_and(|v| v == MANAGED_BY.1)
}

/// Text under a key of a Secret.
pub fn text<'s>(secret: Option<&'s Secret>, key: &str) -> Option<&'s str> {
    std::str::from_utf8(&secret?.data.as_ref()?.get(key)?.0).ok()
}

/// The authorities that are kept. Where the Secret is lost, those that the configuration trusts go on being trusted
/// for as long as a certificate of theirs can be in use.
pub fn authorities(found: &Found, now: Timestamp, lifetimes: Lifetimes) -> Vec<Stored> {
    let stored: Option<Vec<Stored>> =
        text(found.ca.as_ref(), AUTHORITIES).and_then(|json| serde_json::from_str(json).ok());
    let mut stored = stored.unwrap_or_default();
    stored.retain(|s| issue::read(&s.certificate).is_some());
    if !stored.is_empty() {
        return stored;
    }
    let Some(bundle) = bundles(found).and_then(|b| b.into_iter().next()) else { return Vec::new() };
    let until = now.checked_add(lifetimes.leaf).ok();
    let bundle = String::from_utf8_lossy(&bundle);
    let lost = issue::blocks(&bundle).filter(|b| issue::read(b).is_some()).map(|block| Stored {
        certificate: block.to_owned(),
        key: None,
        trusted_since: Some(now),
        signed_until: until,
    });
    lost.collect()
}

/// What the plan decides on. `names` are those that the webhook is called by.
pub fn state(found: &Found, stored: &[Stored], names: &[String]) -> State {
    let authorities: Vec<Authority> = stored.iter().filter_map(authority).collect();
    let (certificate, key) = (text(found.tls.as_ref(), "tls.crt"), text(found.tls.as_ref(), "tls.key"));
    let leaf = certificate.zip(key).and_then(|(certificate, key)| {
        let seen = issue::read(certificate)?;
        let for_all = names.iter().all(|n| seen.names.contains(n));
        let known = authorities.iter().any(|a| a.id == seen.issuer);
        let leaf =
            Leaf { issuer: seen.issuer.clone(), not_before: seen.not_before, not_after: seen.not_after };
        (for_all && known && seen.has_key(key)).then_some(leaf)
    });
    State { trusted: trusted(found, stored), authorities, leaf }
}

fn authority(stored: &Stored) -> Option<Authority> {
    let seen = issue::read(&stored.certificate)?;
    Some(Authority {
        can_sign: stored.key.as_deref().is_some_and(|key| seen.has_key(key)),
        id: seen.id,
        not_before: seen.not_before,
        not_after: seen.not_after,
        trusted_since: stored.trusted_since,
        signed_until: stored.signed_until,
    })
}

/// Ids of the authorities that every entry trusts. What is not one of ours counts under a name that no authority
/// has, so that the bundle is written anew.
fn trusted(found: &Found, stored: &[Stored]) -> Option<Vec<String>> {
    const STRANGE: &str = "";
    let known: BTreeMap<Vec<u8>, String> = stored
        .iter()
        .flat_map(|s| issue::read_all(s.certificate.as_bytes()))
        .map(|(seen, der)| (der, seen.id))
        .collect();
    let ids = |bundle: Vec<u8>| -> Vec<String> {
        let found = issue::read_all(&bundle).into_iter();
        found.map(|(_, der)| known.get(&der).cloned().unwrap_or_else(|| STRANGE.to_owned())).collect()
    };
    let mut entries = bundles(found)?.into_iter().map(ids);
    let first = entries.next()?;
    let (same, other): (Vec<_>, Vec<_>) = entries.partition(|e| *e == first);
    drop(same);
    if other.is_empty() {
        return Some(first);
    }
    let everywhere = first.into_iter().filter(|id| other.iter().all(|e| e.contains(id)));
    Some(everywhere.chain([STRANGE.to_owned()]).collect())
}

/// The bundle of every entry of the configuration.
fn bundles(found: &Found) -> Option<Vec<Vec<u8>>> {
    let entries = found.configuration.as_ref()?.webhooks.as_ref()?;
    let bundle = |b: &Option<ByteString>| b.as_ref().map(|b| b.0.clone()).unwrap_or_default();
    Some(entries.iter().map(|e| bundle(&e.client_config.ca_bundle)).collect())
}

#[cfg(test)]
mod tests;

//! The steps of a plan, carried out in their order: the authority is stored before it is trusted, and what a
//! certificate needs is remembered before the certificate is served.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret},
};
use kube::{
    Api, ResourceExt as _,
    api::{ObjectMeta, Patch},
};
use serde_json::json;

use super::{
    Names,
    issue::{self, Pair},
    observe::{AUTHORITIES, Found, MANAGED_BY, Stored},
    plan::{Lifetimes, Plan, Signer, Step},
};
use crate::writer::{WriteError, Writer, patch, post};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("make a certificate")]
    Issue(#[from] rcgen::Error),
    #[error("store the authorities")]
    Store(#[from] serde_json::Error),
    #[error("write certificates")]
    Write(#[from] WriteError),
}

/// What a plan makes of what was found, before anything is written.
pub struct Wanted {
    pub authorities: Vec<Stored>,
    pub authorities_changed: bool,
    pub bundle: Option<String>,
    pub leaf: Option<Pair>,
}

/// Carries the steps out on values. New keys are made here.
pub fn wanted(
    plan: &Plan,
    stored: Vec<Stored>,
    names: &[String],
    now: Timestamp,
    lifetimes: Lifetimes,
) -> Result<Wanted, rcgen::Error> {
    let mut wanted = Wanted { authorities: stored, authorities_changed: false, bundle: None, leaf: None };
    let has_id = |s: &Stored, id: &str| issue::read(&s.certificate).is_some_and(|c| c.id == id);
    for step in &plan.steps {
        match step {
            Step::Drop(id) => wanted.authorities.retain(|s| !has_id(s, id)),
            Step::AddAuthority => {
                let Pair { certificate, key } = issue::authority(now, lifetimes.authority)?;
                let new = Stored { certificate, key: Some(key), trusted_since: None, signed_until: None };
                wanted.authorities.push(new);
            }
            Step::MarkTrusted(id) => {
                let marked = wanted.authorities.iter_mut().filter(|s| has_id(s, id));
                marked.for_each(|s| s.trusted_since = Some(now));
            }
            Step::WriteBundle => wanted.bundle = Some(bundle(&wanted.authorities)),
            Step::IssueLeaf(signer) => {
                let by = match signer {
                    Signer::Newest => wanted.authorities.last_mut(),
                    Signer::Authority(id) => wanted.authorities.iter_mut().find(|s| has_id(s, id)),
                };
                let Some((by, key)) = by.and_then(|s| s.key.clone().map(|key| (s, key))) else { continue };
                let pair = Pair { certificate: by.certificate.clone(), key };
                let leaf = issue::leaf(&pair, names, now, lifetimes.leaf)?;
                by.signed_until = by.signed_until.max(issue::read(&leaf.certificate).map(|l| l.not_after));
                wanted.leaf = Some(leaf);
            }
        }
        wanted.authorities_changed |= !matches!(step, Step::WriteBundle);
    }
    Ok(wanted)
}

pub fn bundle(authorities: &[Stored]) -> String {
    let mut bundle = String::new();
    for stored in authorities {
        bundle.push_str(stored.certificate.trim());
        bundle.push('\n');
    }
    bundle
}

pub async fn write(writer: &Writer, names: &Names, found: &Found, wanted: &Wanted) -> Result<(), Error> {
    if wanted.authorities_changed {
        let data = [
            (AUTHORITIES, serde_json::to_string_pretty(&wanted.authorities)?),
            // For people and tools that look for it here; nothing reads it back.
            ("ca.crt", bundle(&wanted.authorities)),
        ];
        secret(writer, names, &names.ca_secret, "Opaque", found.ca.as_ref(), data).await?;
    }
    if let Some(bundle) = &wanted.bundle
        && let Some(configuration) = &found.configuration
    {
        trust(writer, configuration, bundle).await?;
    }
    if let Some(leaf) = &wanted.leaf {
        let data = [("tls.crt", leaf.certificate.clone()), ("tls.key", leaf.key.clone())];
        secret(writer, names, &names.tls_secret, "kubernetes.io/tls", found.tls.as_ref(), data).await?;
    }
    Ok(())
}

/// Creates a Secret, or replaces the one that was seen.
async fn secret<const N: usize>(
    writer: &Writer,
    names: &Names,
    name: &str,
    type_: &str,
    found: Option<&Secret>,
    data: [(&str, String); N],
) -> Result<(), WriteError> {
    let api = Api::<Secret>::namespaced(writer.client.clone(), &names.namespace);
    let data = data.map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes())));
    let mut secret = found.cloned().unwrap_or_else(|| Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())])),
            ..ObjectMeta::default()
        },
        type_: Some(type_.to_owned()),
        ..Secret::default()
    });
    secret.data = Some(BTreeMap::from(data));
    secret.metadata.managed_fields = None;
    if found.is_some() {
        writer.write("update", "Secret", name, api.replace(name, &post(), &secret)).await?;
    } else {
        writer.write("create", "Secret", name, api.create(&post(), &secret)).await?;
    }
    Ok(())
}

/// Writes the bundle into every entry of the configuration that was seen. A strategic merge finds entries by name
/// and leaves everything else in them alone; the version keeps an entry that has just been removed from coming back.
async fn trust(
    writer: &Writer,
    configuration: &MutatingWebhookConfiguration,
    bundle: &str,
) -> Result<(), WriteError> {
    let ca = ByteString(bundle.as_bytes().to_vec());
    let entries = configuration.webhooks.iter().flatten();
    let entries: Vec<_> =
        entries.map(|e| json!({ "name": e.name, "clientConfig": { "caBundle": ca } })).collect();
    let body = json!({
        "metadata": { "resourceVersion": configuration.resource_version() },
        "webhooks": entries,
    });
    let name = configuration.name_any();
    let api = Api::<MutatingWebhookConfiguration>::all(writer.client.clone());
    writer
        .write(
            "patch",
            "MutatingWebhookConfiguration",
            &name,
            api.patch(&name, &patch(), &Patch::Strategic(body)),
        )
        .await
        .map(drop)
}

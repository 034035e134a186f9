//! Keys and certificates: ECDSA P-256, which every API server verifies fast.

use std::{fmt::Write as _, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use time::OffsetDateTime;
use x509_parser::{pem::Pem, prelude::X509Certificate};

/// A certificate with its key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// What a certificate says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Subject and issuer: every authority has a subject of its own.
    pub id: String,
    pub issuer: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    pub names: Vec<String>,
    public_key: Vec<u8>,
}

/// Clocks differ: what is made now is valid a little earlier, by this part of its life but not more than the other.
const BACKDATED_PART: u32 = 20;
const BACKDATED_AT_MOST: Duration = Duration::from_mins(5);

/// A new authority.
pub fn authority(now: Timestamp, life: Duration) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = params(now, after(now, life), life);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    // Told apart by name, so that a bundle of several is searched by subject and not by trial. The key is random; its
    // first byte says only how it is written.
    let mut name = String::from("bifold-webhook-ca-");
    for byte in key.public_key_raw().iter().skip(1).take(8) {
        // Writing to a String does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    params.distinguished_name = named(&name);
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A new certificate for a server of these names.
pub fn leaf(by: &Pair, names: &[String], now: Timestamp, life: Duration) -> Result<Pair, rcgen::Error> {
    let issuer = Issuer::from_ca_cert_pem(&by.certificate, KeyPair::from_pem(&by.key)?)?;
    let key = KeyPair::generate()?;
    let mut end = after(now, life);
    // One that outlives its authority would be worthless before it says so.
    if let Some(authority) = read(&by.certificate) {
        end = end.min(authority.not_after);
    }
    let mut params = params(now, end, life);
    params.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.distinguished_name = named("bifold-webhook");
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn after(now: Timestamp, life: Duration) -> Timestamp {
    now.checked_add(life).unwrap_or(Timestamp::MAX)
}

fn params(now: Timestamp, end: Timestamp, life: Duration) -> CertificateParams {
    let early = (life / BACKDATED_PART).min(BACKDATED_AT_MOST);
    let start = now.checked_sub(early).unwrap_or(now);
    let mut params = CertificateParams::default();
    params.not_before = date(start);
    params.not_after = date(end);
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut dn = DistinguishedName::new();
    dn.push(DnType::CommonName, name);
    dn
}

fn date(at: Timestamp) -> OffsetDateTime {
    // Both count seconds since 1970; jiff's range lies within that of `time`.
    OffsetDateTime::from_unix_timestamp(at.as_second()).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// What the first certificate in a PEM text says; `None` if there is none.
pub fn read(pem: &str) -> Option<Seen> {
    read_all(pem.as_bytes()).into_iter().next().map(|(seen, _)| seen)
}

/// The PEM blocks of a bundle, each ready to be read on its own.
pub fn blocks(bundle: &str) -> impl Iterator<Item = &str> {
    const END: &str = "-----END CERTIFICATE-----";
    bundle.split_inclusive(END).map(str::trim_start).filter(|b| b.ends_with(END))
}

/// Every certificate of a bundle with its DER.
pub fn read_all(pem: &[u8]) -> Vec<(Seen, Vec<u8>)> {
    let blocks = Pem::iter_from_buffer(pem).filter_map(Result::ok).filter(|p| p.label == "CERTIFICATE");
    blocks.filter_map(|p| Some((p.parse_x509().ok().and_then(|c| seen(&c))?, p.contents))).collect()
}

fn seen(certificate: &X509Certificate<'_>) -> Option<Seen> {
    let at = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
    let names = certificate.subject_alternative_name().ok()?.map(|san| san.value.general_names.clone());
    let dns = names.unwrap_or_default().into_iter().filter_map(|name| match name {
        x509_parser::extensions::GeneralName::DNSName(dns) => Some(dns.to_owned()),
        _ => None,
    });
    Some(Seen {
        id: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        not_before: at(certificate.validity().not_before)?,
        not_after: at(certificate.validity().not_after)?,
        names: dns.collect(),
        public_key: certificate.public_key().subject_public_key.data.to_vec(),
    })
}

impl Seen {
    /// Whether `key` (PEM) is the private half.
    pub fn has_key(&self, key: &str) -> bool {
        KeyPair::from_pem(key).is_ok_and(|k| k.public_key_raw() == self.public_key)
    }
}

#[cfg(test)]
mod tests;

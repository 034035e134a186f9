//! The cluster's certificates and kubeconfigs: one authority, P-256 keys, made anew for every cluster.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;

use super::layout::Layout;

/// The authority that everything in one cluster trusts.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    directory: PathBuf,
    server: String,
}

/// The files of one certificate.
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    /// Makes the authority and writes its certificate. Its key stays in memory: nothing is signed after the start.
    pub(crate) fn create(layout: &Layout) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("bifold-e2e {}", layout.name()));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        let directory = layout.path("pki");
        fs::write(directory.join("ca.crt"), &pem)?;
        Ok(Self { issuer: Issuer::new(params, key), pem, directory, server: layout.api_server() })
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    /// A certificate that a server shows under these names and addresses.
    pub(crate) fn server(&self, file: &str, names: Vec<String>) -> Result<Identity> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, file);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(file, params)
    }

    /// A certificate that a client shows to be this user of these groups.
    pub(crate) fn client(&self, file: &str, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(file, params)
    }

    /// A kubeconfig with a client certificate of its own, everything inline.
    pub(crate) fn kubeconfig(&self, path: &Path, user: &str, group: Option<&str>) -> Result<()> {
        let file = path.file_name().and_then(|name| name.to_str()).context("name the kubeconfig")?;
        let identity = self.client(&format!("{file}-client"), user, group)?;
        // YAML is a superset of JSON, and JSON needs no quoting rules.
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bifold", "cluster": {
                "server": self.server,
                "certificate-authority-data": base64(self.pem.as_bytes()),
            }}],
            "users": [{"name": user, "user": {
                "client-certificate-data": base64(&fs::read(&identity.certificate)?),
                "client-key-data": base64(&fs::read(&identity.key)?),
            }}],
            "contexts": [{"name": "bifold", "context": {"cluster": "bifold", "user": user}}],
            "current-context": "bifold",
        });
        write_private(path, &serde_json::to_string_pretty(&config)?)
    }

    /// The key pair that service-account tokens are signed with.
    pub(crate) fn token_signer(&self) -> Result<Identity> {
        let key = KeyPair::generate()?;
        let identity = self.files("service-accounts", "pub");
        write_private(&identity.key, &key.serialize_pem())?;
        fs::write(&identity.certificate, key.public_key_pem())?;
        Ok(identity)
    }

    fn issue(&self, file: &str, mut params: CertificateParams) -> Result<Identity> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer).with_context(|| format!("sign {file}"))?;
        let identity = self.files(file, "crt");
        write_private(&identity.key, &key.serialize_pem())?;
        fs::write(&identity.certificate, certificate.pem())?;
        Ok(identity)
    }

    fn files(&self, file: &str, extension: &str) -> Identity {
        let path = |extension| self.directory.join(format!("{file}.{extension}"));
        Identity { certificate: path(extension), key: path("key") }
    }
}

/// Writes a file that only its owner may read.
fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path).with_context(|| format!("write {}", path.display()))?;
    Ok(file.write_all(text.as_bytes())?)
}

fn base64(bytes: &[u8]) -> String {
    use k8s_openapi::ByteString;
    // `ByteString` serializes as base64, as every `data` field of the API does.
    match serde_json::to_value(ByteString(bytes.to_vec())) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_base64() {
        assert_eq!(base64(b"bifold"), "Ymlmb2xk");
    }
}

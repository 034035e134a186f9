//! Reaching one webhook replica from the API server's seat: over TLS, with the CA of the webhook configuration.

use anyhow::{Context as _, Result, ensure};
use http::{Request, StatusCode, header};
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Pod},
};
use kube::{Api, Client, Config, ResourceExt as _, api::ListParams, client::Body};

use super::Context;
use crate::install::NAMESPACE;

/// The Service, the webhook configuration and the Deployment all have this name.
const WEBHOOK: &str = "bifold-webhook";
const PORT: u16 = 9443;

/// One pod of the webhook.
pub struct Replica {
    /// The pod's name.
    pub name: String,
    client: Client,
}

impl Context {
    /// The webhook's pods that run. A replica can be asked while the API server is away.
    pub async fn replicas(&self) -> Result<Vec<Replica>> {
        let authority = self.webhook_authority().await?;
        let mut replicas = Vec::new();
        for pod in self.webhook_pods().await? {
            let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
            let address = address.with_context(|| format!("{} has no address", pod.name_any()))?;
            let mut config = Config::new(format!("https://{address}:{PORT}").parse()?);
            config.root_cert = Some(authority.clone());
            config.tls_server_name = Some(format!("{WEBHOOK}.{NAMESPACE}.svc"));
            replicas.push(Replica { name: pod.name_any(), client: Client::try_from(config)? });
        }
        ensure!(!replicas.is_empty(), "no webhook pod runs");
        Ok(replicas)
    }

    /// How often containers of the webhook's pods have been started again.
    pub async fn webhook_restarts(&self) -> Result<i32> {
        let pods = self.webhook_pods().await?;
        let containers =
            pods.iter().filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref()).flatten();
        Ok(containers.map(|container| container.restart_count).sum())
    }

    async fn webhook_pods(&self) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let ours = ListParams::default().labels("app.kubernetes.io/component=webhook");
        let mut pods = pods.list(&ours).await?.items;
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(pods)
    }

    /// The certificates, in DER, that the API server trusts the webhook by.
    async fn webhook_authority(&self) -> Result<Vec<Vec<u8>>> {
        let configurations: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let webhooks = configurations.get(WEBHOOK).await?.webhooks.unwrap_or_default();
        let bundle = webhooks.into_iter().find_map(|webhook| webhook.client_config.ca_bundle);
        let ByteString(pem) = bundle.context("the webhook configuration has no caBundle")?;
        let certificates = rustls::pki_types::pem::PemObject::pem_slice_iter(&pem)
            .map(|certificate: Result<rustls::pki_types::CertificateDer<'_>, _>| Ok(certificate?.to_vec()));
        certificates.collect()
    }
}

impl Replica {
    /// Posts a body to `/mutate` and returns what comes back.
    pub async fn mutate(&self, body: impl Into<Vec<u8>>) -> Result<(StatusCode, String)> {
        let request = Request::post("/mutate?timeout=5s")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.into()))?;
        let answer = self.client.send(request).await.with_context(|| format!("ask {}", self.name))?;
        let status = answer.status();
        let body = answer.into_body().collect_bytes().await?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

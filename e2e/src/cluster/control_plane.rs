//! etcd, the API server, the controller manager and the scheduler: on this machine, outside every node.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};

use super::layout::Layout;
use super::pki::{Authority, Identity};
use super::supervisor::{Part, client as supervisor};
use crate::tools::{Tools, built};
use crate::wait::{Look, wait_for};

/// Measured at 3 s on two idle cores; a machine that compiles meanwhile is many times slower.
const STARTED_WITHIN: Duration = Duration::from_mins(2);

/// What the API server writes into its audit log: whatever a webhook may have decided about, without bodies. The
/// annotations that stories read (which webhook changed an object, which one failed open) are part of that level.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete]
  resources:
  - {group: '', resources: [pods, pods/binding, pods/ephemeralcontainers]}
  - {group: apps}
  - {group: batch}
  - {group: bifold.dev}
- level: None
";

/// Starts the control plane and returns a client once it serves and its controllers work.
pub(crate) async fn start(layout: &Layout, tools: &Tools, authority: &Authority) -> Result<Client> {
    write_identities(layout, authority)?;
    supervisor::run(layout, Part::new("etcd", built(tools.etcd())?, etcd(layout))).await?;
    let server = authority.server(
        "kube-apiserver",
        [
            "127.0.0.1",
            &layout.gateway(),
            &layout.api_service_address(),
            "localhost",
            "kubernetes.default.svc",
        ]
        .map(ToOwned::to_owned)
        .to_vec(),
    )?;
    let to_kubelets =
        authority.client("kube-apiserver-to-kubelets", "kube-apiserver", Some("system:masters"))?;
    let tokens = authority.token_signer()?;
    std::fs::write(layout.path("conf/audit.yaml"), AUDIT_POLICY)?;
    let args = api_server(layout, authority, &server, &to_kubelets, &tokens);
    supervisor::run(layout, Part::new("kube-apiserver", built(tools.kubernetes("kube-apiserver"))?, args))
        .await?;
    let client = super::client_from(&layout.kubeconfig()).await?;
    serves(layout, &client).await?;

    let args = controller_manager(layout, &authority.certificate(), &tokens);
    let program = built(tools.kubernetes("kube-controller-manager"))?;
    supervisor::run(layout, Part::new("kube-controller-manager", program, args)).await?;
    let program = built(tools.kubernetes("kube-scheduler"))?;
    supervisor::run(layout, Part::new("kube-scheduler", program, scheduler(layout))).await?;
    Ok(client)
}

/// Waits until the API server says that it is ready, or has ended.
pub(crate) async fn serves(layout: &Layout, client: &Client) -> Result<()> {
    wait_for("the API server", STARTED_WITHIN, || async {
        for part in ["etcd", "kube-apiserver"] {
            if let Some(ended) = supervisor::ended(layout, part).await? {
                return Ok(Look::Never(ended));
            }
        }
        let answer = health(client).await?;
        Ok(if answer == "ok" { Look::Done(()) } else { Look::NotYet(answer) })
    })
    .await
}

/// Waits until a pod can be created: without the controllers there is no default service account to run it as.
pub(crate) async fn controllers_work(layout: &Layout, client: &Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    wait_for("the default service account", STARTED_WITHIN, || async {
        if let Some(ended) = supervisor::ended(layout, "kube-controller-manager").await? {
            return Ok(Look::Never(ended));
        }
        Ok(match accounts.get_opt("default").await? {
            Some(_) => Look::Done(()),
            None => Look::NotYet("no such service account".to_owned()),
        })
    })
    .await
}

/// What the API server says about itself: `ok`, or what is not.
pub(crate) async fn health(client: &Client) -> Result<String> {
    let ready = http::Request::get("/readyz").body(Vec::new())?;
    Ok(client.request_text(ready).await?)
}

fn write_identities(layout: &Layout, authority: &Authority) -> Result<()> {
    authority.kubeconfig(&layout.kubeconfig(), "admin", Some("system:masters"))?;
    for part in ["kube-controller-manager", "kube-scheduler", "kube-proxy"] {
        authority.kubeconfig(
            &layout.path(format!("conf/{part}.kubeconfig")),
            &format!("system:{part}"),
            None,
        )?;
    }
    Ok(())
}

fn etcd(layout: &Layout) -> Vec<String> {
    let (clients, peers) =
        (format!("http://{}:2379", layout.loopback()), format!("http://{}:2380", layout.loopback()));
    vec![
        format!("--data-dir={}", layout.path("etcd").display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        // The data need not survive this machine's power, and waiting for the disk is most of the start.
        "--unsafe-no-fsync".to_owned(),
    ]
}

fn api_server(
    layout: &Layout,
    authority: &Authority,
    server: &Identity,
    to_kubelets: &Identity,
    tokens: &Identity,
) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://{}:2379", layout.loopback()),
        format!("--bind-address={}", layout.gateway()),
        format!("--advertise-address={}", layout.gateway()),
        format!("--secure-port={}", Layout::api_port()),
        format!("--tls-cert-file={}", server.certificate.display()),
        format!("--tls-private-key-file={}", server.key.display()),
        format!("--client-ca-file={}", authority.certificate().display()),
        format!("--kubelet-certificate-authority={}", authority.certificate().display()),
        format!("--kubelet-client-certificate={}", to_kubelets.certificate.display()),
        format!("--kubelet-client-key={}", to_kubelets.key.display()),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", tokens.certificate.display()),
        format!("--service-account-signing-key-file={}", tokens.key.display()),
        format!("--service-cluster-ip-range={}", layout.service_range()),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        // The API server finds a webhook's pods by itself, for there is no kube-proxy beside it.
        "--enable-aggregator-routing=true".to_owned(),
        format!("--audit-policy-file={}", layout.path("conf/audit.yaml").display()),
        format!("--audit-log-path={}", layout.audit_log().display()),
    ]
}

fn controller_manager(layout: &Layout, authority: &Path, tokens: &Identity) -> Vec<String> {
    let mut args = own_kubeconfig(layout, "kube-controller-manager");
    args.extend([
        format!("--service-account-private-key-file={}", tokens.key.display()),
        format!("--root-ca-file={}", authority.display()),
        "--use-service-account-credentials=true".to_owned(),
        "--allocate-node-cidrs=true".to_owned(),
        format!("--cluster-cidr={}", layout.pod_range()),
    ]);
    args
}

fn scheduler(layout: &Layout) -> Vec<String> {
    own_kubeconfig(layout, "kube-scheduler")
}

fn own_kubeconfig(layout: &Layout, part: &str) -> Vec<String> {
    let path = layout.path(format!("conf/{part}.kubeconfig"));
    let mut args: Vec<String> = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .iter()
        .map(|flag| format!("--{flag}={}", path.display()))
        .collect();
    // One of each: no election. The loopback address is the cluster's own, so the usual port is free.
    args.extend(["--leader-elect=false".to_owned(), format!("--bind-address={}", layout.loopback())]);
    args
}

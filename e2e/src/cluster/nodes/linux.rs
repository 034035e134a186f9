//! `linux-1`: a real node, made of namespaces instead of a machine.
//!
//! A holder process owns a mount, a network and a host-name namespace in which `/run`, `/var/lib` and `/var/log` are
//! the node's own; containerd, kubelet and kube-proxy are started inside and keep their usual paths. When the holder's
//! cluster ends, the kernel undoes all of it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde_json::json;
use tokio::net::UnixStream;

use crate::cluster::layout::Layout;
use crate::cluster::pki::Authority;
use crate::cluster::supervisor::{Part, client as supervisor};
use crate::cluster::{control_groups, network};
use crate::tools::{Tools, built};
use crate::wait::{Look, wait_for};
use crate::{machine, paths, shell};

/// The node's name.
pub(crate) const NAME: &str = "linux-1";
/// The hidden subcommand that [`hold`] is.
pub(crate) const SUBCOMMAND: &str = "hold-node";
/// The image that holds every pod's namespaces, and that stories use for Linux containers.
pub const PAUSE_IMAGE: &str = "bifold.local/e2e/pause:1";

/// Its address on the bridge.
const HOST: u8 = 2;
/// Measured at 2 s for containerd and 6 s for the kubelet on idle cores.
const STARTED_WITHIN: Duration = Duration::from_mins(2);

/// Gives this process namespaces of its own, furnishes them, and holds them until it is killed.
pub(crate) fn hold(directory: &Path) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS).context("leave the machine's mounts")?;
    nix::unistd::sethostname(NAME).context("set the host name")?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)
        .context("part from the machine's mounts")?;
    for owned in paths::NODE_OWNED {
        let own = directory.join(owned.trim_start_matches('/').replace('/', "-"));
        fs::create_dir_all(&own)?;
        if owned == "/run" {
            // Sockets and locks: on a real machine a file system in memory, too.
            mount(Some("tmpfs"), owned, Some("tmpfs"), MsFlags::empty(), none).context("mount /run")?;
        } else {
            mount(Some(&own), owned, none, MsFlags::MS_BIND, none)
                .with_context(|| format!("replace {owned}"))?;
        }
    }
    // As systemd does on a real machine; the kubelet expects it for mount propagation.
    mount(none, "/", none, MsFlags::MS_SHARED | MsFlags::MS_REC, none)
        .context("share mounts inside the node")?;
    // Last, because it is what `start` waits to see.
    unshare(CloneFlags::CLONE_NEWNET).context("leave the machine's network")?;
    loop {
        nix::unistd::pause();
    }
}

/// Starts containerd in a node that is plugged in and routed, and the objects that the kubelet will find.
pub(crate) async fn start_runtime(layout: &Layout, client: &Client, authority: &Authority) -> Result<()> {
    let directory = layout.path(NAME);
    fs::create_dir_all(&directory)?;
    control_groups::create(layout)?;
    let args = [SUBCOMMAND.to_owned(), directory.display().to_string()];
    supervisor::run(layout, Part::new(NAME, layout.program(), args)).await?;
    let pid = supervisor::pid_of(layout, NAME).await?;
    wait_for("the node's namespaces", STARTED_WITHIN, || async {
        if let Some(ended) = supervisor::ended(layout, NAME).await? {
            return Ok(Look::Never(ended));
        }
        let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net"));
        let apart = network(&pid.to_string())? != network("self")?;
        Ok(if apart { Look::Done(()) } else { Look::NotYet("not made yet".to_owned()) })
    })
    .await?;
    network::plug_in(layout, pid, HOST).await?;
    network::route_pods(layout, &layout.first_node_pod_range(), HOST).await?;
    register(layout, client).await?;

    write_configuration(layout, authority, &directory)?;
    let containerd = Part::new(
        "containerd",
        "containerd".into(),
        ["--config".to_owned(), show(&directory, "containerd.toml")],
    );
    supervisor::run(layout, containerd.inside(NAME)).await?;
    wait_for("containerd", STARTED_WITHIN, || async {
        if let Some(ended) = supervisor::ended(layout, "containerd").await? {
            return Ok(Look::Never(ended));
        }
        UnixStream::connect(format!("/proc/{pid}/root/run/containerd/containerd.sock")).await?;
        Ok(Look::Done(()))
    })
    .await
}

/// Starts what makes the node a node: kubelet and kube-proxy.
pub(crate) async fn start_kubelet(layout: &Layout, tools: &Tools) -> Result<()> {
    let directory = layout.path(NAME);
    let kubelet = [
        format!("--config={}", show(&directory, "kubelet.json")),
        format!("--kubeconfig={}", show(&directory, "kubelet.kubeconfig")),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={}", layout.node_address(HOST)),
    ];
    let proxy =
        [format!("--config={}", show(&directory, "kube-proxy.json")), format!("--hostname-override={NAME}")];
    let program = built(tools.kubernetes("kube-proxy"))?;
    supervisor::run(layout, Part::new("kube-proxy", program, proxy).inside(NAME)).await?;
    let program = built(tools.kubernetes("kubelet"))?;
    supervisor::run(layout, Part::new("kubelet", program, kubelet).inside(NAME)).await?;
    Ok(())
}

/// Waits until the node takes pods.
pub(crate) async fn ready(layout: &Layout, client: &Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    wait_for("node linux-1", STARTED_WITHIN, || async {
        for part in ["containerd", "kubelet", "kube-proxy"] {
            if let Some(ended) = supervisor::ended(layout, part).await? {
                return Ok(Look::Never(ended));
            }
        }
        let node = nodes.get(NAME).await?;
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        Ok(match conditions.iter().find(|condition| condition.type_ == "Ready") {
            Some(ready) if ready.status == "True" => Look::Done(()),
            Some(ready) => Look::NotYet(ready.message.clone().unwrap_or_default()),
            None => Look::NotYet("no condition Ready".to_owned()),
        })
    })
    .await
}

/// Brings an image archive to the node's containerd.
pub(crate) async fn import_image(layout: &Layout, archive: &Path) -> Result<()> {
    let pid = supervisor::pid_of(layout, NAME).await?.to_string();
    let mut import = shell::command("nsenter");
    import.args([
        "--target",
        &pid,
        "--mount",
        "--net",
        "--",
        "ctr",
        "--namespace",
        "k8s.io",
        "image",
        "import",
    ]);
    shell::capture(import.arg(archive)).await.map(drop)
}

/// Makes the Node before its kubelet does, because only so its pod range is known in advance: the simulated nodes
/// take ranges from the same pool.
async fn register(layout: &Layout, client: &Client) -> Result<()> {
    let range = layout.first_node_pod_range();
    let node = serde_json::from_value(json!({
        "metadata": {"name": NAME},
        "spec": {"podCIDR": range, "podCIDRs": [range]},
    }))?;
    Api::<Node>::all(client.clone()).create(&kube::api::PostParams::default(), &node).await?;
    Ok(())
}

fn write_configuration(layout: &Layout, authority: &Authority, directory: &Path) -> Result<()> {
    let plugins = machine::cni_plugins().context("the CNI plugins are not installed")?;
    let cni = directory.join("cni");
    fs::create_dir_all(&cni)?;
    fs::write(cni.join("10-bifold.conflist"), cni_network(layout).to_string())?;
    fs::write(directory.join("containerd.toml"), containerd(plugins, &cni))?;

    let user = format!("system:node:{NAME}");
    authority.kubeconfig(&directory.join("kubelet.kubeconfig"), &user, Some("system:nodes"))?;
    let serving = authority.server("kubelet", vec![NAME.to_owned(), layout.node_address(HOST)])?;
    // Without cluster DNS pods get this file, and nothing must resolve by the machine's own servers.
    fs::write(directory.join("resolv.conf"), "# This cluster has no DNS.\n")?;
    let kubelet = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "x509": {"clientCAFile": authority.certificate()},
            "webhook": {"enabled": true},
            "anonymous": {"enabled": false},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": serving.certificate,
        "tlsPrivateKeyFile": serving.key,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "resolvConf": directory.join("resolv.conf"),
        "cgroupRoot": format!("/{}", layout.control_group()),
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": [],
        // The machine's disk is not the node's: neither evict pods nor remove images when it fills up.
        "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
    });
    fs::write(directory.join("kubelet.json"), kubelet.to_string())?;
    let proxy = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": layout.pod_range(),
        "clientConnection": {"kubeconfig": layout.path("conf/kube-proxy.kubeconfig")},
        // The machine's own limits, which a network namespace may not change.
        "conntrack": {"maxPerCore": 0, "min": 0},
    });
    Ok(fs::write(directory.join("kube-proxy.json"), proxy.to_string())?)
}

/// `ptp` instead of `bridge`: every packet between pods is routed, so that Services between pods of one node work
/// without the kernel module `br_netfilter`.
fn cni_network(layout: &Layout) -> serde_json::Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "bifold",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": layout.first_node_pod_range()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

/// The version 2 of containerd's configuration, which its releases 1.6 to 2.x all read.
fn containerd(plugins: &Path, networks: &Path) -> String {
    format!(
        r#"version = 2
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # Not every machine lets root lower the score, a container for one does not.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{}"
    conf_dir = "{}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"#,
        plugins.display(),
        networks.display()
    )
}

fn show(directory: &Path, file: &str) -> String {
    directory.join(file).display().to_string()
}

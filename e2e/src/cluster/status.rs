//! What a person wants to know about a running cluster.

use anyhow::Result;
use comfy_table::{Table, presets};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};

use super::supervisor::client::{self as supervisor, Found};
use super::{Cluster, control_plane};

/// The tables of parts and nodes. Parts are told of by the supervisor, so they are shown even when no API server is.
pub(crate) async fn describe(cluster: &Cluster) -> Result<String> {
    let mut parts = table(["part", "pid", "up", "state", "log"]);
    for found in supervisor::list(&cluster.layout).await? {
        parts.add_row(part_row(cluster, &found));
    }
    let client = cluster.client().await?;
    let (health, nodes) = match control_plane::health(&client).await {
        Ok(health) => (health, node_table(client).await?.to_string()),
        Err(error) => (format!("{error:#}"), String::new()),
    };
    Ok(format!(
        "cluster {:?}, API server {}: {health}\n\n{parts}\n\n{nodes}\n\nexport KUBECONFIG={}",
        cluster.layout.name(),
        cluster.layout.api_server(),
        cluster.layout.kubeconfig().display(),
    ))
}

async fn node_table(client: Client) -> Result<Table> {
    let mut nodes = table(["node", "ready", "kind", "kernel", "taints"]);
    for node in Api::<Node>::all(client).list(&ListParams::default()).await? {
        nodes.add_row(node_row(&node));
    }
    Ok(nodes)
}

fn part_row(cluster: &Cluster, found: &Found) -> [String; 5] {
    let running = &found.running;
    let (up, state) = match &running.ended {
        Some(how) => (String::new(), format!("ended: {how}")),
        None => (age(running.since), "running".to_owned()),
    };
    let pid = found.pid.filter(|_| running.ended.is_none()).map(|pid| pid.to_string()).unwrap_or_default();
    [running.part.name.clone(), pid, up, state, cluster.layout.log(&running.part.name).display().to_string()]
}

fn node_row(node: &Node) -> [String; 5] {
    let status = node.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    let kind = if node.annotations().contains_key("kwok.x-k8s.io/node") { "simulated" } else { "real" };
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let taints = taints.iter().map(|taint| {
        format!("{}={}:{}", taint.key, taint.value.as_deref().unwrap_or_default(), taint.effect)
    });
    [
        node.name_any(),
        ready.map_or("Unknown", |ready| ready.status.as_str()).to_owned(),
        kind.to_owned(),
        status.node_info.map(|info| info.kernel_version).unwrap_or_default(),
        taints.collect::<Vec<_>>().join(" "),
    ]
}

fn age(since: Timestamp) -> String {
    let up = SignedDuration::from_secs(Timestamp::now().duration_since(since).as_secs());
    format!("{up:#}")
}

fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

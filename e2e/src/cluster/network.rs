//! The wires between the API server and the nodes: a bridge on this machine, and a cable to every node's namespace.
//!
//! Nothing else of this machine's network is touched: CNI, nftables and kube-proxy work in the nodes' namespaces.

use anyhow::Result;

use super::layout::Layout;
use crate::shell::{self, capture};

/// Makes the bridge that the API server listens on.
pub(crate) async fn create_bridge(layout: &Layout) -> Result<()> {
    let bridge = layout.bridge();
    ip(&["link", "add", "name", &bridge, "type", "bridge"]).await?;
    ip(&["address", "add", &format!("{}/24", layout.gateway()), "dev", &bridge]).await?;
    ip(&["link", "set", &bridge, "up"]).await
}

/// Plugs a node's namespace, that of process `pid`, into the bridge.
pub(crate) async fn plug_in(layout: &Layout, pid: i32, host: u8) -> Result<()> {
    let (bridge, pid) = (layout.bridge(), pid.to_string());
    let cable = format!("{bridge}-{host}");
    ip(&["link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns", &pid]).await?;
    ip(&["link", "set", &cable, "master", &bridge, "up"]).await?;
    let address = format!("{}/24", layout.node_address(host));
    for args in [
        ["link", "set", "lo", "up"].as_slice(),
        &["address", "add", &address, "dev", "eth0"],
        &["link", "set", "eth0", "up"],
        &["route", "add", "default", "via", &layout.gateway()],
    ] {
        capture(shell::command("nsenter").args(["--target", &pid, "--net", "--", "ip"]).args(args)).await?;
    }
    Ok(())
}

/// Sends the traffic for a node's pods to that node, so that the API server reaches webhooks in pods.
pub(crate) async fn route_pods(layout: &Layout, pods: &str, host: u8) -> Result<()> {
    ip(&["route", "add", pods, "via", &layout.node_address(host), "dev", &layout.bridge()]).await
}

/// Removes the bridge; its routes, and the cables plugged into it, go with it or went with their namespaces.
pub(crate) async fn remove_bridge(layout: &Layout) -> Result<()> {
    let bridge = layout.bridge();
    let cables = format!("{bridge}-");
    for entry in std::fs::read_dir("/sys/class/net")?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == bridge || name.starts_with(&cables) {
            // A cable may vanish by itself between the look and the command.
            if let Err(error) = ip(&["link", "delete", &name]).await
                && entry.path().exists()
            {
                return Err(error);
            }
        }
    }
    Ok(())
}

async fn ip(args: &[&str]) -> Result<()> {
    capture(shell::command("ip").args(args)).await.map(drop)
}

//! Bringing a cluster up, in the order in which its parts need each other.

use anyhow::Result;

use super::layout::Layout;
use super::nodes::{linux, simulated};
use super::pki::Authority;
use super::supervisor::client as supervisor;
use super::{Cluster, control_plane, network};
use crate::images::Archive;
use crate::progress::Steps;
use crate::tools::Tools;

/// Starts a cluster that is not there, with one real Linux node and the simulated Windows nodes.
pub(crate) async fn start(steps: &Steps, layout: Layout, tools: Tools, pause: &Archive) -> Result<Cluster> {
    let authority = steps
        .run("network and certificates", async {
            network::create_bridge(&layout).await?;
            supervisor::start(&layout).await?;
            Authority::create(&layout)
        })
        .await?;
    let client = steps.run("control plane", control_plane::start(&layout, &tools, &authority)).await?;
    steps.run("containerd", linux::start_runtime(&layout, &client, &authority)).await?;
    steps
        .run("node linux-1", async {
            // Before the kubelet: its first pod needs the image.
            linux::import_image(&layout, &pause.path).await?;
            linux::start_kubelet(&layout, &tools).await?;
            // The simulated nodes need nothing of the real one, but its pod range: see `linux::register`.
            simulated::start(&layout, &tools, &client).await?;
            linux::ready(&layout, &client).await?;
            control_plane::controllers_work(&layout, &client).await
        })
        .await?;
    std::fs::write(layout.path(COMPLETE), "")?;
    Ok(Cluster::new(layout, tools))
}

/// Exists when [`start`] came to its end.
const COMPLETE: &str = "complete";

/// Whether a cluster runs as [`start`] left it.
pub(crate) fn is_complete(layout: &Layout) -> bool {
    layout.path(COMPLETE).exists() && supervisor::lives(layout)
}

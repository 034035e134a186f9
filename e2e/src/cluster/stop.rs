//! Removing everything that a cluster consists of, whether it was stopped, crashed or killed.
//!
//! Every step finds its objects by the cluster's own ids and does nothing when they are gone, so the whole may be
//! repeated. Processes are not asked to end: nothing of them is kept, and an API server that is asked while etcd goes
//! may take minutes. The record is removed last; as long as it is there, there may be something left.

use std::fs;
use std::io::ErrorKind;

use anyhow::{Context as _, Result};

use super::layout::Layout;
use super::supervisor::client as supervisor;
use super::{control_groups, network};
use crate::wait::{Look, wait_for};

/// Time for the kernel to take a dead node's mounts and groups apart.
const RELEASED_WITHIN: std::time::Duration = std::time::Duration::from_secs(20);

/// Removes a cluster: processes, and with them namespaces and mounts; then network, control groups and files.
pub(crate) async fn stop(layout: &Layout) -> Result<()> {
    supervisor::end(layout).await?;
    network::remove_bridge(layout).await?;
    wait_for("the release of the cluster's control groups", RELEASED_WITHIN, || async {
        control_groups::remove(layout).map(Look::Done)
    })
    .await?;
    match fs::remove_dir_all(layout.directory()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", layout.directory().display()))
        }
        _ => Ok(()),
    }
}

//! One cluster: bringing it up, looking at it, taking it away.
//!
//! ```text
//! claim            one command at a time
//! layout           name and number -> files, addresses, names
//! pki              certificates and kubeconfigs
//! supervisor       the process that owns all others
//! network          the bridge, and a cable to every node
//! control_plane    etcd, API server, controller manager, scheduler
//! nodes            linux (real), simulated (kwok)
//! start, stop      the order of things; the removal of everything
//! status           what a person wants to know
//! ```

pub(crate) mod claim;
mod control_groups;
mod control_plane;
pub mod layout;
mod network;
pub mod nodes;
mod pki;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod supervisor;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::process::Command;

use crate::shell;
use crate::tools::{Tools, built};
use layout::Layout;

/// A cluster that was started, and the programs to use it with.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Where it lives.
    pub layout: Layout,
    tools: Tools,
}

impl Cluster {
    pub(crate) fn new(layout: Layout, tools: Tools) -> Self {
        Self { layout, tools }
    }

    /// The cluster of this name.
    ///
    /// # Errors
    /// When there is none, or its programs have been removed from the cache.
    pub fn find(name: &str) -> Result<Self> {
        let layout =
            Layout::find(name)?.with_context(|| format!("there is no cluster {name:?}: `cargo e2e up`"))?;
        Ok(Self::new(layout, Tools::locate()?))
    }

    /// A client with an administrator's rights.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        client_from(&self.layout.kubeconfig()).await
    }

    /// kubectl, told which cluster to talk to.
    ///
    /// # Errors
    /// When kubectl is not in the cache.
    pub fn kubectl(&self) -> Result<Command> {
        Ok(self.told(&built(self.tools.kubernetes("kubectl"))?))
    }

    /// Helm, told which cluster to talk to.
    ///
    /// # Errors
    /// When Helm is not in the cache.
    pub fn helm(&self) -> Result<Command> {
        Ok(self.told(&built(self.tools.helm())?))
    }

    /// Stops one part of the cluster, such as `kube-apiserver`, as a crash or an upgrade would.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn stop_part(&self, name: &str) -> Result<()> {
        supervisor::client::stop(&self.layout, name, Duration::from_secs(20)).await
    }

    /// Starts a part that has been stopped, exactly as it was.
    ///
    /// # Errors
    /// When it was never started, or cannot be.
    pub async fn restart_part(&self, name: &str) -> Result<()> {
        let parts = supervisor::client::list(&self.layout).await?;
        let part = parts.into_iter().find(|found| found.running.part.name == name);
        let part = part.with_context(|| format!("{name} was never started"))?.running.part;
        supervisor::client::run(&self.layout, part).await?;
        if name == "kube-apiserver" {
            control_plane::serves(&self.layout, &self.client().await?).await?;
        }
        Ok(())
    }

    /// Starts again whatever has ended, the API server after etcd: for whoever stopped a part and failed meanwhile.
    pub(crate) async fn restart_ended(&self) -> Result<()> {
        let parts = supervisor::client::list(&self.layout).await?;
        for found in parts.iter().filter(|found| found.running.ended.is_some()) {
            self.restart_part(&found.running.part.name).await?;
        }
        Ok(())
    }

    fn told(&self, program: &Path) -> Command {
        let mut command = shell::command(program);
        command.env("KUBECONFIG", self.layout.kubeconfig());
        // Neither read nor leave anything in the home directory of the person at the keyboard.
        for place in ["KUBECACHEDIR", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(place, self.layout.path("clients").join(place));
        }
        command
    }
}

async fn client_from(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig).with_context(|| format!("read {}", kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

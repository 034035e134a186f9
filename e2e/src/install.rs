//! Installing Bifold as a user would: by its Helm chart, with the images that this checkout makes.

use anyhow::Result;

use crate::cluster::Cluster;
use crate::cluster::nodes::linux;
use crate::images::{self, Bifold};
use crate::progress::Steps;
use crate::{paths, shell};

/// The namespace and the release that everything here means by "Bifold".
pub(crate) const NAMESPACE: &str = "bifold-system";
pub(crate) const RELEASE: &str = "bifold";

/// Brings the images to the node and installs the chart, or upgrades what is installed.
pub(crate) async fn install(steps: &Steps, cluster: &Cluster, bifold: &Bifold) -> Result<()> {
    steps.run("load Bifold's images", load(cluster, bifold)).await?;
    let mut helm = cluster.helm()?;
    helm.args(["upgrade", "--install", RELEASE])
        .arg(paths::workspace().join("charts").join("bifold"))
        .args(["--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout", "3m"])
        .args(["--set-string", &format!("images.registry={}", images::REGISTRY)])
        .args(["--set-string", &format!("images.tag={}", bifold.tag)])
        .args(["--set-string", "images.pullPolicy=Never"]);
    steps.run("helm upgrade --install bifold", async { shell::capture(&mut helm).await }).await?;
    Ok(())
}

/// Brings the images to the node.
pub(crate) async fn load(cluster: &Cluster, bifold: &Bifold) -> Result<()> {
    for archive in &bifold.archives {
        linux::import_image(&cluster.layout, &archive.path).await?;
    }
    Ok(())
}

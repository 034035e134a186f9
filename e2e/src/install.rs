//! Installing Bifold as a user would: by its Helm chart, with the images that this checkout makes.

use anyhow::{Result, anyhow};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams};

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
    steps.run("helm upgrade --install bifold", upgrade(cluster, bifold)).await
}

/// Brings the images to the node.
pub(crate) async fn load(cluster: &Cluster, bifold: &Bifold) -> Result<()> {
    for archive in &bifold.archives {
        linux::import_image(&cluster.layout, &archive.path).await?;
    }
    Ok(())
}

async fn upgrade(cluster: &Cluster, bifold: &Bifold) -> Result<()> {
    forget_interrupted(cluster).await?;
    let mut helm = cluster.helm()?;
    helm.args(["upgrade", "--install", RELEASE])
        .arg(paths::workspace().join("charts").join("bifold"))
        .args(["--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout", "3m"])
        .args(["--set-string", &format!("images.registry={}", images::REGISTRY)])
        .args(["--set-string", &format!("images.tag={}", bifold.tag)])
        .args(["--set-string", "images.pullPolicy=Never"]);
    match shell::capture(&mut helm).await {
        Ok(_) => Ok(()),
        Err(error) => Err(anyhow!("{error:#}\n{}", evidence(cluster).await)),
    }
}

/// Removes the note of an operation that never ended because Helm was killed. Helm would take it for one that is
/// under way and refuse; here none is, for only one command at a time works on a cluster.
async fn forget_interrupted(cluster: &Cluster) -> Result<()> {
    let notes: Api<Secret> = Api::namespaced(cluster.client().await?, NAMESPACE);
    let pending = "pending-install,pending-upgrade,pending-rollback";
    let interrupted =
        ListParams::default().labels(&format!("owner=helm,name={RELEASE},status in ({pending})"));
    for note in notes.list_metadata(&interrupted).await? {
        notes.delete(&note.metadata.name.unwrap_or_default(), &DeleteParams::default()).await?;
    }
    Ok(())
}

/// What a person would look at first when the chart's pods do not become ready.
async fn evidence(cluster: &Cluster) -> String {
    let mut shown = String::from("Bifold's pods, and the end of their logs:\n");
    for args in [
        ["get", "pods", "--output=wide"].as_slice(),
        &["logs", "--selector=app.kubernetes.io/name=bifold", "--all-containers", "--prefix", "--tail=5"],
    ] {
        let output = match cluster.kubectl() {
            Ok(mut kubectl) => shell::output(kubectl.args(["--namespace", NAMESPACE]).args(args)).await,
            Err(error) => Err(error),
        };
        shown += &output.map_or_else(|error| error.to_string(), |output| output.stdout);
    }
    shell::tail(&shown)
}

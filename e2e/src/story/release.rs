//! Bifold as it is installed: changing the release, and pods that show whether admission works meanwhile.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;

use super::Context;
use crate::{
    install::{NAMESPACE, RELEASE},
    shell,
};

/// The chart of this checkout.
pub const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/bifold");

impl Context {
    /// Runs Helm in Bifold's namespace and returns what it prints. It must succeed.
    pub async fn helm<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Result<String> {
        let args: Vec<&str> = args.into_iter().collect();
        let output = shell::output(self.cluster.helm()?.args(["--namespace", NAMESPACE]).args(&args)).await?;
        ensure!(output.status.success(), "helm {}: {}", args.join(" "), output.stderr);
        Ok(output.stdout)
    }

    /// A file with the values of the release, to install or upgrade it with as it was.
    pub async fn installed_values(&self) -> Result<String> {
        let values = self.helm(["get", "values", RELEASE, "--output=yaml"]).await?;
        let file = self.cluster.layout.path(format!("conf/{}-values.yaml", self.namespace));
        std::fs::write(&file, values)?;
        file.into_os_string().into_string().ok().context("the state directory's path is no text")
    }

    /// Creates a Windows pod that is never scheduled and says whether it was placed by the webhook. That the creation
    /// fails is an error.
    pub async fn create_gated_pod(&self) -> Result<bool> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"generateName": "gated-"},
            "spec": {
                "os": {"name": "windows"},
                "schedulingGates": [{"name": "bifold.dev/story"}],
                "containers": [{"name": "c", "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022"}],
            },
        }))?;
        let created = pods.create(&PostParams::default(), &pod).await.context("create a pod")?;
        let selector = created.spec.and_then(|spec| spec.node_selector).unwrap_or_default();
        Ok(selector.get("kubernetes.io/os").is_some_and(|os| os == "windows"))
    }

    /// Deletes every pod of the story's namespace; does not wait.
    pub async fn delete_pods(&self) -> Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        pods.delete_collection(&DeleteParams::default(), &ListParams::default())
            .await
            .map(drop)
            .map_err(Into::into)
    }
}

//! The API server refuses what is wrong in an object of ours, with a message that names the field, and accepts what is
//! right. The tables are `kinds/refused.yaml` and `kinds/accepted.yaml`.

use anyhow::{Context as _, Result, ensure};
use bifold_e2e::story::{Context, Story};
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) const STORY: Story =
    Story::plain("kinds", "what is wrong in a pool or a policy is refused by field", |ctx| {
        Box::pin(tell(ctx))
    });

const REFUSED: &str = include_str!("kinds/refused.yaml");
const ACCEPTED: &str = include_str!("kinds/accepted.yaml");

/// A row of the tables.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    name: String,
    kind: String,
    /// What the message must contain.
    #[serde(default)]
    says: Vec<String>,
    object_name: Option<String>,
    spec: Value,
}

impl Case {
    /// Plain JSON is YAML.
    fn object(&self) -> String {
        let name = self.object_name.as_ref().unwrap_or(&self.name);
        json!({
            "apiVersion": "bifold.dev/v1alpha1", "kind": self.kind, "metadata": {"name": name}, "spec": self.spec,
        })
        .to_string()
    }
}

fn cases(table: &str) -> Result<Vec<Case>> {
    serde_saphyr::from_str(table).context("read a table of cases")
}

async fn tell(ctx: Context) -> Result<()> {
    // As somebody does who uses no Helm.
    let manifests = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/manifests");
    let applied = ctx.kubectl(["apply", "--dry-run=server", "--filename", manifests]).await?;
    ensure!(applied.status.success(), "{}", applied.stderr);

    let refused = cases(REFUSED)?;
    ensure!(refused.len() >= 40, "only {} cases", refused.len());
    for case in refused {
        let dry_run = ["create", "--dry-run=server", "--validate=false", "--filename=-"];
        let output = ctx.kubectl_with_input(dry_run, &case.object()).await?;
        ensure!(!output.status.success(), "{}: accepted", case.name);
        for word in &case.says {
            ensure!(output.stderr.contains(word), "{}: does not say {word:?}: {}", case.name, output.stderr);
        }
    }
    for case in cases(ACCEPTED)? {
        let dry_run = ["create", "--dry-run=server", "--filename=-"];
        let output = ctx.kubectl_with_input(dry_run, &case.object()).await?;
        ensure!(output.status.success(), "{}: {}", case.name, output.stderr);
    }

    let defaults = ctx
        .kubectl_with_input(
            ["create", "--dry-run=server", "--output=json", "--filename=-"],
            r#"{"apiVersion": "bifold.dev/v1alpha1", "kind": "WindowsNodePool", "metadata": {"name": "d"}, "spec": {"selector": {}}}"#,
        )
        .await?;
    let pool: Value = serde_json::from_str(&defaults.stdout).context(defaults.stderr)?;
    let wanted = json!({
        "selector": {},
        "taints": [{"key": "os", "value": "windows", "effect": "NoSchedule"}],
        "network": {"topology": "Unmanaged"},
        "requireAgent": false,
    });
    ensure!(pool["spec"] == wanted, "the defaults are {}", pool["spec"]);

    for (kind, field) in
        [("wnp", "spec.taints.effect"), ("wwp", "spec.detection.unknown"), ("wn", "status.runtime")]
    {
        let explained = ctx.kubectl(["explain", &format!("{kind}.{field}")]).await?;
        ensure!(
            explained.status.success() && explained.stdout.contains("DESCRIPTION"),
            "{}",
            explained.stderr
        );
    }
    Ok(())
}

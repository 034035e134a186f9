//! Making and deleting objects of any kind from YAML.

use anyhow::{Context as _, Result, bail};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{self, Scope};
use kube::{Api, ResourceExt as _};

use super::Context;

/// The field manager of everything that stories apply.
const MANAGER: &str = "bifold-e2e-story";

impl Context {
    /// Applies every document of a YAML text, as `kubectl apply --server-side` does. Namespaced objects that name no
    /// namespace get the story's; cluster-wide ones are deleted after the story.
    pub async fn apply(&self, yaml: &str) -> Result<Vec<DynamicObject>> {
        let mut applied = Vec::new();
        for object in parse(yaml)? {
            let what = format!("apply {}", describe(&object));
            applied.push(self.apply_one(object).await.with_context(|| what)?);
        }
        Ok(applied)
    }

    /// Applies YAML that the API server must refuse, and returns the reason that it gives.
    pub async fn refused(&self, yaml: &str) -> Result<String> {
        for object in parse(yaml)? {
            match self.apply_one(object).await {
                Ok(_) => {}
                Err(error) => match error.downcast::<kube::Error>()? {
                    kube::Error::Api(status) => return Ok(status.message.clone()),
                    other => return Err(other.into()),
                },
            }
        }
        bail!("accepted, but should have been refused:\n{yaml}");
    }

    /// Deletes every object that a YAML text names; what is gone already is fine.
    pub async fn delete(&self, yaml: &str) -> Result<()> {
        for object in parse(yaml)?.into_iter().rev() {
            let (api, _) = self.api_of(&object).await?;
            delete(&api, &object.name_any())
                .await
                .with_context(|| format!("delete {}", describe(&object)))?;
        }
        Ok(())
    }

    /// The API for objects of the same kind and in the same place as this one.
    pub async fn api_of(&self, object: &DynamicObject) -> Result<(Api<DynamicObject>, Scope)> {
        let types = object.types.as_ref().context("a document without apiVersion and kind")?;
        let (resource, capabilities) = discovery::pinned_kind(&self.client, &gvk(types)?).await?;
        let api = match capabilities.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => {
                let namespace = object.metadata.namespace.as_deref().unwrap_or(&self.namespace);
                Api::namespaced_with(self.client.clone(), namespace, &resource)
            }
        };
        if capabilities.scope == Scope::Cluster {
            self.remember(resource, &object.name_any());
        }
        Ok((api, capabilities.scope))
    }

    async fn apply_one(&self, object: DynamicObject) -> Result<DynamicObject> {
        let (api, _) = self.api_of(&object).await?;
        let params = PatchParams::apply(MANAGER).force();
        Ok(api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await?)
    }
}

/// Deletes one object; it may be gone already.
pub(super) async fn delete(api: &Api<DynamicObject>, name: &str) -> Result<()> {
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop).map_err(Into::into),
    }
}

fn parse(yaml: &str) -> Result<Vec<DynamicObject>> {
    serde_saphyr::from_multiple(yaml).context("read the story's YAML")
}

fn gvk(types: &TypeMeta) -> Result<GroupVersionKind> {
    GroupVersionKind::try_from(types).with_context(|| format!("read the apiVersion {:?}", types.api_version))
}

fn describe(object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map_or("object", |types| types.kind.as_str());
    format!("{kind} {}", object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_documents_are_several_objects() {
        let yaml = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n";
        let objects = parse(yaml).unwrap();
        assert_eq!(objects.iter().map(describe).collect::<Vec<_>>(), ["Namespace a", "Pod b"]);
    }
}

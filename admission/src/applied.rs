//! Step "facts", third part: what authors say themselves, as the two ways of `apply` keep it in `metadata`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    json::{Object, Text},
    pod::PodView,
};

/// One of `metadata.managedFields`: who says what.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Managed<'a> {
    /// `Apply` for the fields of a text that was applied by the server.
    pub operation: Option<Text<'a>>,
    /// The fields.
    pub fields_v1: Option<Object<Fields>>,
}

/// Fields, as `FieldsV1` has them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Fields(BTreeMap<String, Fields>);

impl Fields {
    /// Whether the field that this path leads to is among them.
    #[must_use]
    pub fn has(&self, path: &[&str]) -> bool {
        let mut names = path.iter();
        names.try_fold(self, |at, name| at.0.get(&format!("f:{name}"))).is_some()
    }
}

/// The text of a DaemonSet that `kubectl apply` applied.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Manifest<'a> {
    spec: Option<Object<TextSpec<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TextSpec<'a> {
    template: Option<Object<PodView<'a>>>,
}

/// The template in a text that `kubectl apply` applied.
#[must_use]
pub fn template(text: &str) -> Option<PodView<'_>> {
    let Object(text): Object<Manifest<'_>> = serde_json::from_str(text).ok()?;
    text.spec?.0.template.map(|Object(template)| template)
}

//! A label selector with bounded size, and what it selects.
//!
//! The same JSON as `metav1.LabelSelector`; a type of its own, because the API server prices CEL rules by the
//! bounds of the schema, and `metav1` has none.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Selects objects by their labels: all of `matchLabels` and all of `matchExpressions` must hold. Empty selects all.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that the object must carry with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    #[x_kube(validation = Rule::new(schema::LABEL_KEYS).message(schema::LABEL_KEYS_MESSAGE))]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<Requirement>,
}

/// One requirement on a label.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0")
    .message("values must be given for the operators In and NotIn, and must be empty for Exists and DoesNotExist"))]
pub struct Requirement {
    /// The key of the label.
    #[schemars(length(min = 1, max = 316))]
    #[x_kube(validation = Rule::new(schema::LABEL_KEY).message(schema::LABEL_KEY_MESSAGE))]
    pub key: String,
    /// How the label is compared with `values`.
    pub operator: Operator,
    /// The values for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::label_values")]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label is there with one of the values.
    In,
    /// The label is absent or has another value.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl LabelSelector {
    /// Whether an object with these labels is selected.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|r| r.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|v| self.values.contains(v));
        match self.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn selector(yaml: &str) -> LabelSelector {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn an_empty_selector_selects_everything() {
        assert!(LabelSelector::default().matches(&labels(&[])));
    }

    #[test]
    fn labels_and_requirements_must_all_hold() {
        let wanted = selector(
            "{matchLabels: {pool: w}, matchExpressions: [{key: zone, operator: NotIn, values: [a]}, {key: gpu, operator: DoesNotExist}]}",
        );
        assert!(wanted.matches(&labels(&[("pool", "w")])));
        assert!(wanted.matches(&labels(&[("pool", "w"), ("zone", "b")])));
        assert!(!wanted.matches(&labels(&[("pool", "w"), ("zone", "a")])));
        assert!(!wanted.matches(&labels(&[("pool", "w"), ("gpu", "")])));
        assert!(!wanted.matches(&labels(&[("pool", "x")])));
    }
}

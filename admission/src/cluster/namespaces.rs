//! Namespaces: their labels choose the policy, and an annotation may say the OS of their pods.

use std::collections::BTreeMap;

use bifold_crds::{keys, workload_policy::Os};

/// The label that the API server puts on every namespace: its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// What is known of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The OS that its annotation says.
    pub os: Option<Os>,
}

impl Namespace {
    /// What is needed of a namespace's `metadata`.
    #[must_use]
    pub fn new(labels: BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> Self {
        Self { labels, os: annotations.get(keys::NAMESPACE_OS_ANNOTATION).and_then(|os| Os::from_api(os)) }
    }

    /// A namespace of which nothing but the name is known.
    #[must_use]
    pub fn unknown(name: &str) -> Self {
        Self { labels: BTreeMap::from([(NAME_LABEL.to_owned(), name.to_owned())]), os: None }
    }
}

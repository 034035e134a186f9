//! What a `WindowsWorkloadPolicy` says, in the form in which decisions ask for it, with the built-in defaults.

use std::{cmp::Ordering, collections::BTreeMap};

use bifold_crds::{
    LabelSelector, WindowsWorkloadPolicy, WindowsWorkloadPolicySpec,
    workload_policy::{Exemption, ImagePattern, PlacementPolicy, RuleAction, UnknownOs},
};

use crate::rules::{RULES, Rule};

/// How pods are recognised, placed and checked. [`Policy::default`] is what applies without any policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name of the policy; `None` for the built-in defaults.
    pub name: Option<String>,
    /// Patterns of images, looked at before the built-in ones.
    pub images: Vec<ImagePattern>,
    /// What is done with a pod whose OS nothing tells.
    pub unknown: UnknownOs,
    /// What is written into Windows pods.
    pub placement: PlacementPolicy,
    /// The action of every rule, in the order of [`RULES`].
    actions: Vec<RuleAction>,
    exempt: Vec<Exemption>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(None, &WindowsWorkloadPolicySpec::default())
    }
}

impl Policy {
    /// The policy of that spec. A rule id that is not known here is passed over.
    #[must_use]
    pub fn new(name: Option<String>, spec: &WindowsWorkloadPolicySpec) -> Self {
        Self {
            name,
            images: spec.detection.images.clone(),
            unknown: spec.detection.unknown,
            placement: spec.placement.clone(),
            actions: RULES.iter().map(|rule| rule.action(spec.rules.get(rule.id).copied())).collect(),
            exempt: spec.exempt.clone(),
        }
    }

    /// Every rule with its action.
    pub fn rules(&self) -> impl Iterator<Item = (&'static Rule, RuleAction)> {
        RULES.iter().zip(self.actions.iter().copied())
    }

    /// Whether no rule applies to pods of that service account.
    #[must_use]
    pub fn exempts(&self, namespace: &str, service_account: &str) -> bool {
        self.exempt.iter().any(|e| {
            e.namespace == namespace
                && e.service_account.as_deref().is_none_or(|name| name == service_account)
        })
    }
}

/// A policy with what decides whether it is the one for a namespace.
#[derive(Debug)]
pub(crate) struct Governing {
    name: String,
    priority: i32,
    /// Seconds since 1970; the resolution of `creationTimestamp`.
    created: i64,
    selector: LabelSelector,
    policy: Policy,
}

impl Governing {
    pub(crate) fn new(object: &WindowsWorkloadPolicy) -> Self {
        let name = object.metadata.name.clone().unwrap_or_default();
        Self {
            priority: object.spec.priority,
            created: object.metadata.creation_timestamp.as_ref().map_or(i64::MAX, |t| t.0.as_second()),
            selector: object.spec.namespace_selector.clone(),
            policy: Policy::new(Some(name.clone()), &object.spec),
            name,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.matches(labels)
    }

    /// Highest priority first, then the oldest, then by name.
    pub(crate) fn comes_before(&self, other: &Self) -> bool {
        let order = other.priority.cmp(&self.priority).then(self.created.cmp(&other.created));
        order.then_with(|| self.name.cmp(&other.name)) == Ordering::Less
    }
}

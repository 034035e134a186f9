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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        cluster::{Cluster, Namespace},
        testing::{NAMESPACE, cluster, decide_pod, windows},
    };

    fn policy(name: &str, created: &str, spec: &Value) -> WindowsWorkloadPolicy {
        let object = json!({ "apiVersion": "bifold.dev/v1alpha1", "kind": "WindowsWorkloadPolicy",
            "metadata": { "name": name, "creationTimestamp": created }, "spec": spec });
        serde_json::from_value(object).unwrap()
    }

    fn governing<'c>(cluster: &'c Cluster, namespace: &str) -> Option<&'c str> {
        cluster.policy_of(namespace).name.as_deref()
    }

    #[test]
    fn the_highest_priority_governs_and_of_equals_the_oldest_in_whatever_order_they_come() {
        let team = json!({ "namespaceSelector": { "matchLabels": { "team": "web" } }, "priority": 5 });
        let mut policies = [
            policy("young", "2026-02-01T00:00:00Z", &json!({})),
            policy("old", "2026-01-01T00:00:00Z", &json!({})),
            policy("a-twin-of-old", "2026-01-01T00:00:00Z", &json!({ "priority": -1 })),
            policy("team", "2026-03-01T00:00:00Z", &team),
        ];
        for _ in 0..policies.len() {
            policies.rotate_left(1);
            let mut cluster = Cluster::default();
            for policy in &policies {
                cluster.put_policy(policy);
            }
            let labels = BTreeMap::from([("team".to_owned(), "web".to_owned())]);
            cluster.put_namespace("web", Namespace::new(labels, &BTreeMap::new()));
            assert_eq!(governing(&cluster, "web"), Some("team"));
            assert_eq!(governing(&cluster, "not-seen-yet"), Some("old"));
            cluster.remove_policy("old");
            assert_eq!(governing(&cluster, "other"), Some("young"));
            cluster.remove_policy("team");
            assert_eq!(governing(&cluster, "web"), Some("young"));
        }
    }

    #[test]
    fn a_namespace_that_is_not_known_yet_has_its_name() {
        let by_name =
            json!({ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "new" } } });
        let mut cluster = Cluster::default();
        cluster.put_policy(&policy("p", "2026-01-01T00:00:00Z", &by_name));
        assert_eq!((governing(&cluster, "new"), governing(&cluster, "other")), (Some("p"), None));
    }

    #[test]
    fn rules_follow_the_policy_and_unknown_ones_are_passed_over() {
        let secret = windows(&json!({ "containers": [{ "name": "a", "volumeMounts": [{ "name": "v" }] }],
            "volumes": [{ "name": "v", "secret": { "secretName": "s" } }] }));
        let table = [
            (json!({ "secret-volume": "Warn" }), Some(RuleAction::Warn)),
            (json!({ "secret-volume": "Fix" }), Some(RuleAction::Warn)),
            (json!({ "secret-volume": "Allow" }), None),
            (json!({ "rule-of-tomorrow": "Deny" }), Some(RuleAction::Deny)),
        ];
        for (rules, expected) in table {
            let mut cluster = cluster();
            cluster.put_policy(&policy("p", "2026-01-01T00:00:00Z", &json!({ "rules": rules })));
            let (decision, _) = decide_pod(&secret, &cluster);
            assert_eq!(decision.findings.first().map(|f| f.action), expected, "{rules}");
            assert_eq!(decision.policy.as_deref(), Some("p"));
        }
    }

    #[test]
    fn exempt_pods_are_placed_and_not_checked() {
        let pod = |account: &str| {
            windows(
                &json!({ "serviceAccountName": account, "nodeSelector": { "beta.kubernetes.io/os": "windows" },
                "containers": [{ "name": "a", "volumeMounts": [{ "name": "v" }] }],
                "volumes": [{ "name": "v", "secret": { "secretName": "s" } }] }),
            )
        };
        let table = [
            (json!({ "namespace": NAMESPACE }), "any", true),
            (json!({ "namespace": NAMESPACE, "serviceAccount": "builder" }), "builder", true),
            (json!({ "namespace": NAMESPACE, "serviceAccount": "builder" }), "other", false),
            (json!({ "namespace": NAMESPACE, "serviceAccount": "default" }), "", true),
            (json!({ "namespace": "elsewhere" }), "any", false),
        ];
        for (exemption, account, exempt) in table {
            let mut cluster = cluster();
            cluster.put_policy(&policy("p", "2026-01-01T00:00:00Z", &json!({ "exempt": [exemption] })));
            let (decision, patched) = decide_pod(&pod(account), &cluster);
            assert_eq!(decision.findings.is_empty(), exempt, "{exemption} {account}");
            assert_eq!(patched["spec"]["nodeSelector"]["kubernetes.io/os"], "windows");
        }
    }

    #[test]
    fn patterns_of_the_policy_come_before_the_built_in_ones() {
        let table = [
            ("registry.example.com/legacy/app:1", Some("10.0.17763"), "windows"),
            ("registry.example.com/legacy/app:ltsc2022", Some("10.0.17763"), "windows"),
            ("registry.example.com/new/app:ltsc2022", Some("10.0.20348"), "windows"),
            ("registry.example.com/linux/nanoserver:1", None, "linux"),
        ];
        let images = json!([
            { "pattern": "*/legacy/*", "os": "windows", "build": "10.0.17763" },
            { "pattern": "*/new/*", "os": "windows" },
            { "pattern": "*/linux/*", "os": "linux" },
        ]);
        let mut cluster = cluster();
        cluster.put_policy(&policy(
            "p",
            "2026-01-01T00:00:00Z",
            &json!({ "detection": { "images": images } }),
        ));
        for (image, build, os) in table {
            let pod = crate::testing::pod(&json!({ "containers": [{ "image": image }] }));
            let (decision, patched) = decide_pod(&pod, &cluster);
            assert_eq!(decision.os.as_str(), os, "{image}");
            let wanted = patched.pointer("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/values/0");
            assert_eq!(wanted.and_then(Value::as_str), build, "{image}");
        }
    }

    #[test]
    fn the_annotation_of_a_namespace_speaks_for_pods_that_say_nothing() {
        let mut cluster = cluster();
        let annotations = BTreeMap::from([("bifold.dev/os".to_owned(), "windows".to_owned())]);
        cluster.put_namespace(NAMESPACE, Namespace::new(BTreeMap::new(), &annotations));
        let os = |spec: Value| decide_pod(&crate::testing::pod(&spec), &cluster).0.os.as_str();
        assert_eq!(os(json!({ "containers": [{ "image": "registry.local/app:1" }] })), "windows");
        assert_eq!(os(json!({ "nodeSelector": { "kubernetes.io/os": "linux" } })), "linux");
    }
}

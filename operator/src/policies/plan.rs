//! What the status of a policy says. Pure.

use std::collections::{BTreeMap, BTreeSet};

use bifold_admission::{Cluster, rule_ids};
use bifold_crds::{
    WindowsWorkloadPolicy, WindowsWorkloadPolicyStatus,
    conditions::{self, Observation, kind, reason},
};
use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::text::{count, list};

/// `cluster` knows all policies and namespaces; `namespaces` are the same by name, with their labels.
pub fn status(
    policy: &WindowsWorkloadPolicy,
    cluster: &Cluster,
    namespaces: &BTreeMap<String, BTreeMap<String, String>>,
    now: Timestamp,
) -> WindowsWorkloadPolicyStatus {
    let me = policy.name_any();
    let mut governed = 0;
    let mut shadowed_by = BTreeSet::new();
    for (name, _) in namespaces.iter().filter(|(_, l)| policy.spec.namespace_selector.matches(l)) {
        match &cluster.policy_of(name).name {
            Some(governing) if *governing == me => governed += 1,
            Some(other) => {
                shadowed_by.insert(other.clone());
            }
            None => {}
        }
    }
    let unknown_rules: Vec<String> =
        policy.spec.rules.keys().filter(|id| !rule_ids().any(|known| known == *id)).cloned().collect();

    let accepted = accepted(governed, &shadowed_by, &unknown_rules);
    let generation = policy.metadata.generation;
    let mut conditions = policy.status.as_ref().map(|s| s.conditions.clone()).unwrap_or_default();
    conditions::set(&mut conditions, accepted.at(generation, now));
    WindowsWorkloadPolicyStatus {
        observed_generation: generation,
        namespaces: i32::try_from(governed).unwrap_or(i32::MAX),
        shadowed_by: shadowed_by.into_iter().collect(),
        unknown_rules,
        conditions,
    }
}

fn accepted(governed: usize, shadowed_by: &BTreeSet<String>, unknown_rules: &[String]) -> Observation {
    let (holds, reason, message) = if !unknown_rules.is_empty() {
        let message = format!(
            "this version knows no rule {}; passed over, the rest applies to {}",
            list(unknown_rules),
            count(governed, "namespace")
        );
        (false, reason::UNKNOWN_RULES, message)
    } else if governed > 0 {
        (true, reason::GOVERNS, format!("applies to {}", count(governed, "namespace")))
    } else if shadowed_by.is_empty() {
        (false, reason::GOVERNS_NONE, "the namespaceSelector selects no namespace".to_owned())
    } else {
        let first = list(shadowed_by);
        (false, reason::GOVERNS_NONE, format!("other policies come first in every namespace: {first}"))
    };
    Observation { kind: kind::ACCEPTED, holds: Some(holds), reason, message }
}

#[cfg(test)]
mod tests {
    use bifold_admission::Namespace;
    use bifold_crds::{WindowsWorkloadPolicySpec, workload_policy::RuleAction};

    use super::*;

    fn policy(name: &str, priority: i32, team: Option<&str>, rules: &[&str]) -> WindowsWorkloadPolicy {
        let mut spec = WindowsWorkloadPolicySpec { priority, ..Default::default() };
        spec.rules = rules.iter().map(|r| ((*r).to_owned(), RuleAction::Warn)).collect();
        spec.namespace_selector.match_labels =
            team.iter().map(|t| ("team".to_owned(), (*t).to_owned())).collect();
        let mut policy = WindowsWorkloadPolicy::new(name, spec);
        policy.metadata.generation = Some(3);
        policy
    }

    fn told(policies: &[WindowsWorkloadPolicy], of: &str) -> WindowsWorkloadPolicyStatus {
        let labels: BTreeMap<String, BTreeMap<String, String>> = [("one", "a"), ("two", "a"), ("three", "b")]
            .into_iter()
            .map(|(name, team)| (name.to_owned(), BTreeMap::from([("team".to_owned(), team.to_owned())])))
            .collect();
        let mut cluster = Cluster::default();
        for policy in policies {
            cluster.put_policy(policy);
        }
        let facts = labels.iter().map(|(n, l)| (n.clone(), Namespace::new(l.clone(), &BTreeMap::new())));
        cluster.replace_namespaces(facts);
        let policy = policies.iter().find(|p| p.name_any() == of).unwrap();
        status(policy, &cluster, &labels, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_status_says_what_a_policy_governs_and_who_comes_first() {
        let rule = rule_ids().next().unwrap();
        let policies =
            [policy("all", 0, None, &[rule]), policy("a", 9, Some("a"), &[]), policy("none", -9, None, &[])];
        let table: [(&str, i32, &[&str], &str, &str); 3] = [
            ("all", 1, &["a"], "True", reason::GOVERNS),
            ("a", 2, &[], "True", reason::GOVERNS),
            ("none", 0, &["a", "all"], "False", reason::GOVERNS_NONE),
        ];
        for (name, namespaces, shadowed_by, holds, why) in table {
            let status = told(&policies, name);
            assert_eq!(
                (status.namespaces, &*status.shadowed_by),
                (namespaces, &*shadowed_by.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()),
                "{name}"
            );
            let accepted = &status.conditions[0];
            assert_eq!((&*accepted.status, &*accepted.reason), (holds, why), "{name}");
            assert_eq!((status.observed_generation, accepted.observed_generation), (Some(3), Some(3)));
        }
    }

    #[test]
    fn rules_of_a_newer_version_are_named_and_the_rest_applies() {
        let status = told(&[policy("new", 0, None, &["rule-of-tomorrow"])], "new");
        assert_eq!(status.unknown_rules, ["rule-of-tomorrow"]);
        assert_eq!((&*status.conditions[0].reason, status.namespaces), (reason::UNKNOWN_RULES, 3));
        assert!(status.conditions[0].message.contains("rule-of-tomorrow"));
    }
}

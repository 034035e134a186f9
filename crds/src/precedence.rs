//! Which of several objects has its way: the policy that governs a namespace, the pool that a node belongs to.

use std::{cmp::Ordering, collections::BTreeMap};

use kube::ResourceExt;

use crate::{WindowsNodePool, WindowsWorkloadPolicy};

/// The policy that applies, whole, to a namespace with these labels; `None` means the built-in defaults.
pub fn governing<'a>(
    policies: impl IntoIterator<Item = &'a WindowsWorkloadPolicy>,
    namespace_labels: &BTreeMap<String, String>,
) -> Option<&'a WindowsWorkloadPolicy> {
    let selecting = policies.into_iter().filter(|p| p.spec.namespace_selector.matches(namespace_labels));
    selecting.min_by(|a, b| by_precedence(a, b))
}

/// The policy that comes first is the smallest: highest priority, then the older one, then by name.
#[must_use]
pub fn by_precedence(a: &WindowsWorkloadPolicy, b: &WindowsWorkloadPolicy) -> Ordering {
    b.spec.priority.cmp(&a.spec.priority).then_with(|| by_age(a, b))
}

/// The pool that a node of several pools belongs to is the smallest: the oldest, then by name.
#[must_use]
pub fn pools_by_age(a: &WindowsNodePool, b: &WindowsNodePool) -> Ordering {
    by_age(a, b)
}

/// An object without a creation time was never stored and counts as the youngest.
fn by_age<K: kube::Resource>(a: &K, b: &K) -> Ordering {
    let age = |k: &K| k.meta().creation_timestamp.as_ref().map(|t| t.0);
    match (age(a), age(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
    .then_with(|| a.name_any().cmp(&b.name_any()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::WindowsWorkloadPolicySpec;

    fn policy(name: &str, priority: i32, created: i64, selects: &[(&str, &str)]) -> WindowsWorkloadPolicy {
        let mut spec = WindowsWorkloadPolicySpec { priority, ..Default::default() };
        spec.namespace_selector.match_labels = labels(selects);
        let mut policy = WindowsWorkloadPolicy::new(name, spec);
        policy.metadata.creation_timestamp = Some(Time(Timestamp::from_second(created).unwrap()));
        policy
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn the_highest_priority_applies_then_the_older_then_the_name() {
        let team = &[("team", "a")][..];
        let table = [
            (vec![policy("low", 0, 1, &[]), policy("high", 9, 2, team)], "high"),
            (vec![policy("young", 0, 2, &[]), policy("old", 0, 1, team)], "old"),
            (vec![policy("b", 0, 1, &[]), policy("a", 0, 1, &[])], "a"),
            (vec![policy("elsewhere", 9, 1, &[("team", "b")]), policy("here", -9, 2, &[])], "here"),
        ];
        for (policies, wins) in table {
            let found = governing(&policies, &labels(team)).map(ResourceExt::name_any);
            assert_eq!(found.as_deref(), Some(wins));
        }
    }

    #[test]
    fn a_namespace_that_nothing_selects_has_the_defaults() {
        let policies = [policy("elsewhere", 0, 1, &[("team", "b")])];
        assert!(governing(&policies, &labels(&[])).is_none());
    }
}

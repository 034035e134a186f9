//! Step "rules": named checks, as data in one table.

mod builds;
mod conflicts;
mod legacy_label;
mod secret_volume;

use bifold_crds::workload_policy::RuleAction::{self, Allow, Deny, Fix, Warn};
use serde::Serialize;

use crate::{case::Case, cluster::Freshness, question::Subject};

/// A rule that fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The id of the rule.
    pub rule: &'static str,
    /// What follows.
    pub action: RuleAction,
    /// The path of the field, such as `spec.volumes[2].secret`.
    pub path: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

/// A named check.
pub struct Rule {
    /// Its id, in kebab-case.
    pub id: &'static str,
    /// What follows from it where no policy says otherwise.
    pub default: RuleAction,
    /// The actions that make sense for it.
    pub actions: &'static [RuleAction],
    /// What it looks for, in one line.
    pub summary: &'static str,
    check: fn(&Case<'_>, &mut Vec<Hit>),
}

/// What a check found. The action is not its business.
pub(crate) struct Hit {
    pub path: String,
    pub message: String,
    pub remedy: String,
    /// What it rests on: a refusal must not rest on a snapshot that may be wrong.
    pub basis: Basis,
}

/// What a finding rests on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The pod alone.
    Pod,
    /// The nodes or RuntimeClasses of the snapshot as well.
    Snapshot,
}

/// All rules, in the order in which they are documented and reported.
pub const RULES: [Rule; 6] = [
    Rule {
        id: "secret-volume",
        default: Deny,
        actions: &[Allow, Warn, Deny],
        summary: "a Secret is mounted as files, which a Windows node keeps as clear text on its disk",
        check: secret_volume::check,
    },
    Rule {
        id: "os-conflict",
        default: Deny,
        actions: &[Allow, Warn, Deny],
        summary: "two fields name different operating systems",
        check: conflicts::os,
    },
    Rule {
        id: "runtime-class-conflict",
        default: Deny,
        actions: &[Allow, Warn, Deny],
        summary: "the RuntimeClass sends the pod to other nodes than the pod asks for",
        check: conflicts::runtime_class,
    },
    Rule {
        id: "build-mismatch",
        default: Deny,
        actions: &[Allow, Warn, Deny],
        summary: "no node that the pod may use runs the Windows build of its image",
        check: builds::mismatch,
    },
    Rule {
        id: "no-windows-node",
        default: Warn,
        actions: &[Allow, Warn],
        summary: "no Windows node can take the pod now",
        check: builds::no_node,
    },
    Rule {
        id: "legacy-os-label",
        default: Fix,
        actions: &[Allow, Fix, Warn, Deny],
        summary: "the OS is selected by the deprecated label beta.kubernetes.io/os",
        check: legacy_label::check,
    },
];

/// The ids of all rules: what `spec.rules` of a policy may name.
pub fn rule_ids() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.id)
}

/// More findings than this about one pod help nobody.
const MOST: usize = 64;

impl Rule {
    /// The action when a policy asks for `asked`. What makes no sense for the rule becomes the next milder thing.
    #[must_use]
    pub fn action(&self, asked: Option<RuleAction>) -> RuleAction {
        match asked {
            None => self.default,
            Some(action) if self.actions.contains(&action) => action,
            Some(_) => Warn,
        }
    }

    /// Its page in the manual, from the root of the project.
    #[must_use]
    pub fn page(&self) -> String {
        format!("docs/rules/{}.md", self.id)
    }
}

/// Runs every rule that the policy does not allow.
pub(crate) fn check(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut hits = Vec::new();
    for (rule, action) in case.policy.rules().filter(|(_, action)| *action != Allow) {
        (rule.check)(case, &mut hits);
        for hit in hits.drain(..) {
            if findings.len() < MOST {
                let action = effective(action, hit.basis, case);
                let Hit { path, message, remedy, .. } = hit;
                findings.push(Finding { rule: rule.id, action, path, message, remedy });
            }
        }
    }
    findings
}

/// Pods are refused, workloads are warned about: a person sees the warning, and a refused template stops a whole
/// release. Only a DaemonSet's template is fixed.
fn effective(action: RuleAction, basis: Basis, case: &Case<'_>) -> RuleAction {
    let on_trust = basis == Basis::Snapshot && case.cluster.freshness() != Freshness::Warm;
    let refusable = !matches!(case.request.subject, Subject::DaemonSet | Subject::Workload);
    let fixable = match case.request.subject {
        // The pods of a DaemonSet follow its template and are not changed one by one.
        Subject::Pod => !case.daemon_pod,
        Subject::DaemonSet => true,
        Subject::Workload | Subject::EphemeralContainers => false,
    };
    match action {
        Deny if !refusable || on_trust => Warn,
        Fix if !fixable => Warn,
        action => action,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_kebab_case_id_of_its_own_and_a_default_that_makes_sense_for_it() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(rule.id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", rule.id);
            assert!(rule_ids().skip(i + 1).all(|other| other != rule.id), "{}", rule.id);
            assert!(rule.actions.contains(&rule.default) && rule.actions.contains(&Allow), "{}", rule.id);
            assert!(!rule.summary.ends_with('.'), "{}", rule.id);
            let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(rule.page());
            assert!(page.is_file(), "{} has no page in the manual", rule.id);
        }
    }

    #[test]
    fn an_action_that_makes_no_sense_for_a_rule_warns() {
        assert_eq!(RULES[0].action(Some(Fix)), Warn);
        assert_eq!(RULES[0].action(Some(Allow)), Allow);
        assert_eq!(RULES[0].action(None), Deny);
    }
}

//! `legacy-os-label`: `beta.kubernetes.io/os` has been deprecated since Kubernetes 1.14. Placement writes its successor
//! beside it; the finding is there so that somebody changes the manifest.

use bifold_crds::keys;

use super::{Basis, Hit};
use crate::{case::Case, evidence::Verdict};

pub(super) fn check(case: &Case<'_>, hits: &mut Vec<Hit>) {
    let Some(selector) = &case.spec.node_selector else { return };
    let legacy = selector.get(keys::LEGACY_OS_LABEL) == Some(keys::WINDOWS);
    if case.os == Verdict::Windows && legacy && selector.get(keys::OS_LABEL).is_none() {
        hits.push(Hit {
            path: format!("spec.nodeSelector[{}]", keys::LEGACY_OS_LABEL),
            message: "the label beta.kubernetes.io/os is deprecated and may be absent from new nodes"
                .to_owned(),
            remedy: "write kubernetes.io/os: windows instead".to_owned(),
            basis: Basis::Pod,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{cluster, decide_pod, findings, pod};
    use bifold_crds::workload_policy::RuleAction;
    use serde_json::json;

    #[test]
    fn the_successor_is_written_beside_the_deprecated_label() {
        let legacy = pod(
            &json!({ "nodeSelector": { "beta.kubernetes.io/os": "windows" }, "tolerations": [{ "operator": "Exists" }] }),
        );
        let found = findings(&legacy);
        assert_eq!((found[0].rule, found[0].action), ("legacy-os-label", RuleAction::Fix));
        let (_, patched) = decide_pod(&legacy, &cluster());
        let selector = json!({ "beta.kubernetes.io/os": "windows", "kubernetes.io/os": "windows" });
        assert_eq!(patched["spec"]["nodeSelector"], selector);
        assert_eq!(findings(&patched), []);
    }

    #[test]
    fn linux_pods_and_pods_with_both_labels_are_left_alone() {
        for selector in [
            json!({ "beta.kubernetes.io/os": "linux" }),
            json!({ "beta.kubernetes.io/os": "windows", "kubernetes.io/os": "windows" }),
        ] {
            assert_eq!(findings(&pod(&json!({ "nodeSelector": selector }))), []);
        }
    }
}

//! Second step: from a document to a decision, if it is one that has a pod.

use anyhow::{Context as _, Result};
use bifold_admission::{Cluster, Decision, Kind, PodView, Policy, Request, Subject, decide};
use serde::{Deserialize as _, Serialize};

use crate::read::Document;

/// A document with the decision about it.
#[derive(Debug, Serialize)]
pub(crate) struct Checked<'d> {
    pub(crate) file: &'d str,
    pub(crate) line: usize,
    pub(crate) kind: &'static str,
    pub(crate) name: &'d str,
    pub(crate) decision: Decision,
}

/// Decides about a pod or the pods of a workload; `None` for any other object.
///
/// The webhook never refuses a workload, only its pods. Who checks a file wants to know about those, so the findings
/// are those of the pod that the workload would make.
pub(crate) fn check<'d>(document: &'d Document, policy: &Policy) -> Result<Option<Checked<'d>>> {
    let object = &document.object;
    let group =
        object["apiVersion"].as_str().unwrap_or_default().split_once('/').map_or("", |(group, _)| group);
    let Some(kind) = Kind::find(group, object["kind"].as_str().unwrap_or_default()) else { return Ok(None) };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let template = kind.template.iter().fold(object, |value, field| &value[*field]);
    if template.is_null() {
        return Ok(None);
    }
    let pod = PodView::deserialize(template)
        .with_context(|| format!("{}:{}: {} {name}: no pod", document.file, document.line, kind.kind))?;
    let cluster = Cluster::default();
    let about = |subject| {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        decide(&pod, &Request { namespace, subject, root: kind.root }, &cluster, policy)
    };
    let mut decision = about(Subject::Pod);
    if kind.subject == Subject::DaemonSet {
        // The nodes of its pods are chosen from the template, so what is written is written there.
        let of_template = about(Subject::DaemonSet);
        (decision.changes, decision.notes) = (of_template.changes, of_template.notes);
    }
    Ok(Some(Checked { file: &document.file, line: document.line, kind: kind.kind, name, decision }))
}

impl Checked<'_> {
    /// Whether the webhook would refuse the pod.
    pub(crate) fn refused(&self) -> bool {
        self.decision.denied()
    }
}

#[cfg(test)]
mod tests {
    use bifold_admission::evidence::Verdict;
    use serde_json::{Value, json};

    use super::*;

    fn document(object: Value) -> Document {
        Document { file: "f.yaml".to_owned(), line: 1, object }
    }

    fn windows_pod() -> Value {
        json!({
            "nodeSelector": {"kubernetes.io/os": "windows"},
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "s", "mountPath": "C:\\s"}]}],
            "volumes": [{"name": "s", "secret": {"secretName": "s"}}],
        })
    }

    #[test]
    fn the_pods_of_every_workload_are_judged_as_pods() {
        let spec = windows_pod();
        let template = json!({"template": {"spec": spec}});
        let objects = [
            (json!({"apiVersion": "v1", "kind": "Pod", "spec": spec}), "spec.volumes[0].secret"),
            (
                json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": template}),
                "spec.template.spec.volumes[0].secret",
            ),
            (
                json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": template}}}),
                "spec.jobTemplate.spec.template.spec.volumes[0].secret",
            ),
        ];
        for (object, path) in objects {
            let document = document(object);
            let checked = check(&document, &Policy::default()).unwrap().unwrap();
            assert!(checked.refused(), "{checked:?}");
            assert_eq!(checked.decision.findings[0].path, path);
            assert_eq!(checked.decision.os, Verdict::Windows);
        }
    }

    #[test]
    fn what_has_no_pod_is_passed_over() {
        for object in [
            json!({"apiVersion": "v1", "kind": "Service"}),
            json!({"kind": "Deployment"}),
            json!(null),
            json!([]),
        ] {
            assert!(check(&document(object), &Policy::default()).unwrap().is_none());
        }
    }

    #[test]
    fn a_pod_of_the_wrong_shape_is_an_error_that_names_it() {
        let document = document(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": "windows"}),
        );
        let error = format!("{:#}", check(&document, &Policy::default()).unwrap_err());
        assert!(error.starts_with("f.yaml:1: Pod p: no pod"), "{error}");
    }
}

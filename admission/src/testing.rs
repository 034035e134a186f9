//! What tests share: a small cluster, pods as JSON, and the way from a pod to the patched pod.

use bifold_crds::WindowsBuild;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Freshness, RuntimeClass, WindowsNode},
    decide::{Decision, decide},
    patch::patch,
    pod::{Metadata, PodView},
    policy::Policy,
    question::{Request, Subject},
    rules::Finding,
    workload::Kind,
};

pub const NAMESPACE: &str = "shop";

/// A Windows node of that build, with these extra labels and taints.
pub fn node(name: &str, build: u32, labels: &Value, taints: &Value) -> WindowsNode {
    let mut all = json!({
        "kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "windows",
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/windows-build": WindowsBuild::from_number(build).unwrap(),
    });
    all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    let node = json!({ "metadata": { "name": name, "labels": all }, "spec": { "taints": taints } });
    WindowsNode::of(serde_json::from_value(node).unwrap()).unwrap()
}

pub fn class(handler: &str, selector: &[(&str, &str)]) -> RuntimeClass {
    let selector = selector.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    RuntimeClass { handler: handler.to_owned(), selector, tolerations: Vec::new() }
}

/// Three Windows nodes in three dialects of taints, and a RuntimeClass for Linux.
pub fn cluster() -> Cluster {
    let taint = |key: &str| json!([{ "key": key, "value": "windows", "effect": "NoSchedule" }]);
    let mut cluster = Cluster::default();
    cluster.set_freshness(Freshness::Warm);
    cluster.replace_nodes([
        node("win-2019", 17763, &json!({ "pool": "old" }), &json!([])),
        node("win-2022", 20348, &json!({ "pool": "new" }), &taint("os")),
        node("win-2025", 26100, &json!({ "pool": "new" }), &taint("node.kubernetes.io/os")),
    ]);
    cluster.put_class("gvisor", class("runsc", &[("kubernetes.io/os", "linux")]));
    cluster
}

/// A pod of that spec.
pub fn pod(spec: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "generateName": "web-" }, "spec": spec })
}

/// A Windows pod that lacks nothing but what `spec` leaves out.
pub fn windows(spec: &Value) -> Value {
    let mut pod = pod(spec);
    let spec = pod["spec"].as_object_mut().unwrap();
    spec.entry("nodeSelector").or_insert_with(|| json!({ "kubernetes.io/os": "windows" }));
    if spec["nodeSelector"].is_null() {
        spec.insert("os".to_owned(), json!({ "name": "windows" }));
    }
    pod
}

pub fn decide_as(
    object: &Value,
    kind: &Kind,
    subject: Subject,
    cluster: &Cluster,
    policy: &Policy,
) -> (Decision, Value) {
    let template = kind.template.iter().fold(object, |at, field| &at[*field]);
    let mut view = PodView::deserialize(template).unwrap();
    if !kind.template.is_empty() {
        view.workload = object.get("metadata").map(|m| Metadata::deserialize(m).unwrap());
    }
    let request = Request { namespace: NAMESPACE, subject, root: kind.root };
    let decision = decide(&view, &request, cluster, policy);
    let mut patched = object.clone();
    json_patch::patch(&mut patched, &patch(&view, kind, &decision.changes)).unwrap();
    (decision, patched)
}

/// The decision about a pod, and the pod as patched.
pub fn decide_with(pod: &Value, cluster: &Cluster, policy: &Policy) -> (Decision, Value) {
    decide_as(pod, Kind::find("", "Pod").unwrap(), Subject::Pod, cluster, policy)
}

pub fn decide_pod(pod: &Value, cluster: &Cluster) -> (Decision, Value) {
    decide_with(pod, cluster, cluster.policy_of(NAMESPACE))
}

/// The decision about a DaemonSet with that template, and its template as patched.
pub fn decide_daemon_set(spec: &Value, cluster: &Cluster, policy: &Policy) -> (Decision, Value) {
    let (decision, patched) = decide_whole(&daemon_set(spec), cluster, policy);
    (decision, patched["spec"]["template"]["spec"].clone())
}

/// A DaemonSet with that template.
pub fn daemon_set(spec: &Value) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "d" },
        "spec": { "template": { "spec": spec } } })
}

/// The decision about a DaemonSet, and the DaemonSet as patched.
pub fn decide_whole(set: &Value, cluster: &Cluster, policy: &Policy) -> (Decision, Value) {
    let kind = Kind::find("apps", "DaemonSet").unwrap();
    decide_as(set, kind, Subject::DaemonSet, cluster, policy)
}

pub fn findings_in(pod: &Value, cluster: &Cluster) -> Vec<Finding> {
    decide_pod(pod, cluster).0.findings
}

pub fn findings(pod: &Value) -> Vec<Finding> {
    findings_in(pod, &cluster())
}

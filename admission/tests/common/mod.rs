//! A small mixed cluster, and the way from a review to the patched object.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::unwrap_in_result)] // Each test uses its part.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bifold_admission::{Answer, Cluster, Freshness, Namespace, RuntimeClass, WindowsNode, review};
use serde_json::{Value, json};

pub fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.set_freshness(Freshness::Warm);
    for (name, build, taint) in [
        ("win-2019", "10.0.17763", json!([])),
        ("win-2022", "10.0.20348", json!([{ "key": "os", "value": "windows", "effect": "NoSchedule" }])),
        (
            "win-2025",
            "10.0.26100",
            json!([{ "key": "node.kubernetes.io/os", "value": "windows", "effect": "NoSchedule" }]),
        ),
    ] {
        let node = json!({
            "metadata": { "name": name, "labels": {
                "kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name,
                "node.kubernetes.io/windows-build": build } },
            "spec": { "taints": taint }
        });
        cluster.put_node(WindowsNode::of(serde_json::from_value(node).unwrap()).unwrap());
    }
    for (name, os) in [("gvisor", "linux"), ("windows-2022", "windows")] {
        let class = json!({ "handler": "h", "scheduling": { "nodeSelector": { "kubernetes.io/os": os } } });
        let class: k8s_openapi::api::node::v1::RuntimeClass = serde_json::from_value(class).unwrap();
        cluster.put_class(name, RuntimeClass::from(class));
    }
    cluster.put_namespace("shop", Namespace::unknown("shop"));
    cluster
}

/// A review of an object as it is created.
pub fn asking(group: &str, kind: &str, object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": { "uid": "u-1", "kind": { "group": group, "version": "v1", "kind": kind },
            "namespace": "shop", "operation": "CREATE", "object": object }
    })
}

pub fn answer(review_of: &Value, cluster: &Cluster) -> (Answer, Value) {
    let answer = review(review_of.to_string().as_bytes(), cluster).unwrap();
    let body = serde_json::from_slice(&answer.body).unwrap();
    (answer, body)
}

/// The patch in an answer; an empty one if there is none.
pub fn patch_in(body: &Value) -> json_patch::Patch {
    match body["response"]["patch"].as_str() {
        Some(encoded) => serde_json::from_slice(&STANDARD.decode(encoded).unwrap()).unwrap(),
        None => json_patch::Patch(vec![]),
    }
}

/// The object of a review after the patch that answers it, or `None` where it is refused.
pub fn admitted(review_of: &Value, cluster: &Cluster) -> Option<Value> {
    let (_, body) = answer(review_of, cluster);
    let mut object = review_of["request"]["object"].clone();
    json_patch::patch(&mut object, &patch_in(&body))
        .expect("the patch applies to the document it was made for");
    body["response"]["allowed"].as_bool().unwrap().then_some(object)
}

//! Whole reviews, as an API server sends them, and their answers.

#![allow(clippy::unwrap_used)]

mod common;

use bifold_admission::Outcome;
use expect_test::{Expect, expect};
use serde_json::Value;

fn check(review: &str, outcome: Outcome, expected: &Expect) {
    let review: Value = serde_json::from_str(review).unwrap();
    let (answer, mut body) = common::answer(&review, &common::cluster());
    assert_eq!(body["response"]["uid"], review["request"]["uid"]);
    assert_eq!(answer.outcome, outcome);
    let patch = common::patch_in(&body);
    if body["response"]["patch"].is_string() {
        body["response"]["patch"] = serde_json::to_value(&patch.0).unwrap();
    }
    body["response"]["uid"] = "…".into();
    expected.assert_eq(&serde_json::to_string_pretty(&body["response"]).unwrap());
}

#[test]
fn a_windows_pod_of_a_replica_set_gets_all_that_it_lacks() {
    check(
        include_str!("reviews/windows-by-image.json"),
        Outcome::Patched,
        &expect![[r#"
        {
          "allowed": true,
          "auditAnnotations": {
            "evidence": "spec.containers[0].image=mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2022",
            "os": "windows",
            "placement": "nodeSelector, tolerations, affinity, os"
          },
          "patch": [
            {
              "op": "add",
              "path": "/spec/nodeSelector",
              "value": {
                "kubernetes.io/os": "windows"
              }
            },
            {
              "op": "add",
              "path": "/spec/tolerations/-",
              "value": {
                "effect": "NoSchedule",
                "key": "node.kubernetes.io/os",
                "operator": "Equal",
                "value": "windows"
              }
            },
            {
              "op": "add",
              "path": "/spec/tolerations/-",
              "value": {
                "effect": "NoSchedule",
                "key": "os",
                "operator": "Equal",
                "value": "windows"
              }
            },
            {
              "op": "add",
              "path": "/spec/affinity",
              "value": {
                "nodeAffinity": {
                  "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                      {
                        "matchExpressions": [
                          {
                            "key": "node.kubernetes.io/windows-build",
                            "operator": "In",
                            "values": [
                              "10.0.20348",
                              "10.0.26100"
                            ]
                          }
                        ]
                      }
                    ]
                  }
                }
              }
            },
            {
              "op": "add",
              "path": "/spec/os",
              "value": {
                "name": "windows"
              }
            }
          ],
          "patchType": "JSONPatch",
          "uid": "…"
        }"#]],
    );
}

#[test]
fn a_linux_pod_that_says_so_is_left_alone() {
    check(
        include_str!("reviews/linux.json"),
        Outcome::Allowed,
        &expect![[r#"
        {
          "allowed": true,
          "auditAnnotations": {
            "evidence": "spec.nodeSelector[kubernetes.io/os]=linux",
            "os": "linux"
          },
          "uid": "…"
        }"#]],
    );
}

#[test]
fn a_secret_volume_is_refused_with_what_to_write() {
    check(
        include_str!("reviews/secret-volume.json"),
        Outcome::Denied,
        &expect![[r#"
        {
          "allowed": false,
          "auditAnnotations": {
            "evidence": "spec.nodeSelector[kubernetes.io/os]=windows",
            "os": "windows",
            "rules": "secret-volume=Deny"
          },
          "status": {
            "code": 403,
            "message": "secret-volume: spec.volumes[0].secret: volume \"db\" writes Secret \"db-login\" to the Windows node's disk in clear text; in container \"web\" write env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: db-login, key: password}}}]",
            "reason": "Forbidden"
          },
          "uid": "…"
        }"#]],
    );
}

#[test]
fn a_daemon_set_that_tolerates_everything_is_kept_to_linux() {
    check(
        include_str!("reviews/daemonset-tolerates-everything.json"),
        Outcome::Patched,
        &expect![[r#"
            {
              "allowed": true,
              "auditAnnotations": {
                "os": "unknown",
                "placement": "nodeSelector, annotations"
              },
              "patch": [
                {
                  "op": "add",
                  "path": "/spec/template/spec/nodeSelector",
                  "value": {
                    "kubernetes.io/os": "linux"
                  }
                },
                {
                  "op": "add",
                  "path": "/metadata/annotations/bifold.dev~1placed",
                  "value": "{\"nodeSelector\":\"linux\"}"
                }
              ],
              "patchType": "JSONPatch",
              "uid": "…",
              "warnings": [
                "bifold: kubernetes.io/os=linux was added to the node selector: without it the pod could land on a Windows node"
              ]
            }"#]],
    );
}

#[test]
fn a_daemon_set_whose_image_is_of_another_build_now_follows_it() {
    check(
        include_str!("reviews/daemonset-new-build.json"),
        Outcome::Patched,
        &expect![[r#"
        {
          "allowed": true,
          "auditAnnotations": {
            "evidence": "spec.template.spec.containers[0].image=mcr.microsoft.com/windows/nanoserver:ltsc2019",
            "os": "windows",
            "placement": "affinity, annotations"
          },
          "patch": [
            {
              "op": "add",
              "path": "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/values",
              "value": [
                "10.0.17763"
              ]
            },
            {
              "op": "add",
              "path": "/metadata/annotations/bifold.dev~1placed",
              "value": "{\"nodeSelector\":\"windows\",\"builds\":[\"10.0.17763\"],\"os\":\"windows\"}"
            }
          ],
          "patchType": "JSONPatch",
          "uid": "…"
        }"#]],
    );
}

#[test]
fn a_debugger_does_not_get_at_a_secret_volume_either() {
    check(
        include_str!("reviews/ephemeral-container.json"),
        Outcome::Denied,
        &expect![[r#"
        {
          "allowed": false,
          "auditAnnotations": {
            "evidence": "spec.nodeSelector[kubernetes.io/os]=windows, spec.ephemeralContainers[0].image=mcr.microsoft.com/windows/nanoserver:ltsc2022",
            "os": "windows",
            "rules": "secret-volume=Deny"
          },
          "status": {
            "code": 403,
            "message": "secret-volume: spec.volumes[0].secret: volume \"db\" writes Secret \"db-login\" to the Windows node's disk in clear text; in container \"debugger\" write env: [{name: KEY, valueFrom: {secretKeyRef: {name: db-login, key: KEY}}}] for each key, or envFrom: [{secretRef: {name: db-login}}]",
            "reason": "Forbidden"
          },
          "uid": "…"
        }"#]],
    );
}

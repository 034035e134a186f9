use bifold_crds::{
    WindowsWorkloadPolicySpec,
    workload_policy::{SetOsName, UnknownOs},
};
use serde_json::{Value, json};

use crate::{
    cluster::Freshness,
    policy::Policy,
    testing::{class, cluster, decide_daemon_set, decide_pod, decide_with, node, pod},
};

const LTSC2022: &str = "mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2022";
const LTSC2019: &str = "mcr.microsoft.com/windows/servercore:ltsc2019";

fn placed(spec: &Value) -> Value {
    let (_, patched) = decide_pod(&pod(spec), &cluster());
    let (again, twice) = decide_pod(&patched, &cluster());
    assert_eq!((again.changes, &twice), (vec![], &patched), "a second pass changes nothing");
    patched["spec"].clone()
}

fn toleration(key: &str) -> Value {
    json!({ "key": key, "operator": "Equal", "value": "windows", "effect": "NoSchedule" })
}

fn build_affinity(builds: &[&str]) -> Value {
    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchExpressions": [build_in(builds)] }] } } })
}

fn build_in(builds: &[&str]) -> Value {
    json!({ "key": "node.kubernetes.io/windows-build", "operator": "In", "values": builds })
}

#[test]
fn an_image_alone_brings_a_pod_to_every_node_that_runs_it() {
    let spec = placed(&json!({ "containers": [{ "name": "app", "image": LTSC2022 }] }));
    assert_eq!(
        spec,
        json!({
            "containers": [{ "name": "app", "image": LTSC2022 }],
            "nodeSelector": { "kubernetes.io/os": "windows" },
            "tolerations": [toleration("node.kubernetes.io/os"), toleration("os")],
            "affinity": build_affinity(&["10.0.20348", "10.0.26100"]),
            "os": { "name": "windows" },
        })
    );
}

#[test]
fn only_taints_of_nodes_within_reach_are_tolerated() {
    let table = [
        (json!({ "containers": [{ "image": LTSC2019 }] }), json!(null)),
        (json!({ "nodeSelector": { "kubernetes.io/os": "windows", "pool": "old" } }), json!(null)),
        (
            json!({ "nodeSelector": { "kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.20348" } }),
            json!([toleration("os")]),
        ),
        (
            json!({ "nodeSelector": { "kubernetes.io/os": "windows", "kubernetes.io/hostname": "win-2025" } }),
            json!([toleration("node.kubernetes.io/os")]),
        ),
    ];
    for (spec, tolerations) in table {
        assert_eq!(placed(&spec)["tolerations"], tolerations, "{spec}");
    }
}

#[test]
fn what_the_author_tolerates_is_not_repeated() {
    let with = |tolerations: Value| {
        placed(&json!({ "nodeSelector": { "kubernetes.io/os": "windows" }, "tolerations": tolerations }))["tolerations"]
            .clone()
    };
    let all = json!([{ "operator": "Exists" }]);
    assert_eq!(with(all.clone()), all);
    let not_ready =
        json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute" });
    assert_eq!(
        with(json!([not_ready, { "key": "os", "operator": "Exists" }])),
        json!([not_ready, { "key": "os", "operator": "Exists" }, toleration("node.kubernetes.io/os")])
    );
    assert_eq!(with(json!([])), json!([toleration("node.kubernetes.io/os"), toleration("os")]));
}

#[test]
fn team_taints_are_not_tolerated_and_nodes_behind_them_do_not_count() {
    let mut cluster = cluster();
    let both = json!([
        { "key": "sku", "value": "Windows", "effect": "NoSchedule" },
        { "key": "team", "value": "web", "effect": "NoSchedule" }
    ]);
    cluster.put_node(node("win-team", 20348, &json!({}), &both));
    let (decision, patched) = decide_pod(&pod(&json!({ "os": { "name": "windows" } })), &cluster);
    assert_eq!(
        patched["spec"]["tolerations"],
        json!([toleration("node.kubernetes.io/os"), toleration("os")])
    );
    assert_eq!(decision.findings, []);
    let team =
        json!({ "os": { "name": "windows" }, "tolerations": [{ "key": "team", "operator": "Exists" }] });
    let (_, patched) = decide_pod(&pod(&team), &cluster);
    assert_eq!(patched["spec"]["tolerations"][3]["key"], "sku");
}

#[test]
fn without_any_windows_node_the_documented_taint_is_tolerated_and_no_build_is_asked_for() {
    let mut none = cluster();
    none.replace_nodes([]);
    let mut cold = cluster();
    cold.replace_nodes([]);
    cold.set_freshness(Freshness::Cold);
    for cluster in [none, cold] {
        let (_, patched) = decide_pod(&pod(&json!({ "containers": [{ "image": LTSC2022 }] })), &cluster);
        assert_eq!(patched["spec"]["tolerations"], json!([toleration("os")]));
        assert_eq!(patched["spec"]["affinity"], json!(null));
    }
}

#[test]
fn the_build_goes_into_every_alternative_of_the_affinity() {
    let terms = |terms: Value| {
        json!({ "containers": [{ "image": LTSC2022 }], "affinity": { "podAffinity": {}, "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } } })
    };
    let zone = |zone: &str| json!({ "key": "pool", "operator": "In", "values": [zone] });
    let by_name = json!([{ "key": "metadata.name", "operator": "In", "values": ["win-2025"] }]);
    let spec = placed(&terms(json!([
        { "matchExpressions": [zone("new")] },
        { "matchFields": by_name },
        {},
        { "matchExpressions": [], "matchFields": null },
    ])));
    let build = build_in(&["10.0.20348", "10.0.26100"]);
    assert_eq!(
        spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"],
        json!([
            { "matchExpressions": [zone("new"), build] },
            { "matchFields": by_name, "matchExpressions": [build] },
            {},
            { "matchExpressions": [], "matchFields": null },
        ]),
        "a term without requirements admits no node and must not begin to"
    );
    for affinity in [json!(null), json!({}), json!({ "nodeAffinity": null }), json!({ "nodeAffinity": {} })] {
        let spec = placed(&json!({ "containers": [{ "image": LTSC2022 }], "affinity": affinity }));
        assert_eq!(spec["affinity"], build_affinity(&["10.0.20348", "10.0.26100"]));
    }
}

#[test]
fn the_build_is_not_asked_for_where_it_does_not_matter_or_is_said_already() {
    let image = json!([{ "image": LTSC2022 }]);
    let table = [
        json!({ "containers": [{ "image": "registry.local/app:1" }], "os": { "name": "windows" } }),
        json!({ "containers": image, "securityContext": { "windowsOptions": { "hostProcess": true } } }),
        json!({ "containers": image, "nodeSelector": { "node.kubernetes.io/windows-build": "10.0.26100" } }),
        json!({ "containers": image, "nodeName": "win-2022" }),
    ];
    for spec in table {
        assert_eq!(placed(&spec)["affinity"], json!(null), "{spec}");
    }
    let mut policy = WindowsWorkloadPolicySpec::default();
    policy.placement.match_build = false;
    let (_, patched) =
        decide_with(&pod(&json!({ "containers": image })), &cluster(), &Policy::new(None, &policy));
    assert_eq!(patched["spec"]["affinity"], json!(null));
}

#[test]
fn hyper_v_runs_older_images_on_newer_nodes() {
    let mut cluster = cluster();
    cluster.put_class("hyperv", class("runhcs-wcow-hypervisor", &[("kubernetes.io/os", "windows")]));
    let spec = json!({ "runtimeClassName": "hyperv", "containers": [{ "image": LTSC2019 }] });
    let (_, patched) = decide_pod(&pod(&spec), &cluster);
    assert_eq!(patched["spec"]["affinity"], build_affinity(&["10.0.17763", "10.0.20348", "10.0.26100"]));
}

#[test]
fn os_name_is_set_where_the_api_server_accepts_it() {
    let table = [
        (json!({ "containers": [{ "image": LTSC2022 }] }), json!({ "name": "windows" })),
        (
            json!({ "nodeSelector": { "kubernetes.io/os": "windows" }, "os": {} }),
            json!({ "name": "windows" }),
        ),
        (json!({ "containers": [{ "image": LTSC2022 }], "securityContext": { "fsGroup": 1 } }), json!(null)),
        (
            json!({ "initContainers": [{ "securityContext": { "privileged": false } }],
                "nodeSelector": { "kubernetes.io/os": "windows" } }),
            json!(null),
        ),
        // Its own selector would have to be changed to bind it to Windows nodes.
        (
            json!({ "containers": [{ "image": LTSC2022 }], "nodeSelector": { "kubernetes.io/os": "Windows" } }),
            json!(null),
        ),
    ];
    for (spec, os) in table {
        assert_eq!(placed(&spec)["os"], os, "{spec}");
    }
    let mut policy = WindowsWorkloadPolicySpec::default();
    policy.placement.set_os_name = SetOsName::Never;
    let windows = pod(&json!({ "nodeSelector": { "kubernetes.io/os": "windows" } }));
    assert_eq!(decide_with(&windows, &cluster(), &Policy::new(None, &policy)).1["spec"]["os"], json!(null));
}

#[test]
fn a_pod_that_contradicts_itself_is_left_as_it_is() {
    for spec in [
        json!({ "os": { "name": "windows" }, "nodeSelector": { "kubernetes.io/os": "linux" } }),
        json!({ "os": { "name": "windows" }, "runtimeClassName": "gvisor" }),
    ] {
        let (decision, _) = decide_pod(&pod(&spec), &cluster());
        assert!(decision.denied() && decision.changes.is_empty(), "{spec}");
    }
    let linux_class = json!({ "runtimeClassName": "gvisor", "containers": [{ "image": LTSC2022 }] });
    assert_eq!(placed(&linux_class)["nodeSelector"], json!(null), "the API server would refuse the pod");
}

#[test]
fn a_linux_pod_is_guarded_only_if_it_could_land_on_a_windows_node() {
    let linux = json!({ "kubernetes.io/os": "linux" });
    let mut tainted = cluster();
    tainted.remove_node("win-2019");
    let mut none = cluster();
    none.replace_nodes([]);
    let nginx = json!({ "containers": [{ "image": "nginx" }] });
    let tolerant = json!({ "tolerations": [{ "operator": "Exists" }] });
    let elsewhere = json!({ "nodeSelector": { "zone": "x" } });
    let bound = json!({ "nodeName": "some-node", "tolerations": [{ "operator": "Exists" }] });
    let affine = json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "kubernetes.io/os", "operator": "NotIn", "values": ["windows"] }] }] } } } });
    let table = [
        ("an untainted Windows node", &nginx, cluster(), true),
        ("only tainted ones", &nginx, tainted.clone(), false),
        ("a pod that tolerates everything", &tolerant, tainted.clone(), true),
        ("no Windows node", &tolerant, none, false),
        ("a selector that no Windows node meets", &elsewhere, cluster(), false),
        ("a pod that is bound to a node", &bound, cluster(), false),
        ("an affinity that says Linux", &affine, cluster(), false),
    ];
    for (name, spec, cluster, guarded) in table {
        let (decision, patched) = decide_pod(&pod(spec), &cluster);
        assert_eq!(patched["spec"]["nodeSelector"] == linux, guarded, "{name}");
        assert_eq!(decision.notes.len(), usize::from(guarded), "{name}");
    }
    let with_selector = placed(&json!({ "nodeSelector": { "pool": "old" } }));
    assert_eq!(with_selector["nodeSelector"], json!({ "pool": "old", "kubernetes.io/os": "linux" }));
}

#[test]
fn the_policy_says_what_becomes_of_pods_whose_os_nothing_tells() {
    let mut tainted = cluster();
    tainted.remove_node("win-2019");
    let table = [
        (UnknownOs::Guard, json!("linux"), json!(null)),
        (UnknownOs::Linux, json!("linux"), json!("linux")),
        (UnknownOs::Windows, json!("windows"), json!("windows")),
        (UnknownOs::Leave, json!(null), json!(null)),
    ];
    for (unknown, open, closed) in table {
        let mut spec = WindowsWorkloadPolicySpec::default();
        spec.detection.unknown = unknown;
        let policy = Policy::new(None, &spec);
        let pod = pod(&json!({ "containers": [{ "image": "registry.local/app:1" }] }));
        for (cluster, expected) in [(cluster(), open), (tainted.clone(), closed)] {
            let (_, patched) = decide_with(&pod, &cluster, &policy);
            assert_eq!(patched["spec"]["nodeSelector"]["kubernetes.io/os"], expected, "{unknown:?}");
        }
    }
}

#[test]
fn the_pods_of_a_daemon_set_get_nothing_that_could_keep_them_from_their_node() {
    let of_daemon_set = |image: &str| {
        let mut pod = pod(&json!({ "containers": [{ "image": image }],
            "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["win-2022"] }] }] } } } }));
        pod["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true }]);
        pod
    };
    let linux = of_daemon_set("fluentd");
    assert_eq!(decide_pod(&linux, &cluster()).1, linux, "it is not guarded");
    let (decision, patched) = decide_pod(&of_daemon_set(LTSC2019), &cluster());
    assert_eq!(decision.findings, [], "its template is what is judged");
    assert_eq!(patched["spec"]["tolerations"], json!(null), "its image runs on no node that it may use");
    let (_, patched) = decide_pod(&of_daemon_set(LTSC2022), &cluster());
    assert_eq!(patched["spec"]["tolerations"], json!([toleration("os")]));
    assert_eq!(patched["spec"]["nodeSelector"], json!(null));
}

#[test]
fn the_template_of_a_linux_daemon_set_is_guarded() {
    let mut none = cluster();
    none.replace_nodes([]);
    let mut tainted = cluster();
    tainted.remove_node("win-2019");
    let plain = json!({ "containers": [{ "image": "fluentd" }] });
    let tolerant =
        json!({ "containers": [{ "image": "fluentd" }], "tolerations": [{ "operator": "Exists" }] });
    let table = [
        (&tolerant, &none, json!({ "kubernetes.io/os": "linux" })),
        (&tolerant, &tainted, json!({ "kubernetes.io/os": "linux" })),
        (&plain, &none, json!(null)),
        (&plain, &tainted, json!(null)),
        (&plain, &cluster(), json!({ "kubernetes.io/os": "linux" })),
    ];
    for (spec, cluster, selector) in table {
        let (_, patched) = decide_daemon_set(spec, cluster, &Policy::default());
        assert_eq!(patched["nodeSelector"], selector, "{spec}");
        assert_eq!(decide_daemon_set(&patched, cluster, &Policy::default()).1, patched);
    }
}

#[test]
fn the_template_of_a_windows_daemon_set_says_everything_itself() {
    let mut cluster = cluster();
    let selector = [("kubernetes.io/os", "windows"), ("node.kubernetes.io/windows-build", "10.0.20348")];
    cluster.put_class("windows-2022", class("runhcs-wcow-process", &selector));
    let spec = json!({ "runtimeClassName": "windows-2022", "containers": [{ "image": LTSC2022 }] });
    let (decision, patched) = decide_daemon_set(&spec, &cluster, &Policy::default());
    assert_eq!(decision.findings, []);
    assert_eq!(patched["nodeSelector"], json!({ "kubernetes.io/os": "windows" }));
    assert_eq!(patched["tolerations"], json!([toleration("os")]));
    assert_eq!(
        patched["affinity"],
        build_affinity(&["10.0.20348", "10.0.25398", "10.0.26100"]),
        "releases that may join later are named too"
    );
    assert_eq!(patched["os"], json!({ "name": "windows" }));
    assert_eq!(decide_daemon_set(&patched, &cluster, &Policy::default()).1, patched);
}

#[test]
fn a_daemon_set_is_warned_about_and_never_refused() {
    let spec = json!({ "nodeSelector": { "kubernetes.io/os": "windows" },
        "containers": [{ "name": "a", "volumeMounts": [{ "name": "v" }] }],
        "volumes": [{ "name": "v", "secret": { "secretName": "s" } }] });
    let (decision, _) = decide_daemon_set(&spec, &cluster(), &Policy::default());
    assert!(!decision.denied());
    assert_eq!(decision.findings[0].path, "spec.template.spec.volumes[0].secret");
}

//! Whatever arrives: an answer with the uid, or an error that says what is wrong. Never a panic.

mod common;

use bifold_admission::{NoReview, Outcome, review};
use common::{answer, asking, cluster};
use serde_json::{Value, json};

#[test]
fn what_is_no_review_is_told_so() {
    let table: [(&str, &str); 12] = [
        ("", "the body is no AdmissionReview in JSON: EOF while parsing a value at line 1 column 0"),
        ("nonsense", "the body is no AdmissionReview in JSON: expected ident at line 1 column 2"),
        ("[]", "the body is no AdmissionReview in JSON: "),
        ("\u{0}", "the body is no AdmissionReview in JSON: expected value at line 1 column 1"),
        ("null", "the body is no AdmissionReview in JSON: "),
        ("{}", "the body is no AdmissionReview of admission.k8s.io/v1"),
        (
            r#"{"apiVersion":"v1","kind":"Pod","request":{"uid":"a"}}"#,
            "the body is no AdmissionReview of admission.k8s.io/v1",
        ),
        (
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"a"}}"#,
            "the body is no AdmissionReview of admission.k8s.io/v1",
        ),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#,
            "the AdmissionReview has no request with a uid",
        ),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}"#,
            "the AdmissionReview has no request with a uid",
        ),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""}}"#,
            "the AdmissionReview has no request with a uid",
        ),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a""#,
            "the body is no AdmissionReview in JSON: EOF",
        ),
    ];
    for (body, sentence) in table {
        let error: NoReview = review(body.as_bytes(), &cluster()).unwrap_err();
        assert!(error.to_string().starts_with(sentence), "{body:?}: {error}");
    }
    assert!(review(b"{\"a\":\"\xff\"}", &cluster()).is_err(), "no UTF-8");
}

#[test]
fn an_object_that_is_none_of_its_kind_is_admitted_unread_and_said_so() {
    for object in [
        json!([]),
        json!("pod"),
        json!({ "spec": [] }),
        json!({ "spec": { "containers": {} } }),
        json!({ "spec": { "nodeSelector": { "a": 1 } } }),
        json!({ "spec": { "os": "windows" } }),
    ] {
        let (answer, body) = answer(&asking("", "Pod", &object), &cluster());
        assert_eq!((answer.outcome, answer.kind), (Outcome::Unreadable, "Pod"), "{object}");
        assert_eq!(body["response"]["uid"], "u-1");
        assert_eq!(body["response"]["allowed"], true);
    }
    let mut odd = asking("", "Pod", &json!({}));
    odd["request"]["namespace"] = json!(7);
    assert_eq!(answer(&odd, &cluster()).1["response"]["uid"], "u-1", "the uid could be read");
}

#[test]
fn there_is_nothing_to_say_about_other_kinds_operations_and_empty_objects() {
    let pod = json!({ "spec": { "nodeSelector": { "kubernetes.io/os": "windows" } } });
    let mut reviews =
        vec![asking("", "Service", &pod), asking("apps", "Pod", &pod), asking("", "Pod", &Value::Null)];
    for (operation, subresource) in [
        ("DELETE", ""),
        ("CONNECT", ""),
        ("UPDATE", ""),
        ("UPDATE", "status"),
        ("UPDATE", "resize"),
        ("CREATE", "binding"),
    ] {
        let mut review = asking("", "Pod", &pod);
        review["request"]["operation"] = json!(operation);
        review["request"]["subResource"] = json!(subresource);
        reviews.push(review);
    }
    let mut without_object = asking("", "Pod", &pod);
    without_object["request"]["operation"] = json!("DELETE");
    without_object["request"].as_object_mut().unwrap().remove("object");
    reviews.push(without_object);
    for set in [json!({}), json!({ "spec": null }), json!({ "spec": { "template": null } })] {
        reviews.push(asking("apps", "DaemonSet", &set));
    }
    reviews.push(asking(
        "apps",
        "DaemonSet",
        &json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "template": pod } }),
    ));
    for review in reviews {
        let (answer, body) = answer(&review, &cluster());
        assert_eq!(answer.outcome, Outcome::Allowed, "{review}");
        let uid_and_verdict = json!({ "uid": "u-1", "allowed": true });
        assert_eq!(body["response"], uid_and_verdict, "{review}");
    }
}

#[test]
fn fields_that_are_null_are_absent_ones() {
    let null = json!({ "metadata": null, "spec": {
        "os": null, "nodeName": null, "runtimeClassName": null, "nodeSelector": null, "affinity": null,
        "tolerations": null, "containers": [{ "name": null, "image": "mcr.microsoft.com/windows:20H2", "volumeMounts": null,
            "securityContext": null, "lifecycle": null }, null],
        "initContainers": null, "ephemeralContainers": [null], "volumes": [null], "securityContext": null,
        "hostPID": null, "hostUsers": null } });
    let mut cluster = cluster();
    cluster.replace_nodes([]);
    let patched = common::admitted(&asking("", "Pod", &null), &cluster).unwrap();
    assert_eq!(patched["spec"]["nodeSelector"], json!({ "kubernetes.io/os": "windows" }));
    assert_eq!(patched["spec"]["os"], json!({ "name": "windows" }));
}

#[test]
fn a_mirror_pod_is_never_touched() {
    let pod = json!({ "metadata": { "annotations": { "kubernetes.io/config.mirror": "x" } },
        "spec": { "os": { "name": "windows" } } });
    assert_eq!(common::admitted(&asking("", "Pod", &pod), &cluster()), Some(pod));
}

#[test]
fn a_thousand_containers_in_a_mebibyte_are_answered_in_bounds() {
    let container = |i: usize| {
        json!({ "name": format!("c{i}"), "image": format!("mcr.microsoft.com/windows/nanoserver:ltsc2022-{i}"),
            "args": ["x".repeat(900)], "volumeMounts": [{ "name": format!("v{i}") }] })
    };
    let pod = json!({ "spec": {
        "containers": (0..1000).map(container).collect::<Vec<_>>(),
        "volumes": (0..1000).map(|i| json!({ "name": format!("v{i}"), "secret": { "secretName": "s" } })).collect::<Vec<_>>() } });
    let review = asking("", "Pod", &pod);
    assert!(review.to_string().len() > 1 << 20);
    let (answer, body) = answer(&review, &cluster());
    assert_eq!(answer.outcome, Outcome::Denied);
    assert!(answer.body.len() < 8192, "{}", answer.body.len());
    assert!(body["response"]["status"]["message"].as_str().unwrap().ends_with("more"));
}

#[test]
fn depth_is_no_danger_whether_we_know_the_field_or_not() {
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    for depth in [100, 10_000, 1_000_000] {
        let pod = format!(r#"{{"spec":{{"containers":[],"x":{}}}}}"#, deep(depth));
        let text = asking("", "Pod", &json!("OBJECT")).to_string().replace("\"OBJECT\"", &pod);
        let answer = review(text.as_bytes(), &cluster()).unwrap();
        assert_ne!(answer.outcome, Outcome::Denied);
        let pod = format!(r#"{{"spec":{{"containers":{}}}}}"#, deep(depth));
        let text = asking("", "Pod", &json!("OBJECT")).to_string().replace("\"OBJECT\"", &pod);
        assert_eq!(review(text.as_bytes(), &cluster()).unwrap().outcome, Outcome::Unreadable);
    }
}

#[test]
fn names_from_a_pod_reach_a_terminal_escaped_and_cut() {
    let pod = json!({ "spec": { "nodeSelector": { "kubernetes.io/os": "windows" },
        "containers": [{ "name": "a\u{1b}[2J\nfake: all is well", "volumeMounts": [{ "name": "v\u{202e}" }] }],
        "volumes": [{ "name": "v\u{202e}", "secret": { "secretName": "s".repeat(10_000) } }] } });
    let (_, body) = answer(&asking("", "Pod", &pod), &cluster());
    let message = body["response"]["status"]["message"].as_str().unwrap();
    assert!(!message.contains(['\u{1b}', '\n', '\u{202e}']) && message.len() < 1024, "{message}");
}

proptest::proptest! {
    #[test]
    fn any_bytes_get_an_answer_or_an_error(bytes: Vec<u8>) {
        let _ = review(&bytes, &cluster());
    }

    #[test]
    fn a_review_that_is_cut_or_changed_anywhere_gets_an_answer_or_an_error(at in 0_usize..4000, byte: u8) {
        let whole = include_bytes!("reviews/windows-by-image.json");
        let at = at % whole.len();
        let _ = review(&whole[..at], &cluster());
        let mut changed = whole.to_vec();
        changed[at] = byte;
        let _ = review(&changed, &cluster());
    }
}

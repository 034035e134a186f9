use axum::http::{Method, Request};
use futures::stream;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::testing::{metrics, snapshot};

const WINDOWS: &str = include_str!("../../../admission/tests/reviews/windows-by-image.json");
const SECRET: &str = include_str!("../../../admission/tests/reviews/secret-volume.json");

fn router() -> Router {
    let (snapshot, readiness) = snapshot();
    routes(snapshot, metrics(), readiness)
}

async fn ask(method: Method, path: &str, body: impl Into<Body>) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path).body(body.into()).unwrap();
    let answer = router().oneshot(request).await.unwrap();
    let status = answer.status();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn a_recorded_review_is_answered_with_its_uid_and_a_patch() {
    let (status, body) = ask(Method::POST, "/mutate?timeout=5s", WINDOWS).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["kind"], "AdmissionReview");
    assert_eq!(body["response"]["uid"], "705ab4f5-6393-11e8-b7cc-42010a800001");
    assert_eq!(
        (&body["response"]["allowed"], &body["response"]["patchType"]),
        (&json!(true), &json!("JSONPatch"))
    );
}

#[tokio::test]
async fn a_refusal_is_an_answer_even_when_nothing_is_known_of_the_cluster() {
    let (status, body) = ask(Method::POST, "/mutate", SECRET).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["response"]["allowed"]), (StatusCode::OK, &json!(false)));
    assert_eq!(body["response"]["status"]["code"], 403);
}

#[tokio::test]
async fn what_is_no_review_gets_a_400_with_a_sentence() {
    for (body, sentence) in [
        ("", "the body is no AdmissionReview in JSON"),
        ("<xml/>", "the body is no AdmissionReview in JSON"),
        ("{}", "the body is no AdmissionReview of admission.k8s.io/v1"),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#,
            "the AdmissionReview has no request",
        ),
    ] {
        let (status, text) = ask(Method::POST, "/mutate", body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(text.starts_with(sentence), "{text}");
    }
}

#[tokio::test]
async fn other_methods_and_paths_are_not_there() {
    assert_eq!(ask(Method::GET, "/mutate", Body::empty()).await.0, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(ask(Method::POST, "/", WINDOWS).await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        ask(Method::GET, "/metrics", Body::empty()).await.0,
        StatusCode::NOT_FOUND,
        "not on this port"
    );
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_whether_announced_or_not() {
    let announced =
        Request::post("/mutate").header("content-length", LARGEST + 1).body(Body::empty()).unwrap();
    let answer = router().oneshot(announced).await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let (status, text) = ask(Method::POST, "/mutate", vec![b' '; LARGEST + 1]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(text, "the body is larger than 7340032 bytes\n");
}

#[tokio::test]
async fn a_review_of_six_mebibytes_is_answered() {
    let mut review: Value = serde_json::from_str(WINDOWS).unwrap();
    review["request"]["object"]["metadata"]["annotations"]["big"] = "x".repeat(6 << 20).into();
    assert_eq!(ask(Method::POST, "/mutate", review.to_string()).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_send_its_body_is_let_go() {
    let silence = stream::pending::<std::io::Result<Vec<u8>>>();
    let (status, _) = ask(Method::POST, "/mutate", Body::from_stream(silence)).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn when_all_memory_is_taken_a_request_is_told_so() {
    let (snapshot, _) = snapshot();
    let shared = Shared { snapshot, metrics: metrics(), memory: Arc::new(Semaphore::new(PIECES)) };
    let all = shared.memory.clone().acquire_many_owned(PIECES.try_into().unwrap()).await.unwrap();
    let busy = mutate(State(shared.clone()), HeaderMap::new(), Body::from(WINDOWS)).await;
    assert_eq!(busy.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(all);
    let after = mutate(State(shared), HeaderMap::new(), Body::from(WINDOWS)).await;
    assert_eq!(after.status(), StatusCode::OK);
}

#[tokio::test]
async fn readiness_can_be_asked_on_the_tls_port_too() {
    assert_eq!(ask(Method::GET, "/healthz", Body::empty()).await, (StatusCode::OK, "ok\n".to_owned()));
    let (status, text) = ask(Method::GET, "/readyz", Body::empty()).await;
    assert_eq!((status, text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "not ready: snapshot\n"));
}

//! Replicas against an API server that keeps one Lease as the real one does. Time is paused: nothing here waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// One Lease, with `resourceVersion`; can be made unreachable.
#[derive(Clone, Default)]
struct Server {
    lease: Arc<Mutex<Option<Value>>>,
    version: Arc<AtomicU64>,
    away: Arc<AtomicBool>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        if self.away.load(Ordering::SeqCst) {
            return Err(std::io::Error::other("connection refused"));
        }
        let method = request.method().clone();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let mut stored = self.lease.lock().unwrap();
        let (code, answer) = match (method, stored.clone()) {
            (Method::GET | Method::PUT, None) => (StatusCode::NOT_FOUND, status(404, "NotFound")),
            (Method::GET, Some(lease)) => (StatusCode::OK, lease),
            (Method::POST, Some(_)) => (StatusCode::CONFLICT, status(409, "AlreadyExists")),
            (_, old) => {
                let mut new: Value = serde_json::from_slice(&body).unwrap();
                let stale = old
                    .is_some_and(|o| o["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"]);
                if stale {
                    (StatusCode::CONFLICT, status(409, "Conflict"))
                } else {
                    let version = self.version.fetch_add(1, Ordering::SeqCst);
                    new["metadata"]["resourceVersion"] = json!(version.to_string());
                    *stored = Some(new.clone());
                    (StatusCode::OK, new)
                }
            }
        };
        Ok(Response::builder().status(code).body(Body::from(answer.to_string().into_bytes())).unwrap())
    }

    fn holder(&self) -> Option<String> {
        let lease = self.lease.lock().unwrap().clone()?;
        Some(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
    }
}

fn status(code: u16, reason: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason })
}

fn params(identity: &str) -> LeaseParams {
    LeaseParams::new("ns".into(), "l".into(), identity.into())
}

async fn secs(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}

#[tokio::test(start_paused = true)]
async fn one_leads_the_other_waits_and_takes_over_within_two_periods_of_a_release() {
    let server = Server::default();
    let a = params("a").acquire(server.client()).await;
    let b = tokio::spawn({
        let client = server.client();
        async move { params("b").acquire(client).await }
    });
    secs(60).await;
    assert!(a.fence().holds() && !b.is_finished());
    let released = Instant::now();
    a.release().await;
    let b = b.await.unwrap();
    assert!(released.elapsed() <= Duration::from_secs(4), "{:?}", released.elapsed());
    assert_eq!((server.holder().as_deref(), b.fence().holds()), (Some("b"), true));
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_reach_the_server_stops_before_another_may_start() {
    let server = Server::default();
    let cut_off = Server { away: Arc::default(), ..server.clone() };
    let a = params("a").acquire(cut_off.client()).await;
    secs(7).await;
    cut_off.away.store(true, Ordering::SeqCst);
    let gone = Instant::now();
    let b = tokio::spawn({
        let client = server.client();
        async move { params("b").acquire(client).await }
    });
    a.lost().await;
    assert!(gone.elapsed() <= Duration::from_secs(10) && !b.is_finished());
    assert!(!a.fence().holds());
    let _b = b.await.unwrap();
    assert!(gone.elapsed() >= Duration::from_secs(13), "{:?}", gone.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_a_while_costs_no_leadership() {
    let server = Server::default();
    let a = params("a").acquire(server.client()).await;
    for _ in 0..5 {
        server.away.store(true, Ordering::SeqCst);
        secs(5).await;
        server.away.store(false, Ordering::SeqCst);
        secs(4).await;
        assert!(a.fence().holds());
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_while_the_server_is_away_waits() {
    let server = Server::default();
    server.away.store(true, Ordering::SeqCst);
    let a = tokio::spawn({
        let client = server.client();
        async move { params("a").acquire(client).await }
    });
    secs(600).await;
    assert!(!a.is_finished());
    server.away.store(false, Ordering::SeqCst);
    assert!(a.await.unwrap().fence().holds());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_seized_is_lost_at_the_next_renewal_and_stays_taken() {
    let server = Server::default();
    let a = params("a").acquire(server.client()).await;
    let seized = params("release").seize(server.client(), Duration::from_mins(10)).await.unwrap();
    assert_eq!(seized, Seized { from: Some("a".into()), term: Duration::from_secs(15) });
    let taken = Instant::now();
    a.lost().await;
    assert!(taken.elapsed() <= Duration::from_secs(2));
    let back = tokio::spawn({
        let client = server.client();
        async move { params("a").acquire(client).await }
    });
    secs(590).await;
    assert!(!back.is_finished());
    let _back = back.await.unwrap();
    assert!(taken.elapsed() > Duration::from_mins(10));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again_by_its_holder() {
    let server = Server::default();
    let a = params("a").acquire(server.client()).await;
    *server.lease.lock().unwrap() = None;
    secs(3).await;
    assert_eq!((server.holder().as_deref(), a.fence().holds()), (Some("a"), true));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_past_its_term_does_not_trust_its_lease() {
    let server = Server::default();
    let a = params("a").acquire(server.client()).await;
    // As SIGSTOP does: the clock goes on and nothing runs.
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(!a.fence().holds());
    a.lost().await;
}

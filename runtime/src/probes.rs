//! Liveness, readiness and metrics over plain HTTP.
//!
//! Readiness is held by the parts of the process: each takes a [`Part`] by name, and `/readyz` answers 200 when
//! every part has said that it is ready. Nobody has to remember to set one flag for all.

use std::{
    collections::BTreeSet,
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{encoding::text, registry::Registry};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Whether the process is ready, and if not, what is missing.
#[derive(Clone, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<&'static str>>>);

/// One thing that must be there before the process is ready. A part that is dropped without a word stays missing.
pub struct Part {
    name: &'static str,
    readiness: Readiness,
}

impl Readiness {
    /// A new part, not ready yet.
    #[must_use]
    pub fn part(&self, name: &'static str) -> Part {
        self.missing_set().insert(name);
        Part { name, readiness: self.clone() }
    }

    /// What is missing, in alphabetical order; empty when the process is ready.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        self.missing_set().iter().copied().collect()
    }

    /// The set stays whole whatever a thread that panicked did with it: each change is one call.
    fn missing_set(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    /// This part is there.
    pub fn ready(&self) {
        self.readiness.missing_set().remove(self.name);
    }

    /// This part is gone, or about to go: no new requests, please.
    pub fn revoke(&self) {
        self.readiness.missing_set().insert(self.name);
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Serves the probes on `address` until `stop`. Returns when the port is bound; the future inside serves.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("listen on {address} for probes: {error}")))
}

/// Serves `/healthz`, `/readyz` and `/metrics` until `stop`.
pub async fn serve(
    listener: TcpListener,
    readiness: Readiness,
    metrics: Arc<Registry>,
    stop: CancellationToken,
) -> io::Result<()> {
    axum::serve(listener, routes(readiness, metrics)).with_graceful_shutdown(stop.cancelled_owned()).await
}

/// The routes alone.
pub fn routes(readiness: Readiness, metrics: Arc<Registry>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async move || ready(&readiness)))
        .route("/metrics", get(async move || exposition(&metrics)))
}

/// The answer of `/readyz`.
#[must_use]
pub fn ready(readiness: &Readiness) -> (StatusCode, String) {
    let missing = readiness.missing();
    if missing.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", missing.join(", ")))
}

fn exposition(metrics: &Registry) -> impl IntoResponse + use<> {
    let mut body = String::new();
    match text::encode(&mut body, metrics) {
        Ok(()) => (
            StatusCode::OK,
            [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")],
            body,
        ),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [(header::CONTENT_TYPE, "text/plain; charset=utf-8")],
            format!("{error}\n"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::metrics;

    async fn get(routes: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = routes.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    fn setup() -> (Readiness, Router) {
        let readiness = Readiness::default();
        let routes = routes(readiness.clone(), Arc::new(metrics::registry("test", "0.0.0")));
        (readiness, routes)
    }

    #[tokio::test]
    async fn readiness_names_what_is_missing_and_can_be_revoked() {
        let (readiness, routes) = setup();
        let (nodes, tls) = (readiness.part("nodes"), readiness.part("certificate"));
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        assert_eq!(
            get(&routes, "/readyz").await,
            (unavailable, "not ready: certificate, nodes\n".to_owned())
        );
        nodes.ready();
        tls.ready();
        assert_eq!(get(&routes, "/readyz").await, (StatusCode::OK, "ok\n".to_owned()));
        tls.revoke();
        assert_eq!(get(&routes, "/readyz").await, (unavailable, "not ready: certificate\n".to_owned()));
        assert_eq!(get(&routes, "/healthz").await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn a_part_that_ends_without_a_word_stays_missing() {
        let (readiness, routes) = setup();
        drop(readiness.part("nodes"));
        assert_eq!(get(&routes, "/readyz").await.0, StatusCode::SERVICE_UNAVAILABLE);
    }

    #[tokio::test]
    async fn metrics_are_an_open_metrics_text() {
        let (_, routes) = setup();
        let (status, body) = get(&routes, "/metrics").await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.contains("process_start_time_seconds "), "{body}");
        assert!(body.contains(r#"bifold_build_info{component="test",version="0.0.0"} 1"#), "{body}");
        assert!(body.ends_with("# EOF\n"), "{body}");
    }
}

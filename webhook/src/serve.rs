//! TLS, and how serving ends.
//!
//! # Expected flow of the end
//! A signal: not ready any more, and every answer over HTTP/1.1 closes its connection, so that an API server that
//! keeps one open turns to another replica. After the drain time, in which every API server has heard that this
//! replica is going: no new connection. When the last answer is out, or after [`LAST_ANSWERS`]: the end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Version, header},
    middleware::{self, Next},
    response::Response,
};
use axum_server::{Handle, tls_rustls::RustlsConfig};
use bifold_runtime::probes::Readiness;
use hyper_util::rt::TokioTimer;
use rustls::{ServerConfig, crypto::ring};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{args::Args, certificate::Served};

/// For answers that are under way when no new connection is taken any more.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// For a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// From one request of a connection to the headers of the next. An API server lets go of an idle connection after
/// 90 s; if we were first, a request could be on its way to a connection that is closing.
const IDLE: Duration = Duration::from_mins(2);
/// HTTP/2 in flight on one connection: as many reviews as an API server has under way at once.
const STREAMS: u32 = 250;

/// Serves `routes` until `stop`, and to the end of the drain.
pub async fn serve(
    args: &Args,
    routes: Router,
    certificate: Served,
    readiness: Readiness,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| format!("listen on {} for reviews", args.listen))?;
    on(listener, args.drain(), routes, certificate, readiness, stop).await
}

/// The same on a listener.
pub async fn on(
    listener: TcpListener,
    drain: Duration,
    routes: Router,
    certificate: Served,
    readiness: Readiness,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let going = Arc::new(AtomicBool::new(false));
    let routes = routes.layer(middleware::from_fn_with_state(going.clone(), close_when_going));
    let handle = Handle::new();
    let mut server = axum_server::from_tcp_rustls(listener.into_std()?, config(certificate)?)?
        .map(|acceptor| acceptor.handshake_timeout(HANDSHAKE))
        .handle(handle.clone());
    let http = server.http_builder();
    http.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(IDLE))
        .keep_alive_timeout(HANDSHAKE)
        .max_concurrent_streams(STREAMS);
    let end = async {
        stop.cancelled().await;
        // Never made ready: from here on this replica is on its way out.
        let _going = readiness.part("draining");
        going.store(true, Ordering::Relaxed);
        tracing::info!(seconds = drain.as_secs(), "draining");
        tokio::time::sleep(drain).await;
        handle.graceful_shutdown(Some(LAST_ANSWERS));
        tracing::info!(connections = handle.connection_count(), "no new connections; the last answers");
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = server.serve(routes.into_make_service()) => ended?,
        () = end => {}
    }
    if stop.is_cancelled() { Ok(()) } else { anyhow::bail!("the server ended by itself") }
}

fn config(certificate: Served) -> anyhow::Result<RustlsConfig> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificate));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(RustlsConfig::from_config(Arc::new(config)))
}

/// HTTP/2 has its own way to say so, which the end of the drain uses.
async fn close_when_going(State(going): State<Arc<AtomicBool>>, request: Request, next: Next) -> Response {
    let version = request.version();
    let mut response = next.run(request).await;
    if going.load(Ordering::Relaxed) && version <= Version::HTTP_11 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests;

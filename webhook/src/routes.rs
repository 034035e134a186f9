//! HTTP only: what is asked, within which limits. Every decision is in `bifold_admission`.
//!
//! # Guarantees
//! - A request that is no review gets a 4xx with a sentence; a panic costs one request a 500, not the process.
//! - The bodies in memory are bounded, and a client that sends its body slowly is let go.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bifold_admission::review;
use bifold_runtime::probes::{self, Readiness};
use futures::StreamExt as _;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{metrics::Metrics, snapshot::Snapshot};

/// The API server takes bodies of 3 MiB, and a review of an update holds two objects. Controllers in Go cap the same.
const LARGEST: usize = 7 << 20;
/// Memory for bodies is handed out in pieces of this size, so that small reviews do not wait for large ones.
const PIECE: usize = 64 << 10;
/// All bodies together.
const PIECES: usize = (64 << 20) / PIECE;
/// How much of a body that is too large is read before the answer.
const MOST_DISCARDED: usize = 4 * LARGEST;
/// How long a body may take to arrive. The API server itself waits 5 s with the chart's values, 30 s at most.
const SLOWEST: Duration = Duration::from_secs(10);
/// How long a request waits for its turn before it is told to go elsewhere.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Shared {
    snapshot: Snapshot,
    metrics: Metrics,
    memory: Arc<Semaphore>,
}

/// `/mutate`, and the probes for whoever can only reach the TLS port.
pub fn routes(snapshot: Snapshot, metrics: Metrics, readiness: Readiness) -> Router {
    let shared = Shared { snapshot, metrics, memory: Arc::new(Semaphore::new(PIECES)) };
    Router::new()
        .route("/mutate", post(mutate))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async move || probes::ready(&readiness)))
        .with_state(shared)
}

/// Why there is no answer to a request.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the body is larger than {LARGEST} bytes")]
    TooLarge,
    #[error("the body could not be read: {0}")]
    Broken(#[from] axum::Error),
    #[error("the body did not arrive within {} s", SLOWEST.as_secs())]
    TooSlow,
    #[error("too many reviews at once; ask again")]
    Busy,
    #[error(transparent)]
    NoReview(#[from] bifold_admission::NoReview),
    #[error("the review could not be decided; the log of the webhook says why")]
    Panicked,
}

async fn mutate(State(shared): State<Shared>, headers: HeaderMap, body: Body) -> Response {
    match answer(&shared, &headers, body).await {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(refused) => {
            let (status, reason) = refused.status();
            shared.metrics.rejected(reason);
            tracing::debug!(%refused, "request");
            (status, format!("{refused}\n")).into_response()
        }
    }
}

async fn answer(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Refused> {
    let _memory = match memory_for(&shared.memory, headers).await {
        Err(Refused::TooLarge) => {
            discard(body).await;
            return Err(Refused::TooLarge);
        }
        other => other?,
    };
    let bytes = match timeout(SLOWEST, to_bytes(body, LARGEST)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return Err(too_large_or_broken(error)),
        Err(_) => return Err(Refused::TooSlow),
    };
    let began = Instant::now();
    let snapshot = shared.snapshot.read();
    // A review holds nothing that a panic could leave half done: it reads, and returns a value.
    let answer =
        catch_unwind(AssertUnwindSafe(|| review(&bytes, &snapshot))).map_err(|_| Refused::Panicked)??;
    shared.metrics.reviewed(&answer, began.elapsed().as_secs_f64());
    tracing::debug!(kind = answer.kind, outcome = answer.outcome.as_str(), "review");
    Ok(answer.body)
}

/// Memory for the body, by the length that was announced; of a body without length, for the largest.
async fn memory_for(memory: &Arc<Semaphore>, headers: &HeaderMap) -> Result<OwnedSemaphorePermit, Refused> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|l| l.to_str().ok()?.parse().ok());
    let length = announced.unwrap_or(LARGEST);
    if length > LARGEST {
        return Err(Refused::TooLarge);
    }
    let pieces = u32::try_from(length.div_ceil(PIECE).max(1)).map_err(|_| Refused::TooLarge)?;
    let permit = timeout(LONGEST_WAIT, memory.clone().acquire_many_owned(pieces)).await;
    permit.map_err(|_| Refused::Busy)?.map_err(|_| Refused::Busy)
}

/// Takes a body that nobody wants, up to a limit: a client that is still sending when its connection is closed sees an
/// error of the network and not the answer.
async fn discard(body: Body) {
    let mut pieces = body.into_data_stream();
    let read = async {
        let mut left = MOST_DISCARDED;
        while let Some(Ok(piece)) = pieces.next().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                break;
            }
        }
    };
    // Whoever is slower has had its chance.
    let _ = timeout(SLOWEST, read).await;
}

/// axum tells the two apart by the source of its error only, whose type is another crate's.
fn too_large_or_broken(error: axum::Error) -> Refused {
    let limit = std::error::Error::source(&error).is_some_and(|source| source.to_string().contains("limit"));
    if limit { Refused::TooLarge } else { Refused::Broken(error) }
}

impl Refused {
    const fn status(&self) -> (StatusCode, &'static str) {
        match self {
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            Self::Broken(_) => (StatusCode::BAD_REQUEST, "broken_body"),
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "too_slow"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            Self::NoReview(_) => (StatusCode::BAD_REQUEST, "no_review"),
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "panic"),
        }
    }
}

#[cfg(test)]
mod tests;

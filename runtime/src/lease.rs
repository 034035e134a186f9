//! Who may write: at most one process leads, by a Lease of the API server.
//!
//! # Expected flow
//!
//! [`LeaseParams::acquire`] waits until this process holds the Lease and returns a [`Leadership`], which renews it in
//! the background. The process writes while [`Fence::holds`], and exits when [`Leadership::lost`] resolves.
//! [`Leadership::release`] gives the Lease back, so that the next one need not wait for the term to pass.
//!
//! # Guarantees
//!
//! Terms are measured on our own clock since we saw the record change (as client-go does), so a wrong clock
//! elsewhere cannot steal the Lease. Every write carries the `resourceVersion` that was read, so that one of two
//! wins. The holder stops counting on the Lease [`LeaseParams::give_up`] after its last renewal, which is before
//! others may take it.
//!
//! # Caveats
//!
//! A Lease coordinates, it does not fence: a request that is on its way when the Lease is lost still arrives. What
//! is written must be harmless then, by `resourceVersion` or by being idempotent.

mod decide;
mod hold;

use std::time::Duration;

pub use hold::{Fence, Leadership, Seized};

/// Which Lease, as whom, and how long.
#[derive(Clone, Debug)]
pub struct LeaseParams {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Who we are: the name of the pod.
    pub identity: String,
    /// How long others wait after they saw the record change for the last time.
    pub term: Duration,
    /// How long the holder goes on without a renewal that succeeded; shorter than `term`.
    pub give_up: Duration,
    /// Between two renewals, and between two looks at somebody else's Lease.
    pub every: Duration,
}

impl LeaseParams {
    /// The times of client-go: 15 s, 10 s, 2 s. Fail-over takes about 2 s after a release, 17 s after a crash.
    #[must_use]
    pub fn new(namespace: String, name: String, identity: String) -> Self {
        let (term, give_up, every) =
            (Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2));
        Self { namespace, name, identity, term, give_up, every }
    }
}

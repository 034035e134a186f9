//! What every Bifold process needs around its work: crypto provider, log, signals, probes, metrics, a client that
//! waits for the API server, and the leader lease.
//!
//! ```text
//! crypto ─▶ log ─▶ shutdown ─▶ client ─▶ [ the process's own parts ] ─▶ exit code
//!                                │              │ readiness, metrics
//!                                └─▶ lease      └─▶ probes (/healthz /readyz /metrics)
//! ```

pub mod args;
pub mod client;
pub mod crypto;
pub mod lease;
pub mod log;
pub mod metrics;
pub mod probes;
pub mod shutdown;
pub mod watch;

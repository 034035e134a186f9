//! The metrics that every process has.

use std::{
    sync::atomic::AtomicU64,
    time::{SystemTime, UNIX_EPOCH},
};

use prometheus_client::{
    metrics::{gauge::Gauge, info::Info},
    registry::{Registry, Unit},
};

/// A registry with the start time and the build of this process. A process adds its own under a prefix:
/// `registry.sub_registry_with_prefix("bifold_webhook")`.
#[must_use]
pub fn registry(component: &'static str, version: &'static str) -> Registry {
    let mut registry = Registry::default();
    let started = Gauge::<f64, AtomicU64>::default();
    started.set(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64());
    registry.register_with_unit(
        "process_start_time",
        "When the process started, in seconds since the Unix epoch",
        Unit::Seconds,
        started,
    );
    let build = Info::new([("component", component), ("version", version)]);
    registry.register("bifold_build", "The component and version that is running", build);
    registry
}

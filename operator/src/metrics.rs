//! What the operator counts. Labels are kinds, verbs, outcomes and states, never names of objects.

use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

/// The counters and gauges of the operator.
#[derive(Default)]
pub struct Metrics {
    reconciles: Family<Reconcile, Counter>,
    writes: Family<Write, Counter>,
    watch_failures: Family<Kind, Counter>,
    unreadable: Family<Kind, Counter>,
    nodes: Family<State, Gauge>,
    leader: Gauge<i64, AtomicI64>,
    certificate_expiry: Family<Certificate, Gauge<f64, AtomicU64>>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reconcile {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Write {
    verb: &'static str,
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Certificate {
    certificate: &'static str,
}

const fn outcome(ok: bool) -> &'static str {
    if ok { "ok" } else { "error" }
}

impl Metrics {
    /// Registers everything under `bifold_operator_`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("bifold_operator");
        registry.register("reconciles", "Passes over one object", metrics.reconciles.clone());
        registry.register("writes", "Requests that change an object", metrics.writes.clone());
        registry.register(
            "watch_failures",
            "Watches that ended with an error and are being retried",
            metrics.watch_failures.clone(),
        );
        registry.register(
            "unreadable_objects",
            "Objects that were passed over because they could not be read",
            metrics.unreadable.clone(),
        );
        registry.register("nodes", "Windows nodes of all pools, by state", metrics.nodes.clone());
        registry.register("leader", "1 while this replica leads", metrics.leader.clone());
        registry.register_with_unit(
            "certificate_expiry",
            "When the certificate expires, in seconds since the Unix epoch",
            Unit::Seconds,
            metrics.certificate_expiry.clone(),
        );
        metrics
    }

    pub fn reconciled(&self, kind: &'static str, ok: bool) {
        self.reconciles.get_or_create(&Reconcile { kind, outcome: outcome(ok) }).inc();
    }

    pub fn wrote(&self, verb: &'static str, kind: &'static str, ok: bool) {
        self.writes.get_or_create(&Write { verb, kind, outcome: outcome(ok) }).inc();
    }

    pub fn watch_failed(&self, kind: &'static str) {
        self.watch_failures.get_or_create(&Kind { kind }).inc();
    }

    pub fn unreadable(&self, kind: &'static str) {
        self.unreadable.get_or_create(&Kind { kind }).inc();
    }

    pub fn nodes(&self, state: &'static str, count: usize) {
        self.nodes.get_or_create(&State { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit into 52 bits for a long time")]
    pub fn certificate_expires(&self, certificate: &'static str, at: jiff::Timestamp) {
        self.certificate_expiry.get_or_create(&Certificate { certificate }).set(at.as_second() as f64);
    }
}

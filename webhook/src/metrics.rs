//! What is counted. Labels are kinds, rules and outcomes, never names of objects.

use std::sync::{Arc, atomic::AtomicU64};

use bifold_admission::{Answer, Cluster, Freshness};
use bifold_crds::workload_policy::RuleAction;
use bifold_runtime::metrics;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Everything that the webhook counts.
#[derive(Clone, Debug)]
pub struct Metrics {
    reviews: Family<Review, Counter>,
    findings: Family<Finding, Counter>,
    rejected: Family<Rejected, Counter>,
    duration: Histogram,
    objects: Family<Kind, Gauge>,
    fresh: Gauge,
    watch_failures: Family<Kind, Counter>,
    unreadable: Family<Kind, Counter>,
    expiry: Gauge<f64, AtomicU64>,
    certificate_failures: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Review {
    kind: &'static str,
    decision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Finding {
    rule: &'static str,
    action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rejected {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

/// A review takes tens of microseconds; what is beyond a millisecond is a pod of a mebibyte, or a machine in trouble.
const BUCKETS: [f64; 12] =
    [10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 50e-3, 250e-3];

impl Metrics {
    /// All metrics at zero, and the registry that shows them.
    pub fn new() -> (Self, Arc<Registry>) {
        let mut registry = metrics::registry("webhook", env!("CARGO_PKG_VERSION"));
        let new = Self {
            reviews: Family::default(),
            findings: Family::default(),
            rejected: Family::default(),
            duration: Histogram::new(BUCKETS),
            objects: Family::default(),
            fresh: Gauge::default(),
            watch_failures: Family::default(),
            unreadable: Family::default(),
            expiry: Gauge::default(),
            certificate_failures: Counter::default(),
        };
        let part = registry.sub_registry_with_prefix("bifold_webhook");
        part.register("reviews", "Reviews answered, by kind of object and decision", new.reviews.clone());
        part.register("findings", "Rules that fired, and what followed", new.findings.clone());
        part.register(
            "rejected_requests",
            "Requests that were no review or came at a bad time",
            new.rejected.clone(),
        );
        part.register_with_unit(
            "review_duration",
            "From the bytes of a review to the bytes of its answer",
            Unit::Seconds,
            new.duration.clone(),
        );
        part.register("snapshot_objects", "Objects in the snapshot, by kind", new.objects.clone());
        part.register(
            "snapshot_fresh",
            "1 while the snapshot is what the API server says",
            new.fresh.clone(),
        );
        part.register(
            "watch_failures",
            "Watches that failed and were begun anew",
            new.watch_failures.clone(),
        );
        part.register("unreadable_objects", "Objects passed over, by kind", new.unreadable.clone());
        part.register_with_unit(
            "certificate_expiry_timestamp",
            "When the certificate ends, in seconds since the Unix epoch",
            Unit::Seconds,
            new.expiry.clone(),
        );
        part.register(
            "certificate_failures",
            "Certificates in the Secret that could not be served",
            new.certificate_failures.clone(),
        );
        (new, Arc::new(registry))
    }

    pub fn reviewed(&self, answer: &Answer, seconds: f64) {
        self.duration.observe(seconds);
        self.reviews.get_or_create(&Review { kind: answer.kind, decision: answer.outcome.as_str() }).inc();
        for (rule, action) in &answer.findings {
            self.findings.get_or_create(&Finding { rule, action: word(*action) }).inc();
        }
    }

    pub fn rejected(&self, reason: &'static str) {
        self.rejected.get_or_create(&Rejected { reason }).inc();
    }

    pub fn snapshot(&self, cluster: &Cluster) {
        let set = |kind, count: usize| {
            self.objects.get_or_create(&Kind { kind }).set(i64::try_from(count).unwrap_or(i64::MAX));
        };
        set("Node", cluster.nodes().len());
        set("RuntimeClass", cluster.classes().len());
        set("Namespace", cluster.namespace_count());
        set("WindowsWorkloadPolicy", cluster.policy_count());
        self.fresh.set(i64::from(cluster.freshness() == Freshness::Warm));
    }

    pub fn watch_failed(&self, kind: &'static str) {
        self.watch_failures.get_or_create(&Kind { kind }).inc();
    }

    pub fn unreadable(&self, kind: &'static str) {
        self.unreadable.get_or_create(&Kind { kind }).inc();
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit into 53 bits for long enough")]
    pub fn certificate_ends(&self, at: i64) {
        self.expiry.set(at as f64);
    }

    pub fn certificate_failed(&self) {
        self.certificate_failures.inc();
    }
}

const fn word(action: RuleAction) -> &'static str {
    match action {
        RuleAction::Allow => "Allow",
        RuleAction::Fix => "Fix",
        RuleAction::Warn => "Warn",
        RuleAction::Deny => "Deny",
    }
}

//! What is known of the cluster, shared between the watches that fill it and the reviews that read it.
//!
//! # Guarantees
//! - A review reads one state of the snapshot from beginning to end and never waits for a watch.
//! - The snapshot is cold until every kind has been listed once, and stale once a watch has failed for
//!   [`STALE_AFTER`]. It is never emptied by a failure.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use bifold_admission::{Cluster, Freshness};
use bifold_runtime::probes::Part;
use tokio::time::Instant;

use crate::metrics::Metrics;

/// An API server that restarts is back within this.
pub const STALE_AFTER: Duration = Duration::from_mins(1);

/// A watch that fails is tried again within seconds. One that has not failed for this long works: where nothing
/// happens in the cluster, it has nothing else to say.
const WORKS_AFTER: Duration = Duration::from_secs(45);

/// The snapshot. Clones share it.
#[derive(Clone, Debug)]
pub struct Snapshot(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    current: ArcSwap<Cluster>,
    /// Held while the next state is made, so that no change is lost.
    watches: Mutex<BTreeMap<&'static str, Watch>>,
    metrics: Metrics,
    part: Part,
}

/// How the watch of one kind is doing.
#[derive(Debug, Default)]
struct Watch {
    listed: bool,
    failing: Option<Failing>,
}

/// Between the first failure and what was last heard of it.
#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Instant,
    last: Instant,
}

impl Snapshot {
    pub fn new(metrics: Metrics, part: Part) -> Self {
        let current = ArcSwap::from_pointee(Cluster::default());
        Self(Arc::new(Shared { current, watches: Mutex::default(), metrics, part }))
    }

    /// The state of this moment.
    pub fn read(&self) -> arc_swap::Guard<Arc<Cluster>> {
        self.0.current.load()
    }

    /// Announces a watch: the snapshot is cold until it has listed its kind.
    pub fn expect(&self, kind: &'static str) {
        self.watches().entry(kind).or_default();
    }

    /// Takes over what a watch said.
    pub fn change(&self, kind: &'static str, apply: impl FnOnce(&mut Cluster)) {
        let mut watches = self.watches();
        watches.entry(kind).or_default().failing = None;
        self.publish(&watches, apply);
    }

    /// Takes over what a watch said at the end of its list: everything there is of a kind.
    pub fn listed(&self, kind: &'static str, apply: impl FnOnce(&mut Cluster)) {
        let mut watches = self.watches();
        *watches.entry(kind).or_default() = Watch { listed: true, failing: None };
        self.publish(&watches, apply);
        if watches.values().all(|w| w.listed) {
            self.0.part.ready();
        }
    }

    /// Says that a watch failed.
    pub fn failed(&self, kind: &'static str) {
        let mut watches = self.watches();
        let now = Instant::now();
        watches.entry(kind).or_default().failing.get_or_insert(Failing { since: now, last: now }).last = now;
    }

    /// Says that a watch was heard of, without news.
    pub fn heard(&self, kind: &'static str) {
        self.watches().entry(kind).or_default().failing = None;
    }

    /// Looks at how the watches are doing, from time to time.
    pub fn look(&self) {
        let mut watches = self.watches();
        for watch in watches.values_mut() {
            watch.failing = watch.failing.filter(|f| f.last.elapsed() < WORKS_AFTER);
        }
        if freshness(&watches) != self.read().freshness() {
            self.publish(&watches, |_| {});
        }
    }

    fn publish(&self, watches: &BTreeMap<&'static str, Watch>, apply: impl FnOnce(&mut Cluster)) {
        let mut next = Cluster::clone(&self.read());
        apply(&mut next);
        let (before, now) = (next.freshness(), freshness(watches));
        next.set_freshness(now);
        if before != now {
            tracing::info!(?before, ?now, "snapshot");
        }
        self.0.metrics.snapshot(&next);
        self.0.current.store(Arc::new(next));
    }

    /// The map stays whole whatever a thread that panicked did with it: each change is one assignment.
    fn watches(&self) -> MutexGuard<'_, BTreeMap<&'static str, Watch>> {
        self.0.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn freshness(watches: &BTreeMap<&'static str, Watch>) -> Freshness {
    let failing = |w: &Watch| w.failing.is_some_and(|f| f.since.elapsed() >= STALE_AFTER);
    if watches.values().any(|w| !w.listed) {
        Freshness::Cold
    } else if watches.values().any(failing) {
        Freshness::Stale
    } else {
        Freshness::Warm
    }
}

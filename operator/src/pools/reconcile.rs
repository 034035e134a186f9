//! One pool, one pass.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bifold_crds::WindowsNodePool;
use jiff::Timestamp;
use kube::{
    ResourceExt as _,
    core::Status,
    runtime::{controller::Action, events::Recorder, reflector::store::WriterDropped},
};

use super::{
    apply::{self, Outcome},
    observe::Caches,
    plan::{self, Plan},
    report,
    validate::World,
};
use crate::{
    metrics::Metrics,
    writer::{WriteError, Writer},
};

/// Watches can miss things: look again, however quiet it is.
const AGAIN: Duration = Duration::from_mins(10);
/// Between two tries after a failure: doubled each time, up to the other.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_AT_MOST: Duration = Duration::from_mins(1);
/// Somebody must change our RBAC: trying more often only fills the audit log.
const FORBIDDEN: Duration = Duration::from_mins(5);

pub struct Context {
    pub caches: Caches,
    pub writer: Writer,
    pub recorder: Recorder,
    pub metrics: Arc<Metrics>,
    pub memory: Mutex<Memory>,
}

/// What is worth remembering between passes: nothing that a decision depends on.
#[derive(Default)]
pub struct Memory {
    failures: HashMap<String, u32>,
    nodes: BTreeMap<String, NodeCounts>,
}

#[derive(Clone, Copy, Default)]
struct NodeCounts {
    configured: usize,
    pending: usize,
    other_build: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("read the caches")]
    Observe(#[from] WriterDropped),
    #[error("apply the plan")]
    Apply(#[source] WriteError),
    #[error("report the status")]
    Report(#[source] WriteError),
}

pub async fn reconcile(pool: Arc<WindowsNodePool>, context: Arc<Context>) -> Result<Action, Error> {
    // observe (caches)
    let observed = context.caches.observe().await?;
    // validate (values)
    let world = World::new(&observed);
    // plan (pure, cannot fail)
    let plan = plan::plan(&pool, &world);
    // apply (writes)
    let outcome = apply::apply(&context.writer, &pool, &plan, &world).await;
    context.count(&pool, &plan, &outcome);
    if plan.finalizer == plan::Finalizer::Remove && outcome.complete() {
        tracing::info!(pool = pool.name_any(), "released");
        return Ok(Action::await_change());
    }
    // report (status, then events), also what failed
    let status = report::status(&pool, &plan.findings, &outcome, Timestamp::now());
    report::write(&context.writer, &pool, &status).await.map_err(Error::Report)?;
    report::events(&context.recorder, &pool, &status).await;
    if let Some(error) = outcome.error {
        return Err(Error::Apply(error));
    }
    context.memory().failures.remove(&pool.name_any());
    Ok(Action::requeue(AGAIN))
}

#[expect(clippy::needless_pass_by_value, reason = "the Controller's signature")]
pub fn error_policy(pool: Arc<WindowsNodePool>, error: &Error, context: Arc<Context>) -> Action {
    let mut memory = context.memory();
    let failures = memory.failures.entry(pool.name_any()).or_default();
    let wait = RETRY.saturating_mul(2_u32.saturating_pow(*failures)).min(RETRY_AT_MOST);
    *failures = failures.saturating_add(1);
    let forbidden = match error {
        Error::Apply(error) | Error::Report(error) => error.status().is_some_and(Status::is_forbidden),
        Error::Observe(_) => false,
    };
    Action::requeue(if forbidden { FORBIDDEN } else { wait })
}

impl Context {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nodes by state, over all pools.
    fn count(&self, pool: &WindowsNodePool, plan: &Plan, outcome: &Outcome) {
        let pending = outcome.nodes.len();
        let counts = NodeCounts {
            configured: plan.findings.members.len().saturating_sub(pending),
            pending,
            other_build: plan.findings.other_build.len(),
        };
        let mut memory = self.memory();
        memory.nodes.insert(pool.name_any(), counts);
        if plan.finalizer == plan::Finalizer::Remove && outcome.complete() {
            memory.nodes.remove(&pool.name_any());
            memory.failures.remove(&pool.name_any());
        }
        let sum = |of: fn(&NodeCounts) -> usize| memory.nodes.values().map(of).sum();
        self.metrics.nodes("configured", sum(|c| c.configured));
        self.metrics.nodes("pending", sum(|c| c.pending));
        self.metrics.nodes("other_build", sum(|c| c.other_build));
    }
}

#[cfg(test)]
mod tests;

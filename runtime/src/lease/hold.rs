//! The conversation with the API server: acquire, renew, lose, release.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ObjectMeta, PostParams},
};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    LeaseParams,
    decide::{self, Move},
};
use crate::client::chain;

/// A Lease that this process holds and renews until it is lost or released.
#[must_use = "the Lease is renewed as long as this lives"]
pub struct Leadership {
    fence: Fence,
    stop: CancellationToken,
    renewing: JoinHandle<Option<Lease>>,
    api: Api<Lease>,
}

/// Asked before every write.
#[derive(Clone)]
pub struct Fence {
    /// Until when nobody else may have taken the Lease.
    until: Arc<Mutex<Instant>>,
    lost: CancellationToken,
}

/// From whom a Lease was taken by force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seized {
    /// The holder before, if there was one other than us.
    pub from: Option<String>,
    /// How long that holder may go on believing that it leads.
    pub term: Duration,
}

impl LeaseParams {
    /// Waits until this process holds the Lease. An API server that is away is waited for.
    pub async fn acquire(&self, client: Client) -> Leadership {
        let api = Api::namespaced(client, &self.namespace);
        let mut seen = Seen::default();
        loop {
            match self.try_acquire(&api, &mut seen).await {
                Ok(Some((lease, since))) => return self.hold(api, lease, since),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(lease = self.name, error = chain(&error), "lease not read or written");
                }
            }
            tokio::time::sleep(self.every).await;
        }
    }

    async fn try_acquire(&self, api: &Api<Lease>, seen: &mut Seen) -> kube::Result<Option<(Lease, Instant)>> {
        let found = api.get_opt(&self.name).await?;
        let spec = found.as_ref().and_then(|l| l.spec.as_ref());
        let unchanged_for = found.as_ref().map_or(Duration::ZERO, |l| seen.unchanged_for(l, Instant::now()));
        match decide::next_move(spec, unchanged_for, &self.identity) {
            Move::Wait => {
                if seen.told != found.as_ref().and_then(decide::holder).map(str::to_owned) {
                    seen.told = found.as_ref().and_then(decide::holder).map(str::to_owned);
                    tracing::info!(lease = self.name, holder = seen.told, "another replica leads; waiting");
                }
                Ok(None)
            }
            Move::Acquire | Move::Renew => {
                // Counted from before the request: the record may be written long before the answer comes.
                let since = Instant::now();
                match self.write(api, found, &self.identity, self.term).await {
                    Ok(lease) => Ok(Some((lease, since))),
                    // Another replica was faster.
                    Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                        Ok(None)
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Writes `me` into the record as it was found, or into a new one.
    async fn write(
        &self,
        api: &Api<Lease>,
        found: Option<Lease>,
        me: &str,
        term: Duration,
    ) -> kube::Result<Lease> {
        let now = Timestamp::now();
        let Some(lease) = found else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..Default::default() };
            let new = decide::held(Lease { metadata, spec: None }, me, term, now);
            return api.create(&PostParams::default(), &new).await;
        };
        api.replace(&self.name, &PostParams::default(), &decide::held(lease, me, term, now)).await
    }

    fn hold(&self, api: Api<Lease>, lease: Lease, since: Instant) -> Leadership {
        tracing::info!(lease = self.name, identity = self.identity, "leading");
        let fence =
            Fence { until: Arc::new(Mutex::new(since + self.give_up)), lost: CancellationToken::new() };
        let stop = CancellationToken::new();
        let renewing = tokio::spawn(self.clone().renew(api.clone(), lease, fence.clone(), stop.clone()));
        Leadership { fence, stop, renewing, api }
    }

    /// Renews until `stop` (and returns the record) or until the Lease is lost.
    async fn renew(
        self,
        api: Api<Lease>,
        mut lease: Lease,
        fence: Fence,
        stop: CancellationToken,
    ) -> Option<Lease> {
        let deadline = fence.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => return Some(lease),
                () = tokio::time::sleep(self.every) => {}
            }
            let since = Instant::now();
            // Also when the process was stopped meanwhile: the deadline may have passed in our sleep.
            let Ok(renewed) = tokio::time::timeout_at(deadline.until(), self.try_renew(&api, &lease)).await
            else {
                break;
            };
            match renewed {
                Ok(Some(new)) if since < deadline.until() => {
                    lease = new;
                    fence.extend(since + self.give_up);
                }
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(lease = self.name, error = chain(&error), "lease not renewed");
                }
            }
        }
        tracing::error!(lease = self.name, "lease lost");
        fence.lost.cancel();
        None
    }

    /// `None`: somebody else holds it.
    async fn try_renew(&self, api: &Api<Lease>, lease: &Lease) -> kube::Result<Option<Lease>> {
        match self.write(api, Some(lease.clone()), &self.identity, self.term).await {
            Ok(lease) => return Ok(Some(lease)),
            // Somebody wrote, or deleted, the record: look who holds it now.
            Err(kube::Error::Api(s)) if s.is_conflict() || s.is_not_found() => {}
            Err(error) => return Err(error),
        }
        let found = api.get_opt(&self.name).await?;
        if found.as_ref().and_then(decide::holder).is_some_and(|holder| holder != self.identity) {
            return Ok(None);
        }
        self.write(api, found, &self.identity, self.term).await.map(Some)
    }

    /// Takes the Lease from whoever holds it, for `term`. The holder notices at its next renewal.
    pub async fn seize(&self, client: Client, term: Duration) -> kube::Result<Seized> {
        let api = Api::namespaced(client, &self.namespace);
        loop {
            let found: Option<Lease> = api.get_opt(&self.name).await?;
            let seized = Seized {
                from: found
                    .as_ref()
                    .and_then(decide::holder)
                    .filter(|h| *h != self.identity)
                    .map(str::to_owned),
                term: found.as_ref().and_then(|l| l.spec.as_ref()).map_or(Duration::ZERO, decide::term),
            };
            match self.write(&api, found, &self.identity, term).await {
                Ok(_) => return Ok(seized),
                // It was just renewed: once more, against the new record.
                Err(kube::Error::Api(s)) if s.is_conflict() || s.is_already_exists() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Leadership {
    /// What writers ask.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Resolves when the Lease is lost. The process must not write any more.
    pub async fn lost(&self) {
        self.fence.lost.cancelled().await;
    }

    /// Gives the Lease back. Call it when nothing is being written any more. Best effort: the term ends it anyway.
    pub async fn release(self) {
        self.stop.cancel();
        let Ok(Some(lease)) = self.renewing.await else { return };
        let name = lease.name_any();
        let given_back = decide::released(lease, Timestamp::now());
        match self.api.replace(&name, &PostParams::default(), &given_back).await {
            Ok(_) => tracing::info!(lease = name, "lease released"),
            Err(error) => tracing::warn!(lease = name, error = chain(&error), "lease not released"),
        }
        self.fence.lost.cancel();
    }
}

impl Fence {
    /// Whether nobody else can lead yet: the Lease is not lost and was renewed lately, on our clock.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.lost.is_cancelled() && Instant::now() < self.until()
    }

    /// A fence that always holds, for a writer without rivals.
    #[must_use]
    pub fn open() -> Self {
        // A year: `Instant` has no maximum, and no process runs longer on one Lease.
        let until = Instant::now() + Duration::from_hours(24 * 365);
        Self { until: Arc::new(Mutex::new(until)), lost: CancellationToken::new() }
    }

    fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn extend(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// When a record was seen to change, on our clock.
#[derive(Default)]
struct Seen {
    record: Option<(String, Instant)>,
    /// The holder that the log has named.
    told: Option<String>,
}

impl Seen {
    fn unchanged_for(&mut self, lease: &Lease, now: Instant) -> Duration {
        let version = lease.resource_version().unwrap_or_default();
        match &self.record {
            Some((seen, since)) if *seen == version => now - *since,
            _ => {
                self.record = Some((version, now));
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests;

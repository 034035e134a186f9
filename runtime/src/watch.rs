//! Watches that are patient with an API server that is away, and quick when it is back.

use std::{fmt::Debug, time::Duration};

use futures::Stream;
use kube::{
    Api,
    runtime::{
        WatchStreamExt as _,
        utils::Backoff,
        watcher::{self, Config, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

/// Watches objects; a watch that fails begins anew after a while.
pub fn objects<K>(api: Api<K>, config: Config) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: kube::Resource + DeserializeOwned + Clone + Debug + Send + 'static,
{
    watcher(api, config).backoff(Retry::default())
}

/// Twice as long after every failure, and short at its longest (kube's own is 30 s): when the API server is back, what
/// happened meanwhile is of interest, and there are few of us.
#[derive(Default)]
pub struct Retry {
    failures: u32,
    last: Option<Instant>,
}

impl Retry {
    const FIRST: Duration = Duration::from_millis(250);
    /// The longest wait between two attempts.
    pub const LONGEST: Duration = Duration::from_secs(4);
    /// After this long without a failure all is well again.
    const WELL: Duration = Duration::from_secs(10);
}

impl Iterator for Retry {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.last.is_some_and(|last| last.elapsed() > Self::WELL) {
            self.failures = 0;
        }
        let wait = Self::FIRST.saturating_mul(1 << self.failures.min(16));
        (self.failures, self.last) = (self.failures.saturating_add(1), Some(Instant::now()));
        Some(wait.min(Self::LONGEST))
    }
}

impl Backoff for Retry {
    /// Called for every event, of which [`Event::Init`] comes before each attempt to list: were it heeded, as kube's
    /// own back-off does, a list that fails would be tried again without any patience. Time tells instead.
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_gets_longer_up_to_a_limit_and_starts_over_after_a_while() {
        let mut retry = Retry::default();
        let mut waits = Vec::new();
        for wait in retry.by_ref().take(6) {
            waits.push(wait.as_millis());
            tokio::time::advance(wait).await;
        }
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 4000]);
        retry.reset();
        assert_eq!(retry.next(), Some(Retry::LONGEST), "the event before each attempt means nothing");
        tokio::time::advance(Retry::WELL + Duration::from_secs(1)).await;
        assert_eq!(retry.next(), Some(Retry::FIRST));
    }
}

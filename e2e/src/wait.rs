//! Waiting for something to become true, never for time to pass.
//!
//! Every wait is bounded, says what it waits for, and when it gives up says what it saw last.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// How long to rest between two looks: short against what is waited for, long against the cost of a look.
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

/// What one look at the world found.
#[derive(Debug)]
pub enum Look<T> {
    /// It is so, and this is the result.
    Done(T),
    /// Not yet; the text says what was seen instead.
    NotYet(String),
    /// It can never become so; waiting longer is pointless.
    Never(anyhow::Error),
}

/// Looks again and again until `look` is done, or until `limit` has passed.
///
/// An error of a look counts as "not yet": a server that is starting refuses connections. It is reported if it was the
/// last thing seen.
pub async fn wait_for<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<Look<T>>>,
{
    let until = Instant::now() + limit;
    let mut seen = String::from("nothing");
    loop {
        match tokio::time::timeout_at(until, look()).await {
            Ok(Ok(Look::Done(result))) => return Ok(result),
            Ok(Ok(Look::NotYet(now))) => seen = now,
            Ok(Ok(Look::Never(error))) => return Err(error.context(format!("waiting for {what}"))),
            Ok(Err(error)) => seen = format!("{error:#}"),
            Err(_) => bail!(
                "{what}: not within {} s; last seen: {seen} (and one look did not return)",
                limit.as_secs()
            ),
        }
        if Instant::now() >= until {
            bail!("{what}: not within {} s; last seen: {seen}", limit.as_secs());
        }
        sleep(BETWEEN_LOOKS).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_that_gives_up_says_what_it_saw_last() {
        let failed = wait_for::<(), _>("two pods", Duration::from_millis(1), || async {
            Ok(Look::NotYet("one pod".to_owned()))
        });
        assert_eq!(failed.await.unwrap_err().to_string(), "two pods: not within 0 s; last seen: one pod");
    }

    #[tokio::test]
    async fn a_wait_ends_at_once_when_it_can_never_succeed() {
        let failed = wait_for::<(), _>("etcd", Duration::from_hours(1), || async {
            Ok(Look::Never(anyhow::anyhow!("etcd ended")))
        });
        assert_eq!(format!("{:#}", failed.await.unwrap_err()), "waiting for etcd: etcd ended");
    }
}

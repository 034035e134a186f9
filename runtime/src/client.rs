//! A client that waits for the API server instead of crash-looping.

use std::{error, iter, time::Duration};

use kube::{Client, Config, config::InferConfigError};

/// Between two attempts to reach the API server at start.
const RETRY: Duration = Duration::from_secs(2);

/// Why there can be no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither a kubeconfig nor a service account: waiting does not help.
    #[error("find the API server")]
    Config(#[from] InferConfigError),
    /// The configuration that was found is no client's.
    #[error("make a client")]
    Client(#[from] kube::Error),
}

/// A client of the API server that `KUBECONFIG`, `~/.kube/config` or the pod's service account names, once that
/// server has answered. Waits as long as it takes: to exit would only make the kubelet wait in our place, longer
/// each time.
pub async fn connect() -> Result<Client, ConnectError> {
    let client = Client::try_from(Config::infer().await?)?;
    loop {
        match client.apiserver_version().await {
            Ok(version) => {
                tracing::info!(version = %version.git_version, "API server answers");
                return Ok(client);
            }
            Err(error) => tracing::warn!(error = chain(&error), "API server does not answer yet"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// An error with all its sources, in one line.
#[must_use]
pub fn chain(error: &(dyn error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    for source in iter::successors(Some(error), |e| e.source()) {
        let part = source.to_string();
        // kube repeats the source in its own message.
        if !parts.last().is_some_and(|last| last.ends_with(&part)) {
            parts.push(part);
        }
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("write node n1")]
    struct Outer(#[source] std::fmt::Error);

    #[test]
    fn an_error_is_told_with_its_sources() {
        let told = chain(&Outer(std::fmt::Error));
        assert!(told.starts_with("write node n1: an error"), "{told}");
    }
}

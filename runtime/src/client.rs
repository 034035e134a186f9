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
            // It answers. What we may do is for whoever asks for it to find out.
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => {
                tracing::info!(code = status.code, "API server answers");
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
        // In the server's own words: kube adds all fields of the status.
        let kube = source.downcast_ref().or_else(|| source.downcast_ref::<Box<kube::Error>>().map(|b| &**b));
        if let Some(kube::Error::Api(status)) = kube {
            parts.push(format!("{} ({})", status.message, status.code));
            break;
        }
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
    use kube::core::Status;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("write node n1")]
    struct Outer(#[source] std::fmt::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("patch Node n1")]
    struct Refused(#[source] Box<kube::Error>);

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_server() {
        let mut status = Status::failure("nodes \"n1\" is forbidden", "Forbidden");
        status.code = 403;
        let told = chain(&Refused(Box::new(kube::Error::Api(status.boxed()))));
        assert_eq!(told, "patch Node n1: nodes \"n1\" is forbidden (403)");
    }

    #[test]
    fn an_error_is_told_with_its_sources() {
        let told = chain(&Outer(std::fmt::Error));
        assert!(told.starts_with("write node n1: an error"), "{told}");
    }
}

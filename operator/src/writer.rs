//! The one way to the API server for everything that changes something: asks the lease first, counts afterwards.

use std::{future::Future, sync::Arc};

use bifold_crds::keys::OPERATOR_FIELD_MANAGER;
use bifold_runtime::lease::Fence;
use kube::{
    Client,
    api::{PatchParams, PostParams},
    core::Status,
};

use crate::metrics::Metrics;

/// A client that writes only while this process leads.
#[derive(Clone)]
pub struct Writer {
    pub client: Client,
    fence: Fence,
    metrics: Arc<Metrics>,
}

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another replica may lead by now.
    #[error("not written: this replica does not lead any more")]
    NotLeading,
    /// The API server refused, or did not answer.
    #[error("{verb} {kind} {name}")]
    Refused { verb: &'static str, kind: &'static str, name: String, source: Box<kube::Error> },
}

impl Writer {
    pub fn new(client: Client, fence: Fence, metrics: Arc<Metrics>) -> Self {
        Self { client, fence, metrics }
    }

    /// Awaits `request`, which must be a lazy future of kube: nothing is sent where the lease is not ours.
    pub async fn write<T>(
        &self,
        verb: &'static str,
        kind: &'static str,
        name: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, WriteError> {
        if !self.fence.holds() {
            return Err(WriteError::NotLeading);
        }
        let answer = request.await;
        self.metrics.wrote(verb, kind, answer.is_ok());
        answer.map_err(|source| WriteError::refused(verb, kind, name, source))
    }

    /// A read on the way to a write.
    pub async fn read<T>(
        &self,
        kind: &'static str,
        name: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, WriteError> {
        request.await.map_err(|source| WriteError::refused("get", kind, name, source))
    }
}

impl WriteError {
    fn refused(verb: &'static str, kind: &'static str, name: &str, source: kube::Error) -> Self {
        Self::Refused { verb, kind, name: name.to_owned(), source: Box::new(source) }
    }

    /// What the API server answered, if it did.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { source, .. } => match &**source {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            Self::NotLeading => None,
        }
    }

    /// Somebody wrote the object since we read it.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(Status::is_conflict)
    }

    /// The object is gone.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(Status::is_not_found)
    }
}

/// Owns exactly the fields in the patch; what another manager holds is refused.
pub fn apply() -> PatchParams {
    PatchParams::apply(OPERATOR_FIELD_MANAGER)
}

/// A plain patch in our name.
pub fn patch() -> PatchParams {
    PatchParams { field_manager: Some(OPERATOR_FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// A creation or replacement in our name.
pub fn post() -> PostParams {
    PostParams { field_manager: Some(OPERATOR_FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

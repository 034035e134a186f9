//! What is told on objects. One recorder for the process: its memory of what was told lives in it.

use bifold_crds::keys::OPERATOR_FIELD_MANAGER;
use bifold_runtime::client::chain;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, Recorder, Reporter},
};

pub fn recorder(client: Client, instance: String) -> Recorder {
    let reporter = Reporter { controller: OPERATOR_FIELD_MANAGER.to_owned(), instance: Some(instance) };
    Recorder::new(client, reporter)
}

/// Best effort, and after whatever it tells of has been written.
pub async fn publish(recorder: &Recorder, event: &Event, about: &ObjectReference) {
    if let Err(error) = recorder.publish(event, about).await {
        tracing::warn!(reason = event.reason, error = chain(&error), "event not published");
    }
}

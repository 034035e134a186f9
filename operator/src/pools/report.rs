//! Last step: the status, once, at the end of every pass, and only if it differs; then the events.

mod status;

use bifold_crds::{WindowsNodePool, WindowsNodePoolStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Api, Resource as _, ResourceExt as _,
    api::Patch,
    runtime::events::{Event, EventType, Recorder},
};
use serde_json::json;

pub use self::status::status;
use crate::{
    events::publish,
    writer::{WriteError, Writer, apply},
};

/// Writes `status` where it differs from what the pool shows.
pub async fn write(
    writer: &Writer,
    pool: &WindowsNodePool,
    status: &WindowsNodePoolStatus,
) -> Result<(), WriteError> {
    // A status write wakes this very controller; so does a heartbeat of nothing at all.
    if pool.status.as_ref() == Some(status) {
        return Ok(());
    }
    let name = pool.name_any();
    let body = json!({
        "apiVersion": WindowsNodePool::api_version(&()),
        "kind": WindowsNodePool::kind(&()),
        "status": status,
    });
    let api = Api::<WindowsNodePool>::all(writer.client.clone());
    // By force: the status has one writer, and that is this operator.
    let (params, body) = (apply().force(), Patch::Apply(body));
    match writer
        .write("apply", "WindowsNodePool/status", &name, api.patch_status(&name, &params, &body))
        .await
    {
        // Deleted meanwhile: nobody is left to tell.
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Says on the pool what has changed in its conditions. Best effort.
pub async fn events(recorder: &Recorder, pool: &WindowsNodePool, status: &WindowsNodePoolStatus) {
    let before = pool.status.as_ref().map(|s| s.conditions.as_slice()).unwrap_or_default();
    for event in told(before, &status.conditions) {
        publish(recorder, &event, &pool.object_ref(&())).await;
    }
}

/// One event for each condition that changed. The recorder keys events by reason, so each reason tells one thing.
fn told(before: &[Condition], after: &[Condition]) -> Vec<Event> {
    let known = |c: &&Condition| {
        before.iter().any(|b| b.type_ == c.type_ && b.status == c.status && b.reason == c.reason)
    };
    after
        .iter()
        .filter(|c| !known(c))
        // The first pass over a pool that asks for little has nothing to tell but that it is ready.
        .filter(|c| !(before.is_empty() && is_quiet(c)))
        .map(|c| Event {
            type_: if needs_somebody(c) { EventType::Warning } else { EventType::Normal },
            reason: c.reason.clone(),
            note: Some(c.message.clone()),
            action: "Reconcile".to_owned(),
            secondary: None,
        })
        .collect()
}

fn is_quiet(condition: &Condition) -> bool {
    use bifold_crds::conditions::reason::{NO_CONFLICT, NONE_REQUESTED, NOT_REQUIRED};
    [NO_CONFLICT, NOT_REQUIRED, NONE_REQUESTED].contains(&condition.reason.as_str())
}

fn needs_somebody(condition: &Condition) -> bool {
    use bifold_crds::conditions::reason::{
        API_ERROR, CLASS_HELD, CLASS_NOT_OURS, CLASS_WRITE_FAILED, FIELD_HELD, NEEDS_ATTENTION,
        NODES_CLAIMED_TWICE, OTHER_BUILD, WRITES_PENDING,
    };
    let reasons = [
        API_ERROR,
        CLASS_HELD,
        CLASS_NOT_OURS,
        CLASS_WRITE_FAILED,
        FIELD_HELD,
        NEEDS_ATTENTION,
        NODES_CLAIMED_TWICE,
        OTHER_BUILD,
        WRITES_PENDING,
    ];
    reasons.contains(&condition.reason.as_str())
}

#[cfg(test)]
mod tests {
    use bifold_crds::conditions::{Observation, kind, reason};
    use jiff::Timestamp;

    use super::*;

    fn condition(kind: &'static str, holds: bool, reason: &'static str, message: &str) -> Condition {
        let seen = Observation { kind, holds: Some(holds), reason, message: message.to_owned() };
        seen.at(Some(1), Timestamp::UNIX_EPOCH)
    }

    fn reasons(before: &[Condition], after: &[Condition]) -> Vec<(String, bool)> {
        let events = told(before, after).into_iter();
        events.map(|e| (e.reason, matches!(e.type_, EventType::Warning))).collect()
    }

    #[test]
    fn an_event_tells_each_change_once_and_warns_where_somebody_is_needed() {
        let ready = condition(kind::READY, true, reason::AS_SPECIFIED, "1 node");
        let quiet = condition(kind::CONFLICTED, false, reason::NO_CONFLICT, "");
        let held = condition(kind::CONFLICTED, true, reason::FIELD_HELD, "label a=b on node n");
        let first = reasons(&[], &[ready.clone(), quiet.clone()]);
        assert_eq!(first, [(reason::AS_SPECIFIED.to_owned(), false)]);
        let more = condition(kind::READY, true, reason::AS_SPECIFIED, "2 nodes");
        assert_eq!(reasons(&[ready.clone(), quiet.clone()], &[more, quiet.clone()]), []);
        let (quiet, held) = ([quiet], [held]);
        assert_eq!(reasons(&quiet, &held), [(reason::FIELD_HELD.to_owned(), true)]);
        assert_eq!(reasons(&held, &quiet), [(reason::NO_CONFLICT.to_owned(), false)]);
    }
}

//! Step "review", first and last: from the bytes of an AdmissionReview to a question, and from a decision to the bytes
//! of the answer.
//!
//! # Guarantees
//! - It answers with the uid of the request whenever there is one to be read; nothing here panics.
//! - The pod that it decides about is read from the document as received, and the patch is made for that document.
//! - Neither the answer nor what is reported beside it holds values of environment variables or contents of Secrets.

mod answer;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use answer::{Answer, Outcome};

use crate::{
    cluster::Cluster,
    decide::{Decision, decide},
    json::{Object, Text},
    patch::patch,
    pod::{Metadata, PodView, text},
    question::{Request, Subject},
    workload::Kind,
};

/// The version of AdmissionReview that is spoken.
const API_VERSION: &str = "admission.k8s.io/v1";
/// The kind of the reviews.
const KIND: &str = "AdmissionReview";

/// Why bytes are no review. The HTTP status is 400 for all of them.
#[derive(Debug, thiserror::Error)]
pub enum NoReview {
    /// No JSON object at all.
    #[error("the body is no AdmissionReview in JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// JSON of something else.
    #[error("the body is no AdmissionReview of admission.k8s.io/v1")]
    OtherKind,
    /// A review without a request, or a request without a uid.
    #[error("the AdmissionReview has no request with a uid")]
    NoRequest,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Incoming<'a> {
    api_version: Option<Text<'a>>,
    kind: Option<Text<'a>>,
    request: Option<Object<Question<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Question<'a> {
    uid: Option<Text<'a>>,
    kind: Option<Object<GroupKind<'a>>>,
    sub_resource: Option<Text<'a>>,
    namespace: Option<Text<'a>>,
    operation: Option<Text<'a>>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GroupKind<'a> {
    group: Option<Text<'a>>,
    kind: Option<Text<'a>>,
}

/// Of a review whose other fields are not of their types: what is needed to answer it.
#[derive(Deserialize)]
struct Bare<'a> {
    #[serde(bound(deserialize = "'de: 'a"))]
    request: Object<BareQuestion<'a>>,
}

#[derive(Deserialize)]
struct BareQuestion<'a> {
    #[serde(bound(deserialize = "'de: 'a"))]
    uid: Text<'a>,
}

/// A workload, of which nothing but `metadata` is looked at from here.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Workload<'a> {
    metadata: Option<Object<Metadata<'a>>>,
}

/// Answers a review.
pub fn review(bytes: &[u8], cluster: &Cluster) -> Result<Answer, NoReview> {
    let Object(incoming): Object<Incoming<'_>> = match serde_json::from_slice(bytes) {
        Ok(incoming) => incoming,
        Err(error) => {
            let Object(bare): Object<Bare<'_>> =
                serde_json::from_slice(bytes).map_err(|_| NoReview::Json(error))?;
            return Ok(Answer::unreadable(&bare.request.uid, None));
        }
    };
    if text(&incoming.api_version) != API_VERSION || text(&incoming.kind) != KIND {
        return Err(NoReview::OtherKind);
    }
    let question = incoming.request.ok_or(NoReview::NoRequest)?;
    let uid = question.uid.as_deref().filter(|uid| !uid.is_empty()).ok_or(NoReview::NoRequest)?;

    let kind = question.kind.as_ref().and_then(|k| Kind::find(text(&k.group), text(&k.kind)));
    let asked = kind.and_then(|kind| Some((kind, subject(kind, &question)?, question.object?)));
    let Some((kind, subject, object)) = asked else {
        return Ok(Answer::nothing_to_say(uid, kind));
    };
    let Ok(pod) = pod(kind, object) else {
        return Ok(Answer::unreadable(uid, Some(kind)));
    };
    let Some(pod) = pod else { return Ok(Answer::nothing_to_say(uid, Some(kind))) };
    let request = Request { namespace: text(&question.namespace), subject, root: kind.root };
    let decision = decide(&pod, &request, cluster, cluster.policy_of(request.namespace));
    let patch = patch_of(&pod, kind, subject, &decision);
    Ok(Answer::new(uid, kind, subject, &decision, patch, cluster.freshness()))
}

/// What the decision is about; `None` where there is nothing to decide: deletions, updates of a pod's status …
fn subject(kind: &Kind, question: &Question<'_>) -> Option<Subject> {
    match (kind.subject, text(&question.operation), text(&question.sub_resource)) {
        (Subject::Pod, "CREATE", "") => Some(Subject::Pod),
        (Subject::Pod, "UPDATE", "ephemeralcontainers") => Some(Subject::EphemeralContainers),
        (Subject::Pod, ..) => None,
        (subject, "CREATE" | "UPDATE", "") => Some(subject),
        _ => None,
    }
}

/// The pod in an object of that kind. `None` for a workload that is being deleted: it makes no more pods.
fn pod<'a>(kind: &Kind, object: &'a RawValue) -> serde_json::Result<Option<PodView<'a>>> {
    if kind.template.is_empty() {
        return serde_json::from_str(object.get()).map(|Object(pod)| Some(pod));
    }
    let Object(workload): Object<Workload<'a>> = serde_json::from_str(object.get())?;
    if workload.metadata.as_ref().is_some_and(|m| m.deletion_timestamp.is_some()) {
        return Ok(None);
    }
    let mut at = object;
    for field in kind.template {
        match crate::json::field(at, field)? {
            Some(inner) => at = inner,
            None => return Ok(None),
        }
    }
    let Object(pod): Object<PodView<'a>> = serde_json::from_str(at.get())?;
    Ok(Some(PodView { workload: workload.metadata.map(|Object(m)| m), ..pod }))
}

fn patch_of(
    pod: &PodView<'_>,
    kind: &Kind,
    subject: Subject,
    decision: &Decision,
) -> Option<json_patch::Patch> {
    let changes = matches!(subject, Subject::Pod | Subject::DaemonSet) && !decision.denied();
    let patch = changes.then(|| patch(pod, kind, &decision.changes))?;
    (!patch.is_empty()).then_some(patch)
}

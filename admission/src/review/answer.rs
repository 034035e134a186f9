//! The answer to a review, with what metrics need to know of it.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bifold_crds::workload_policy::RuleAction;
use json_patch::Patch;
use serde::Serialize;

use super::{API_VERSION, KIND};
use crate::{
    cluster::Freshness,
    decide::Decision,
    evidence::{Evidence, Verdict},
    placement::Change,
    question::Subject,
    rules::Finding,
    shown::cut,
    workload::Kind,
};

/// Kubernetes asks that a warning be no longer than this.
const LONGEST_WARNING: usize = 256;
/// The API server drops what is beyond 4,096 characters of warnings in all.
const MOST_WARNINGS: usize = 12;
/// How many refusals are told at once.
const MOST_REFUSALS: usize = 8;
/// An audit annotation is written for every request; it must not be a place to store things.
const LONGEST_ANNOTATION: usize = 512;
/// How many pieces of evidence an audit annotation names.
const MOST_EVIDENCE: usize = 4;

/// The answer to a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The AdmissionReview to send.
    pub body: Vec<u8>,
    /// The kind of the object, such as `Pod`; `other` for those that are not looked at.
    pub kind: &'static str,
    /// What became of the request.
    pub outcome: Outcome,
    /// The rules that fired, with what followed.
    pub findings: Vec<(&'static str, RuleAction)>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Admitted as it is.
    Allowed,
    /// Admitted with changes.
    Patched,
    /// Refused.
    Denied,
    /// Admitted as it is, because the object could not be read.
    Unreadable,
}

impl Outcome {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Patched => "patched",
            Self::Denied => "denied",
            Self::Unreadable => "unreadable",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outgoing<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
struct Status {
    code: u16,
    reason: &'static str,
    message: String,
}

impl Answer {
    pub(super) fn new(
        uid: &str,
        kind: &Kind,
        subject: Subject,
        decision: &Decision,
        patch: Option<Patch>,
        freshness: Freshness,
    ) -> Self {
        let findings = decision.findings.iter().map(|f| (f.rule, f.action)).collect();
        let mut response = Response {
            uid,
            audit_annotations: annotations(decision, patch.is_some()),
            ..Response::default()
        };
        let outcome = if decision.denied() {
            let status = Status { code: 403, reason: "Forbidden", message: refusal(&decision.findings) };
            response.status = Some(status);
            Outcome::Denied
        } else {
            response.allowed = true;
            response.warnings = warnings(decision, subject, freshness);
            // Vectors of strings and numbers always serialize.
            match patch.and_then(|patch| serde_json::to_vec(&patch).ok()) {
                Some(bytes) => {
                    (response.patch_type, response.patch) = (Some("JSONPatch"), Some(STANDARD.encode(bytes)));
                    Outcome::Patched
                }
                None => Outcome::Allowed,
            }
        };
        Self { body: body(response), kind: kind.kind, outcome, findings }
    }

    pub(super) fn nothing_to_say(uid: &str, kind: Option<&Kind>) -> Self {
        let response = Response { uid, allowed: true, ..Response::default() };
        Self {
            body: body(response),
            kind: kind.map_or("other", |k| k.kind),
            outcome: Outcome::Allowed,
            findings: Vec::new(),
        }
    }

    /// An object that is none of its kind. The API server only asks about objects that it could read itself, so this is
    /// a question that somebody else made; refusing would help nobody.
    pub(super) fn unreadable(uid: &str, kind: Option<&Kind>) -> Self {
        let warnings = vec!["bifold could not read the object and has not looked at it".to_owned()];
        let response = Response { uid, allowed: true, warnings, ..Response::default() };
        Self { outcome: Outcome::Unreadable, body: body(response), ..Self::nothing_to_say(uid, kind) }
    }
}

fn body(response: Response<'_>) -> Vec<u8> {
    let outgoing = Outgoing { api_version: API_VERSION, kind: KIND, response };
    serde_json::to_vec(&outgoing).unwrap_or_default()
}

/// The sentences that a person reads after `denied the request:`.
fn refusal(findings: &[Finding]) -> String {
    let denials: Vec<&Finding> = findings.iter().filter(|f| f.action == RuleAction::Deny).collect();
    let mut sentences: Vec<String> = denials.iter().take(MOST_REFUSALS).map(|f| sentence(f)).collect();
    if denials.len() > MOST_REFUSALS {
        sentences.push(format!("and {} more", denials.len() - MOST_REFUSALS));
    }
    sentences.join("\n")
}

fn sentence(finding: &Finding) -> String {
    let Finding { rule, path, message, remedy, .. } = finding;
    format!("{rule}: {path}: {message}; {remedy}")
}

fn warnings(decision: &Decision, subject: Subject, freshness: Freshness) -> Vec<String> {
    let found = decision
        .findings
        .iter()
        .filter(|f| matches!(f.action, RuleAction::Warn | RuleAction::Fix))
        .map(|f| format!("bifold: {}", sentence(f)));
    // The pods of other workloads get theirs one by one.
    let notes =
        decision.notes.iter().filter(|_| subject != Subject::Workload).map(|n| format!("bifold: {n}"));
    let unsure = match (decision.os, freshness) {
        (Verdict::Windows, Freshness::Cold) => Some(
            "bifold: nothing is known of the cluster's nodes yet, so only what the pod says was looked at",
        ),
        (Verdict::Windows, Freshness::Stale) => {
            Some("bifold: the API server has not been heard of for a while, so nodes may have changed")
        }
        _ => None,
    };
    let all = found.chain(notes).chain(unsure.map(str::to_owned));
    all.take(MOST_WARNINGS).map(|warning| cut(warning, LONGEST_WARNING)).collect()
}

fn annotations(decision: &Decision, patched: bool) -> BTreeMap<&'static str, String> {
    let mut annotations = BTreeMap::from([("os", decision.os.as_str().to_owned())]);
    let mut put = |key, words: Vec<String>| {
        if !words.is_empty() {
            annotations.insert(key, cut(words.join(", "), LONGEST_ANNOTATION));
        }
    };
    put("evidence", decision.evidence.iter().take(MOST_EVIDENCE).map(Evidence::summary).collect());
    let mut fields: Vec<&str> = decision.changes.iter().filter(|_| patched).map(Change::field).collect();
    fields.dedup();
    put("placement", fields.into_iter().map(str::to_owned).collect());
    let mut rules: Vec<String> =
        decision.findings.iter().map(|f| format!("{}={:?}", f.rule, f.action)).collect();
    rules.dedup();
    put("rules", rules);
    if let Some(policy) = &decision.policy {
        annotations.insert("policy", policy.clone());
    }
    annotations
}

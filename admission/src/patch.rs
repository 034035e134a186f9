//! Step "patch": changes as a JSON Patch on the document as it was received.
//!
//! # Guarantees
//! - The patch applies: a parent is added whole where it is absent or `null`, and `/-` is only used on a list that is
//!   there; only what is there is removed. (A patch that does not apply fails the pod, whatever the webhook's failure policy.)
//! - There is no `test`: it could only turn a harmless race into a failure.
//! - What is not mentioned survives, known to us or not.

mod affinity;

use std::borrow::Cow;

use bifold_crds::keys;
use json_patch::{
    AddOperation, Patch, PatchOperation, RemoveOperation,
    jsonptr::{PointerBuf, Token},
};
use serde_json::{Map, Value, json};

use crate::{
    cluster::Taint,
    json,
    placed::{Placed, remembered},
    placement::{Change, Part},
    pod::{Metadata, PodView, Spec},
    workload::Kind,
};

/// The patch that makes `changes` in a document of that kind, in which `pod` was found.
#[must_use]
pub fn patch(pod: &PodView<'_>, kind: &Kind, changes: &[Change]) -> Patch {
    let Some(spec) = &pod.spec else { return Patch::default() };
    let root = kind.spec_path();
    let ours = Placed::standing_in(pod);
    let mut steps = Steps { root: &root, steps: Vec::new() };
    steps.node_selector(spec, changes);
    steps.tolerations(spec, changes);
    for change in changes {
        match change {
            Change::BuildAffinity { builds } => affinity::ask(&mut steps, spec, &ours, builds),
            Change::OsName { os } => match &spec.os {
                Some(_) => steps.add(&["os", "name"], json!(os.as_str())),
                None => steps.add(&["os"], json!({ "name": os.as_str() })),
            },
            Change::RuntimeClass { name } => steps.add(&["runtimeClassName"], json!(name)),
            Change::Removal(Part::NodeSelector) => {
                let alone =
                    spec.node_selector.iter().flat_map(json::Map::iter).all(|(k, _)| k == keys::OS_LABEL);
                steps.remove(&["nodeSelector", keys::OS_LABEL], if alone { 1 } else { 2 });
            }
            Change::Removal(Part::OsName) => {
                let alone = spec.os.as_ref().is_none_or(|os| os.others.is_empty());
                steps.remove(&["os", "name"], if alone { 1 } else { 2 });
            }
            Change::Removal(Part::BuildAffinity) => affinity::take_back(&mut steps, spec, &ours),
            Change::Annotation(placed) => steps.annotation(pod, placed),
            Change::NodeSelector { .. } | Change::Toleration(_) => {} // above, all at once
        }
    }
    Patch(steps.steps)
}

struct Steps<'r> {
    root: &'r [&'r str],
    steps: Vec<PatchOperation>,
}

impl Steps<'_> {
    fn at<'t>(&self, path: &[impl Into<Token<'t>> + Copy]) -> PointerBuf {
        PointerBuf::from_tokens(
            self.root.iter().map(|t| Token::from(*t)).chain(path.iter().map(|t| (*t).into())),
        )
    }

    /// Adds to an object or, with `-`, to a list. A value that an object has is replaced.
    fn add<'t>(&mut self, path: &[impl Into<Token<'t>> + Copy], value: Value) {
        let path = self.at(path);
        self.steps.push(PatchOperation::Add(AddOperation { path, value }));
    }

    /// Removes what the first `depth` tokens of the path lead to: the parent where nothing else is in it.
    fn remove<'t>(&mut self, path: &[impl Into<Token<'t>> + Copy], depth: usize) {
        let path = self.at(path.get(..depth).unwrap_or(path));
        self.steps.push(PatchOperation::Remove(RemoveOperation { path }));
    }

    /// The annotation of the workload, whose template is deeper in the document.
    fn annotation(&mut self, pod: &PodView<'_>, placed: &Placed) {
        let path = |depth| {
            let whole = ["metadata", "annotations", keys::PLACED_ANNOTATION];
            PointerBuf::from_tokens(whole.into_iter().take(depth))
        };
        let add = |depth, value| PatchOperation::Add(AddOperation { path: path(depth), value });
        let step = match (placed.annotation(), &pod.workload) {
            (Some(text), Some(Metadata { annotations: Some(_), .. })) => add(3, json!(text)),
            (Some(text), Some(_)) => add(2, json!({ keys::PLACED_ANNOTATION: text })),
            (Some(text), None) => add(1, json!({ "annotations": { keys::PLACED_ANNOTATION: text } })),
            (None, _) if remembered(pod).is_some() => {
                PatchOperation::Remove(RemoveOperation { path: path(3) })
            }
            (None, _) => return,
        };
        self.steps.push(step);
    }

    fn node_selector(&mut self, spec: &Spec<'_>, changes: &[Change]) {
        let mut pairs = changes.iter().filter_map(|change| match change {
            Change::NodeSelector { key, value } => Some((&**key, json!(value))),
            _ => None,
        });
        if spec.node_selector.is_some() {
            for (key, value) in pairs {
                self.add(&["nodeSelector", key], value);
            }
        } else if let Some((key, value)) = pairs.next() {
            let mut selector = Map::from_iter([(key.to_owned(), value)]);
            selector.extend(pairs.map(|(key, value)| (key.to_owned(), value)));
            self.add(&["nodeSelector"], Value::Object(selector));
        }
    }

    fn tolerations(&mut self, spec: &Spec<'_>, changes: &[Change]) {
        let tolerations = changes.iter().filter_map(|change| match change {
            Change::Toleration(taint) => Some(toleration(taint)),
            _ => None,
        });
        if spec.tolerations.is_some() {
            tolerations.for_each(|t| self.add(&["tolerations", "-"], t));
        } else {
            let all: Vec<Value> = tolerations.collect();
            if !all.is_empty() {
                self.add(&["tolerations"], Value::Array(all));
            }
        }
    }
}

/// What tolerates exactly this taint.
fn toleration(taint: &Taint) -> Value {
    let mut toleration = json!({ "key": taint.key, "effect": taint.effect });
    let (operator, value) = if taint.value.is_empty() {
        ("Exists", None)
    } else {
        ("Equal", Some(Cow::Borrowed(taint.value.as_str())))
    };
    toleration["operator"] = json!(operator);
    if let Some(value) = value {
        toleration["value"] = json!(value);
    }
    toleration
}

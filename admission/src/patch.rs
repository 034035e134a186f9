//! Step "patch": changes as a JSON Patch on the document as it was received.
//!
//! # Guarantees
//! - The patch applies: a parent is added whole where it is absent or `null`, and `/-` is only used on a list that is
//!   there. (A patch that does not apply fails the pod, whatever the webhook's failure policy.)
//! - There is no `test`: it could only turn a harmless race into a failure.
//! - What is not mentioned survives, known to us or not.

use std::borrow::Cow;

use bifold_crds::{WindowsBuild, keys};
use json_patch::{
    AddOperation, Patch, PatchOperation,
    jsonptr::{PointerBuf, Token},
};
use serde_json::{Map, Value, json};

use crate::{
    cluster::Taint,
    placement::Change,
    pod::{Spec, Term},
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The patch that makes `changes` in a document in which `spec` is at `root` (such as `["spec", "template", "spec"]`).
#[must_use]
pub fn patch(spec: &Spec<'_>, root: &[&str], changes: &[Change]) -> Patch {
    let mut steps = Steps { root, steps: Vec::new() };
    steps.node_selector(spec, changes);
    steps.tolerations(spec, changes);
    for change in changes {
        match change {
            Change::BuildAffinity { builds } => steps.affinity(spec, builds),
            Change::OsName { os } => match &spec.os {
                Some(_) => steps.add(&["os", "name"], json!(os.as_str())),
                None => steps.add(&["os"], json!({ "name": os.as_str() })),
            },
            Change::RuntimeClass { name } => steps.add(&["runtimeClassName"], json!(name)),
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
    fn add<'t>(&mut self, path: &[impl Into<Token<'t>> + Copy], value: Value) {
        let tokens = self.root.iter().map(|t| Token::from(*t)).chain(path.iter().map(|t| (*t).into()));
        self.steps.push(PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(tokens), value }));
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

    /// Terms are alternatives, so the requirement goes into each of them.
    fn affinity(&mut self, spec: &Spec<'_>, builds: &[WindowsBuild]) {
        let expression = json!({ "key": keys::WINDOWS_BUILD_LABEL, "operator": "In", "values": builds });
        let term = json!({ "matchExpressions": [expression] });
        let required = json!({ "nodeSelectorTerms": [term] });
        let Some(affinity) = &spec.affinity else {
            return self.add(&["affinity"], json!({ "nodeAffinity": { REQUIRED: required } }));
        };
        let Some(node_affinity) = &affinity.node_affinity else {
            return self.add(&["affinity", "nodeAffinity"], json!({ REQUIRED: required }));
        };
        let path = ["affinity", "nodeAffinity", REQUIRED];
        let Some(selector) = &node_affinity.required else {
            return self.add(&path, required);
        };
        // A list without terms admits no node, and so does a term without requirements: neither is given any.
        for (index, known) in selector.node_selector_terms.iter().flat_map(|t| t.iter()).enumerate() {
            if is_empty(known) {
                continue;
            }
            let index = index.to_string();
            let at = [path[0], path[1], path[2], "nodeSelectorTerms", &index, "matchExpressions", "-"];
            match &known.match_expressions {
                Some(_) => self.add(&at, expression.clone()),
                None => self.add(&at[..6], json!([expression])),
            }
        }
    }
}

fn is_empty(term: &Term<'_>) -> bool {
    term.match_expressions.as_ref().is_none_or(|e| e.is_empty())
        && term.match_fields.as_ref().is_none_or(|f| f.is_empty())
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

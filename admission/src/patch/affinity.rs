//! Our requirement on builds in the required node affinity. Terms are alternatives, so it goes into each of them.

use bifold_crds::{WindowsBuild, keys};
use serde_json::json;

use super::Steps;
use crate::{
    placed::Placed,
    pod::{Requirement, Spec, Term},
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const TERMS: [&str; 4] = ["affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"];

/// Asks for these builds, in place of `ours`.
pub(super) fn ask(steps: &mut Steps<'_>, spec: &Spec<'_>, ours: &Placed, builds: &[WindowsBuild]) {
    let expression = json!({ "key": keys::WINDOWS_BUILD_LABEL, "operator": "In", "values": builds });
    let term = json!({ "matchExpressions": [expression] });
    let required = json!({ "nodeSelectorTerms": [term] });
    let Some(affinity) = &spec.affinity else {
        return steps.add(&TERMS[..1], json!({ "nodeAffinity": { REQUIRED: required } }));
    };
    let Some(node_affinity) = &affinity.node_affinity else {
        return steps.add(&TERMS[..2], json!({ REQUIRED: required }));
    };
    if node_affinity.required.is_none() {
        return steps.add(&TERMS[..3], required);
    }
    // A list without terms admits no node, and so does a term without requirements: neither is given any.
    for (index, term) in spec.terms().iter().enumerate().filter(|(_, term)| !term.is_empty()) {
        let index = index.to_string();
        let mut there = false;
        for place in places(term, ours) {
            steps.add(&expression_at(&index, &place.to_string(), "values"), json!(builds));
            there = true;
        }
        match &term.match_expressions {
            _ if there => {}
            Some(_) => steps.add(&expression_at(&index, "-", "")[..7], expression.clone()),
            None => steps.add(&expression_at(&index, "", "")[..6], json!([expression])),
        }
    }
}

/// Removes `ours`, with every parent that has nothing else in it: a term without requirements would admit no node.
pub(super) fn take_back(steps: &mut Steps<'_>, spec: &Spec<'_>, ours: &Placed) {
    let Some(affinity) = &spec.affinity else { return };
    let Some(node_affinity) = &affinity.node_affinity else { return };
    let terms = spec.terms();
    if terms.iter().all(|term| is_only_ours(term, ours)) {
        let depth = match (affinity.others.is_empty(), node_affinity.others.is_empty()) {
            (true, true) => 1,
            (false, true) => 2,
            (_, false) => 3,
        };
        return steps.remove(&TERMS, depth);
    }
    // From the end, so that what is still to be removed keeps its place.
    for (index, term) in terms.iter().enumerate().rev() {
        let index = index.to_string();
        if is_only_ours(term, ours) {
            steps.remove(&expression_at(&index, "", ""), 5);
            continue;
        }
        let places = places(term, ours);
        if !places.is_empty() && places.len() == expressions(term).len() {
            steps.remove(&expression_at(&index, "", ""), 6);
            continue;
        }
        for place in places.into_iter().rev() {
            steps.remove(&expression_at(&index, &place.to_string(), ""), 7);
        }
    }
}

fn expression_at<'t>(term: &'t str, expression: &'t str, field: &'t str) -> [&'t str; 8] {
    let [affinity, node_affinity, required, terms] = TERMS;
    [affinity, node_affinity, required, terms, term, "matchExpressions", expression, field]
}

fn expressions<'t, 'a>(term: &'t Term<'a>) -> &'t [Requirement<'a>] {
    term.match_expressions.as_deref().unwrap_or_default()
}

fn places(term: &Term<'_>, ours: &Placed) -> Vec<usize> {
    let all = expressions(term).iter().enumerate();
    all.filter(|(_, requirement)| ours.wrote(requirement)).map(|(place, _)| place).collect()
}

fn is_only_ours(term: &Term<'_>, ours: &Placed) -> bool {
    let fields = term.match_fields.as_deref().unwrap_or_default();
    fields.is_empty() && !term.is_empty() && expressions(term).iter().all(|r| ours.wrote(r))
}

//! Step "facts", second part: what Bifold wrote into a template before.
//!
//! Tools leave alone what they did not write, so it comes back with every update; taken for the author's, it would keep
//! the pods of a new image where the old one ran. An annotation of the workload remembers it. What it names and what
//! still stands in the template as it says is ours, and a decision is made as if it were not there.

use bifold_crds::{WindowsBuild, keys, workload_policy::Os};
use serde::{Deserialize, Serialize};

use crate::{
    applied,
    json::Object,
    pod::{NodeAffinity, PodView, Requirement, Spec, text},
};

/// What was written into a template and could be wrong for another image. (A toleration cannot.)
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placed {
    /// The value of `kubernetes.io/os` in the node selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<Os>,
    /// The builds of a requirement in every term of the required node affinity, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<WindowsBuild>,
    /// `spec.os.name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<Os>,
}

impl Placed {
    /// What stands in a template as its workload remembers it. What somebody has changed since is theirs.
    #[must_use]
    pub fn standing_in(pod: &PodView<'_>) -> Self {
        let (Some(spec), Some(remembered)) = (&pod.spec, remembered(pod)) else { return Self::default() };
        // Whatever is no list of ours was written by somebody else; it names nothing, and is replaced.
        let Ok(Object(mut placed)) = serde_json::from_str::<Object<Self>>(remembered) else {
            return Self::default();
        };
        placed.builds.sort_unstable();
        placed.builds.dedup();
        placed.standing(spec).not_said_by_author(pod)
    }

    fn standing(mut self, spec: &Spec<'_>) -> Self {
        let selected = spec.node_selector.as_ref().and_then(|s| s.get(keys::OS_LABEL));
        self.node_selector = self.node_selector.filter(|os| selected == Some(os.as_str()));
        let named = spec.os.as_ref().map(|os| text(&os.name));
        self.os = self.os.filter(|os| named == Some(os.as_str()));
        let expressions = || spec.terms().iter().filter_map(|t| t.match_expressions.as_deref()).flatten();
        if !expressions().any(|r| self.wrote(r)) {
            self.builds.clear();
        }
        self
    }

    /// Without what the author has come to say as well. Affinity is one field to server-side apply, so that does not
    /// tell whose a requirement in it is.
    fn not_said_by_author(mut self, pod: &PodView<'_>) -> Self {
        let Some(metadata) = &pod.workload else { return self };
        let applied = metadata.annotations.as_ref().and_then(|a| a.get(keys::LAST_APPLIED_ANNOTATION));
        let said_text = applied.and_then(applied::template).and_then(|t| t.spec);
        let in_text = said_text.map(|Object(spec)| self.clone().standing(&spec)).unwrap_or_default();
        let managed = metadata.managed_fields.iter().flat_map(|m| m.iter());
        let owned: Vec<_> =
            managed.filter(|m| text(&m.operation) == "Apply").filter_map(|m| m.fields_v1.as_ref()).collect();
        let said =
            |path: [&str; 2]| owned.iter().any(|f| f.has(&["spec", "template", "spec", path[0], path[1]]));
        if in_text.node_selector.is_some() || said(["nodeSelector", keys::OS_LABEL]) {
            self.node_selector = None;
        }
        if in_text.os.is_some() || said(["os", "name"]) {
            self.os = None;
        }
        if !in_text.builds.is_empty() {
            self.builds.clear();
        }
        self
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The text that remembers it; none for nothing.
    #[must_use]
    pub fn annotation(&self) -> Option<String> {
        // A struct of strings always serializes.
        if self.is_empty() { None } else { serde_json::to_string(self).ok() }
    }

    /// This, and of what it lacks what `other` has.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            node_selector: self.node_selector.or(other.node_selector),
            builds: if self.builds.is_empty() { other.builds.clone() } else { self.builds },
            os: self.os.or(other.os),
        }
    }

    /// Whether a requirement on builds is ours.
    #[must_use]
    pub fn wrote(&self, requirement: &Requirement<'_>) -> bool {
        let values = requirement.values.as_deref().unwrap_or_default();
        text(&requirement.key) == keys::WINDOWS_BUILD_LABEL
            && text(&requirement.operator) == "In"
            && !values.is_empty()
            && values.len() == self.builds.len()
            && self.builds.iter().all(|build| values.iter().any(|v| **v == build.to_string()))
    }

    /// The template as its author has it.
    #[must_use]
    pub fn without<'a>(&self, pod: &PodView<'a>) -> PodView<'a> {
        let mut pod = pod.clone();
        if let Some(Object(spec)) = &mut pod.spec {
            self.leave(spec);
        }
        pod
    }

    fn leave(&self, spec: &mut Spec<'_>) {
        if let (Some(_), Some(selector)) = (self.node_selector, &mut spec.node_selector) {
            selector.remove(keys::OS_LABEL);
        }
        if let (Some(_), Some(Object(os))) = (self.os, &mut spec.os) {
            os.name = None;
        }
        let affinity = spec.affinity.as_mut().and_then(|a| a.0.node_affinity.as_mut());
        if let (false, Some(Object(affinity))) = (self.builds.is_empty(), affinity) {
            self.leave_affinity(affinity);
        }
    }

    /// A term that says nothing else was not there before.
    fn leave_affinity(&self, affinity: &mut NodeAffinity<'_>) {
        let terms = affinity.required.as_mut().and_then(|r| r.0.node_selector_terms.as_mut());
        let Some(terms) = terms else { return };
        let before = terms.len();
        terms.retain(|term| {
            let Some(expressions) = &mut term.match_expressions else { return true };
            let before = expressions.len();
            expressions.retain(|r| !self.wrote(r));
            expressions.len() == before || !term.is_empty()
        });
        if terms.is_empty() && before > 0 {
            affinity.required = None;
        }
    }
}

/// The annotation, whatever it says.
pub(crate) fn remembered<'p>(pod: &'p PodView<'_>) -> Option<&'p str> {
    pod.workload.as_ref()?.annotations.as_ref()?.get(keys::PLACED_ANNOTATION)
}

//! The scheduler's rules: which taints a pod takes and which labels it asks of a node.
//!
//! As in Kubernetes `k8s.io/component-helpers/scheduling/corev1` and `k8s.io/api/core/v1` (`ToleratesTaint`).

use std::collections::BTreeMap;

use crate::{
    cluster::{Member, Nodes, RuntimeClass, Shape, Taint},
    json::Map,
    pod::{Requirement, Spec, Term, Toleration, text},
};

const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
const NAME_FIELD: &str = "metadata.name";

/// What a pod asks of nodes: its own words and those of its RuntimeClass, which the API server adds to them.
#[derive(Clone, Copy)]
pub struct Wants<'c> {
    spec: &'c Spec<'c>,
    class: Option<&'c RuntimeClass>,
}

/// The part of a node that labels and fields are compared with.
#[derive(Clone, Copy)]
struct Target<'n> {
    labels: &'n BTreeMap<String, String>,
    /// Name and host name; `None` while only shapes are compared.
    names: Option<(&'n str, &'n str)>,
}

/// Whether `toleration` lets its pod onto a node with `taint`.
#[must_use]
pub fn tolerates(toleration: &Toleration<'_>, taint: &Taint) -> bool {
    let (key, effect, value) = (text(&toleration.key), text(&toleration.effect), text(&toleration.value));
    if (!effect.is_empty() && effect != taint.effect) || (!key.is_empty() && key != taint.key) {
        return false;
    }
    let compare = |holds: fn(i64, i64) -> bool| match (taint.value.parse(), value.parse()) {
        (Ok(taint), Ok(toleration)) => holds(taint, toleration),
        _ => false,
    };
    match text(&toleration.operator) {
        "" | "Equal" => value == taint.value,
        "Exists" => true,
        "Lt" => compare(|taint, toleration| taint < toleration),
        "Gt" => compare(|taint, toleration| taint > toleration),
        _ => false,
    }
}

impl<'c> Wants<'c> {
    /// What the pod of `spec` asks for, where `class` is its RuntimeClass.
    #[must_use]
    pub fn new(spec: &'c Spec<'c>, class: Option<&'c RuntimeClass>) -> Self {
        Self { spec, class }
    }

    /// The value that it asks of a label by a node selector.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&'c str> {
        let own = self.spec.node_selector.as_ref().and_then(|s| s.get(key));
        own.or_else(|| self.class.and_then(|c| c.selector.get(key).map(String::as_str)))
    }

    /// Whether it says anything about that label, by a node selector or in any term of its affinity.
    #[must_use]
    pub fn mentions(&self, key: &str) -> bool {
        self.label(key).is_some() || self.requirements().any(|r| text(&r.key) == key)
    }

    /// Whether it takes a node with `taint`.
    #[must_use]
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations().any(|t| tolerates(t, taint))
    }

    /// Whether it takes every taint that keeps pods off: `operator: Exists` without a key.
    #[must_use]
    pub fn tolerates_everything(&self) -> bool {
        self.tolerations().any(|t| {
            text(&t.operator) == "Exists"
                && text(&t.key).is_empty()
                && matches!(text(&t.effect), "" | "NoSchedule")
        })
    }

    /// Whether a node of that shape stands open: no taint keeps the pod off but those that `except` passes over.
    #[must_use]
    pub fn enters(&self, shape: &Shape, except: impl Fn(&Taint) -> bool) -> bool {
        shape.taints.iter().all(|taint| except(taint) || self.tolerates(taint))
    }

    /// The shapes of the nodes that its selector and its affinity admit, in the order of the shapes.
    #[must_use]
    pub fn admitted<'n>(&self, nodes: &'n Nodes) -> Vec<&'n Shape> {
        if !self.names_nodes() {
            return nodes
                .shapes()
                .filter(|s| self.admits(Target { labels: &s.labels, names: None }))
                .collect();
        }
        let mut shapes: Vec<&Shape> = nodes
            .members()
            .filter(|(name, member)| self.admits_node(name, member))
            .map(|(_, member)| &*member.shape)
            .collect();
        shapes.sort_unstable();
        shapes.dedup();
        shapes
    }

    /// Whether its selector and its affinity admit that node.
    #[must_use]
    pub fn admits_node(&self, name: &str, member: &Member) -> bool {
        self.admits(Target { labels: &member.shape.labels, names: Some((name, member.hostname(name))) })
    }

    fn admits(&self, node: Target<'_>) -> bool {
        let own = self.spec.node_selector.iter().flat_map(Map::iter);
        let class = self.class.into_iter().flat_map(|c| c.selector.iter());
        let mut labels = own.chain(class.map(|(k, v)| (k.as_str(), v.as_str())));
        labels.all(|(key, value)| node.label(key) == Some(value))
            && (!self.has_required_affinity() || self.spec.terms().iter().any(|term| node.satisfies(term)))
    }

    fn has_required_affinity(&self) -> bool {
        self.spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref()?.required.as_ref()).is_some()
    }

    fn names_nodes(&self) -> bool {
        self.mentions(HOSTNAME_LABEL)
            || self.spec.terms().iter().any(|t| t.match_fields.as_ref().is_some_and(|f| !f.is_empty()))
    }

    fn requirements(&self) -> impl Iterator<Item = &'c Requirement<'c>> {
        self.spec.terms().iter().flat_map(|t| t.match_expressions.iter().flat_map(|e| e.iter()))
    }

    fn tolerations(&self) -> impl Iterator<Item = &Toleration<'c>> {
        let own = self.spec.tolerations.iter().flat_map(|t| t.iter());
        own.chain(self.class.into_iter().flat_map(|c| &c.tolerations))
    }
}

impl<'n> Target<'n> {
    fn label(&self, key: &str) -> Option<&'n str> {
        match self.names {
            Some((_, hostname)) if key == HOSTNAME_LABEL => Some(hostname),
            _ => self.labels.get(key).map(String::as_str),
        }
    }

    fn satisfies(&self, term: &Term<'_>) -> bool {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        !(expressions.is_empty() && fields.is_empty())
            && expressions.iter().all(|r| holds(r, self.label(text(&r.key))))
            && fields.iter().all(|r| text(&r.key) == NAME_FIELD && holds(r, self.names.map(|(name, _)| name)))
    }
}

fn holds(requirement: &Requirement<'_>, found: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = || found.is_some_and(|found| values.iter().any(|v| **v == *found));
    let compare = |holds: fn(i64, i64) -> bool| match (found.and_then(|f| f.parse().ok()), values) {
        (Some(found), [wanted]) => wanted.parse().is_ok_and(|wanted| holds(found, wanted)),
        _ => false,
    };
    match text(&requirement.operator) {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compare(|found, wanted| found > wanted),
        "Lt" => compare(|found, wanted| found < wanted),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::WindowsNode;
    use serde_json::json;

    #[test]
    fn tolerations_are_matched_as_kubernetes_does() {
        let taint = Taint { key: "os".into(), value: "windows".into(), effect: "NoSchedule".into() };
        let table = [
            (json!({ "key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule" }), true),
            (json!({ "key": "os", "value": "windows" }), true),
            (json!({ "key": "os", "operator": "", "value": "windows", "effect": "" }), true),
            (json!({ "key": "os", "operator": null, "value": "windows", "effect": null }), true),
            (json!({ "key": "os", "value": "Windows" }), false),
            (json!({ "key": "OS", "value": "windows" }), false),
            (json!({ "key": "os", "operator": "Exists" }), true),
            (json!({ "operator": "Exists" }), true),
            (json!({ "operator": "Exists", "effect": "NoExecute" }), false),
            (json!({ "operator": "Exists", "effect": "NoSchedule" }), true),
            (json!({ "value": "windows" }), true),
            (json!({}), false),
            (json!({ "key": "os", "operator": "In", "value": "windows" }), false),
            (json!({ "key": "os", "operator": "Lt", "value": "5" }), false),
        ];
        for (toleration, expected) in table {
            let view: Toleration<'_> = serde::Deserialize::deserialize(&toleration).unwrap();
            assert_eq!(tolerates(&view, &taint), expected, "{toleration}");
        }
    }

    fn nodes() -> Nodes {
        let mut nodes = Nodes::default();
        for (name, zone) in [("w1", "a"), ("w2", "b")] {
            let labels = [("kubernetes.io/os", "windows"), ("zone", zone), ("cores", "8")];
            let labels = labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
            let shape = Shape { labels, ..Shape::default() };
            nodes.put(WindowsNode { name: name.into(), hostname: Some(format!("host-{name}")), shape });
        }
        nodes
    }

    #[test]
    fn selectors_and_terms_admit_nodes_as_the_scheduler_does() {
        let terms = |terms: serde_json::Value| {
            json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": terms } } } })
        };
        let expression = |key: &str, operator: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] });
        let field = |value: &str| json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [value] }] });
        let table: [(serde_json::Value, &[&str]); 16] = [
            (json!({}), &["a", "b"]),
            (json!({ "nodeSelector": { "zone": "a" } }), &["a"]),
            (json!({ "nodeSelector": { "kubernetes.io/os": "linux" } }), &[]),
            (json!({ "nodeSelector": { "kubernetes.io/hostname": "host-w2" } }), &["b"]),
            (terms(json!([expression("zone", "In", &["a", "c"])])), &["a"]),
            (terms(json!([expression("zone", "NotIn", &["a"])])), &["b"]),
            (terms(json!([expression("gpu", "NotIn", &["a"])])), &["a", "b"]),
            (terms(json!([expression("zone", "Exists", &[])])), &["a", "b"]),
            (terms(json!([expression("zone", "DoesNotExist", &[])])), &[]),
            (terms(json!([expression("cores", "Gt", &["4"])])), &["a", "b"]),
            (terms(json!([expression("cores", "Lt", &["4"])])), &[]),
            (terms(json!([expression("zone", "Like", &["a"])])), &[]),
            (terms(json!([field("w2")])), &["b"]),
            (terms(json!([field("w2"), expression("zone", "In", &["a"])])), &["a", "b"]),
            (terms(json!([{}, null, { "matchExpressions": [], "matchFields": null }])), &[]),
            (terms(json!([])), &[]),
        ];
        let nodes = nodes();
        for (spec, expected) in table {
            let view: Spec<'_> = serde::Deserialize::deserialize(&spec).unwrap();
            let zones: Vec<&str> =
                Wants::new(&view, None).admitted(&nodes).iter().map(|s| s.labels["zone"].as_str()).collect();
            assert_eq!(zones, expected, "{spec}");
        }
    }
}

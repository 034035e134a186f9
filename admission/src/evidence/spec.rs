//! What the fields of a pod's spec say.

use bifold_crds::{keys, workload_policy::Os};

use super::{Evidence, Source, Strength};
use crate::{
    cluster::{Nodes, RuntimeClass},
    json::Object,
    pod::{Requirement, SecurityContext, Spec, Term, text},
};

const TERMS: &str =
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

pub(super) fn os_name(spec: &Spec<'_>, found: &mut Vec<Evidence>) {
    let name = spec.os.as_ref().map(|os| text(&os.name)).unwrap_or_default();
    if let Some(os) = Os::from_api(name) {
        found.push(Evidence::new(os, Strength::Strong, Source::OsName, "spec.os.name", name));
    }
}

pub(super) fn node(spec: &Spec<'_>, nodes: &Nodes, placed_by_controller: bool, found: &mut Vec<Evidence>) {
    let name = text(&spec.node_name);
    // A name that is not among the Windows nodes says nothing: the node may be about to join.
    if !placed_by_controller && !name.is_empty() && nodes.get(name).is_some() {
        found.push(Evidence::new(Os::Windows, Strength::Strong, Source::NodeName, "spec.nodeName", name));
    }
}

pub(super) fn class(spec: &Spec<'_>, class: Option<&RuntimeClass>, found: &mut Vec<Evidence>) {
    let Some(class) = class else { return };
    let path = "spec.runtimeClassName";
    let (os, strength) = match class.os() {
        Some(os) => (os, Strength::Strong),
        None if class.has_windows_handler() => (Os::Windows, Strength::Fair),
        None => return,
    };
    found.push(Evidence::new(os, strength, Source::RuntimeClass, path, text(&spec.runtime_class_name)));
}

pub(super) fn selector(spec: &Spec<'_>, found: &mut Vec<Evidence>) {
    let Some(selector) = &spec.node_selector else { return };
    let mut say = |key: &str, os: Os, value: &str| {
        let path = format!("spec.nodeSelector[{key}]");
        found.push(Evidence::new(os, Strength::Strong, Source::NodeSelector, path, value));
    };
    for key in [keys::OS_LABEL, keys::LEGACY_OS_LABEL] {
        if let Some((os, value)) = selector.get(key).and_then(|v| Some((Os::from_api(v)?, v))) {
            say(key, os, value);
        }
    }
    if let Some(build) = selector.get(keys::WINDOWS_BUILD_LABEL) {
        say(keys::WINDOWS_BUILD_LABEL, Os::Windows, build);
    }
}

/// Terms are alternatives: only what all of them say is said.
pub(super) fn affinity(spec: &Spec<'_>, found: &mut Vec<Evidence>) {
    let says = |term: &Term<'_>| {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        expressions.iter().enumerate().find_map(|(i, r)| Some((i, required_os(r)?)))
    };
    // A term without requirements holds nowhere, so it is no alternative.
    let mut terms = spec.terms().iter().enumerate().filter(|(_, term)| !term.is_empty());
    let Some((at, (expression, os))) = terms.next().and_then(|(i, term)| Some((i, says(term)?))) else {
        return;
    };
    if terms.all(|(_, term)| says(term).is_some_and(|(_, other)| other == os)) {
        let path = format!("{TERMS}[{at}].matchExpressions[{expression}]");
        found.push(Evidence::new(os, Strength::Strong, Source::NodeAffinity, path, os.as_str()));
    }
}

fn required_os(requirement: &Requirement<'_>) -> Option<Os> {
    let values = requirement.values.as_deref().unwrap_or_default();
    match (text(&requirement.key), text(&requirement.operator)) {
        (keys::OS_LABEL | keys::LEGACY_OS_LABEL, "In") => match values {
            [value] => Os::from_api(value),
            _ => None,
        },
        (keys::OS_LABEL | keys::LEGACY_OS_LABEL, "NotIn") => match values {
            [value] => Os::from_api(value).map(|os| match os {
                Os::Linux => Os::Windows,
                Os::Windows => Os::Linux,
            }),
            _ => None,
        },
        (keys::WINDOWS_BUILD_LABEL, "In" | "Exists" | "Gt" | "Lt") => Some(Os::Windows),
        _ => None,
    }
}

/// `hostProcess: true` can only mean Windows; other options may be there for pods that are not.
pub(super) fn windows_options(spec: &Spec<'_>, found: &mut Vec<Evidence>) {
    let mut look = |context: &Option<Object<SecurityContext<'_>>>, at: &dyn Fn() -> String| {
        let Some(options) = context.as_ref().and_then(|c| c.windows_options.as_ref()) else { return false };
        let path = format!("{}.securityContext.windowsOptions", at());
        let evidence = if options.host_process == Some(true) {
            Evidence::new(
                Os::Windows,
                Strength::Strong,
                Source::WindowsOptions,
                path + ".hostProcess",
                "true",
            )
        } else {
            Evidence::new(Os::Windows, Strength::Fair, Source::WindowsOptions, path, "")
        };
        let certain = evidence.strength == Strength::Strong;
        if certain || found.iter().all(|e| e.source != Source::WindowsOptions) {
            found.push(evidence);
        }
        certain
    };
    if !look(&spec.security_context, &|| "spec".to_owned()) {
        let _ = spec
            .all_containers()
            .any(|(kind, i, c)| look(&c.security_context, &|| format!("spec.{}[{i}]", kind.field())));
    }
}

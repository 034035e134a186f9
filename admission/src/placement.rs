//! Step "placement": what a Windows pod lacks to land on a Windows node that can run it. Nothing that the author wrote
//! is changed, and a pod that lacks nothing gets nothing.

mod class;
mod settle;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bifold_crds::{
    Isolation, WindowsBuild, keys,
    workload_policy::{Os, PlacementMode, SetOsName},
};
use serde::Serialize;

pub(crate) use settle::settle;

use crate::{
    case::Case, cluster::Taint, linux_only, placed::Placed, pod::text, question::Subject, reach::Reach,
    scheduling::Wants,
};

/// Something that is written into a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// An entry of `spec.nodeSelector`, whose key is not there or ours.
    NodeSelector {
        /// The label.
        key: Cow<'static, str>,
        /// Its value.
        value: Cow<'static, str>,
    },
    /// An entry of `spec.tolerations`, for exactly this taint.
    Toleration(Taint),
    /// `node.kubernetes.io/windows-build In builds`, in every term of the required node affinity and in place of ours.
    BuildAffinity {
        /// The builds, oldest first.
        builds: Vec<WindowsBuild>,
    },
    /// `spec.os.name`, where there is none or ours.
    OsName {
        /// The OS.
        os: Os,
    },
    /// `spec.runtimeClassName`, where there is none.
    RuntimeClass {
        /// The name of the class.
        name: String,
    },
    /// What was written into a template before, and is right no more.
    Removal(Part),
    /// The annotation of the workload that remembers what is written now; nothing, and it goes.
    Annotation(Placed),
}

/// A part of a template that is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// The OS in the node selector.
    NodeSelector,
    /// Our requirements on builds, with the terms that have no others.
    BuildAffinity,
    /// `spec.os.name`.
    OsName,
}

impl Change {
    /// The field that it is about, for the audit log.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::NodeSelector { .. } | Self::Removal(Part::NodeSelector) => "nodeSelector",
            Self::Toleration(_) => "tolerations",
            Self::BuildAffinity { .. } | Self::Removal(Part::BuildAffinity) => "affinity",
            Self::OsName { .. } | Self::Removal(Part::OsName) => "os",
            Self::RuntimeClass { .. } => "runtimeClassName",
            Self::Annotation(_) => "annotations",
        }
    }

    /// The entry of the node selector that says the OS.
    pub(crate) const fn os_selector(os: Os) -> Self {
        Self::NodeSelector { key: Cow::Borrowed(keys::OS_LABEL), value: Cow::Borrowed(os.as_str()) }
    }
}

/// The changes that a Windows pod needs. There is no strong evidence against Windows.
pub(crate) fn place(case: &Case<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let chosen = class::choose(case);
    if let Some((name, _)) = chosen {
        changes.push(Change::RuntimeClass { name: name.to_owned() });
    }
    // The API server adds what a class says to pods. The DaemonSet controller does not ask classes when it chooses
    // nodes from the template, so there everything must be said in full.
    let class = match case.request.subject {
        Subject::DaemonSet => None,
        _ => chosen.map(|(_, class)| class).or(case.class),
    };
    let wants = Wants::new(case.spec, class);
    let narrowed;
    let reach = match chosen {
        Some((_, class)) => {
            narrowed = Reach::new(case.spec, Some(class), case.images, class.isolation(), case.cluster);
            &narrowed
        }
        None => &case.reach,
    };
    let selects = select(case, wants, &mut changes);
    tolerate(reach, wants, &mut changes);
    if !case.daemon_pod {
        match_build(case, wants, &mut changes);
        name_os(case, selects, &mut changes);
    }
    changes
}

/// Asks for Windows nodes; says whether the pod is bound to them then.
fn select(case: &Case<'_>, wants: Wants<'_>, changes: &mut Vec<Change>) -> bool {
    match wants.label(keys::OS_LABEL) {
        Some(os) => os == keys::WINDOWS,
        // Its node is chosen: one more demand could only keep it from there.
        None if case.daemon_pod => false,
        None => {
            changes.push(Change::os_selector(Os::Windows));
            true
        }
    }
}

/// Tolerates the taints about the OS that the nodes in its reach carry, as they are spelled there.
fn tolerate(reach: &Reach<'_>, wants: Wants<'_>, changes: &mut Vec<Change>) {
    // Without any node to look at: the spelling of the Kubernetes documentation, which is also the default of pools.
    // The pod may wait for the first Windows node, and its tolerations are not looked at again.
    let documented =
        Taint { key: "os".to_owned(), value: keys::WINDOWS.to_owned(), effect: "NoSchedule".to_owned() };
    let mut missing: Vec<&Taint> =
        if reach.total == 0 { vec![&documented] } else { reach.os_taints().collect() };
    missing.retain(|taint| !wants.tolerates(taint));
    missing.sort_unstable();
    missing.dedup();
    changes.extend(missing.into_iter().cloned().map(Change::Toleration));
}

/// Keeps the pod to builds that run its images, unless it says something about builds itself.
fn match_build(case: &Case<'_>, wants: Wants<'_>, changes: &mut Vec<Change>) {
    // A class that was chosen isolates as a pod without a class is.
    let isolation = case.isolation();
    let bound = !text(&case.spec.node_name).is_empty();
    let says_itself = wants.mentions(keys::WINDOWS_BUILD_LABEL);
    let needed: Vec<WindowsBuild> = case.images.iter().filter_map(|i| i.build).collect();
    if !case.policy.placement.match_build
        || isolation == Isolation::HostProcess
        || bound
        || says_itself
        || !case.reach.known
        || needed.is_empty()
    {
        return;
    }
    let mut builds = case.reach.builds();
    if case.request.subject == Subject::DaemonSet {
        // A template outlives the nodes of today: releases that run the images are named before they join.
        builds
            .extend(WindowsBuild::releases().filter(|host| needed.iter().all(|b| host.runs(*b, isolation))));
        // So are those that were named before: nodes of theirs may only be away.
        let runs = |host: &&WindowsBuild| needed.iter().all(|image| host.runs(*image, isolation));
        builds.extend(case.ours.builds.iter().filter(runs));
        builds.sort_unstable();
        builds.dedup();
    }
    if !builds.is_empty() {
        changes.push(Change::BuildAffinity { builds });
    }
}

/// Sets `spec.os.name` where the API server accepts the result.
///
/// With it PodSecurity drops three checks of its `restricted` level (privilege escalation, capabilities, seccomp), so
/// it must not rest on the name of an image alone. It does not: `selects` says that the pod is bound to nodes whose
/// label says Windows, by its author or by us, and there the three mean nothing.
fn name_os(case: &Case<'_>, selects: bool, changes: &mut Vec<Change>) {
    let named = case.spec.os.as_ref().is_some_and(|os| !text(&os.name).is_empty());
    let to_builds = changes.iter().any(|c| matches!(c, Change::BuildAffinity { .. }));
    let bound = selects || to_builds || case.pinned() == Some(Os::Windows);
    if case.policy.placement.set_os_name == SetOsName::WhenValid
        && !named
        && bound
        && linux_only::set_in(case.spec).next().is_none()
    {
        changes.push(Change::OsName { os: Os::Windows });
    }
}

/// Whether the policy wants pods of this kind to be placed by a RuntimeClass.
fn by_class(case: &Case<'_>) -> bool {
    case.policy.placement.mode == PlacementMode::RuntimeClass
        && case.request.subject != Subject::DaemonSet
        && !case.daemon_pod
}

//! Placement by RuntimeClass: which class a pod gets that has none.
//!
//! The API server looks at RuntimeClasses again once a webhook has changed the pod, adds the selector, tolerations and
//! overhead of the class and refuses the pod where they contradict it. So only a class that contradicts nothing is
//! chosen, and where none fits or several fit equally the pod is placed by selector as in the other mode.

use bifold_crds::{Isolation, WindowsBuild, workload_policy::Os};

use super::by_class;
use crate::{case::Case, cluster::RuntimeClass, json::Map, pod::text, scheduling::Wants};

pub(super) fn choose<'c>(case: &Case<'c>) -> Option<(&'c str, &'c RuntimeClass)> {
    // The node of a pod that is bound to one need not be a node of the class.
    let free = text(&case.spec.runtime_class_name).is_empty()
        && text(&case.spec.node_name).is_empty()
        && case.spec.overhead.is_none();
    if !by_class(case) || !free || case.host_process {
        return None;
    }
    let fitting: Vec<_> = case.cluster.classes().filter(|(_, class)| fits(case, class)).collect();
    let newest = case.images.iter().filter_map(|i| i.build).max();
    let Some(newest) = newest else {
        // Nothing says which build: only where all classes agree on one is it safe to take it.
        let mut builds = fitting.iter().map(|(_, class)| class.build());
        let first = builds.next()?;
        return builds.all(|build| build == first).then(|| fitting.first().copied()).flatten();
    };
    // The image's own build before a newer one; of equals the first by name.
    fitting.into_iter().min_by_key(|(name, class)| {
        let build = class.build();
        (build != Some(newest), build.map_or(u32::MAX, WindowsBuild::number), *name)
    })
}

fn fits(case: &Case<'_>, class: &RuntimeClass) -> bool {
    let contradicts = case
        .spec
        .node_selector
        .iter()
        .flat_map(Map::iter)
        .any(|(key, value)| class.selector.get(key).is_some_and(|wanted| wanted != value));
    let mut images = case.images.iter().filter_map(|i| i.build);
    let wants = Wants::new(case.spec, Some(class));
    class.os() == Some(Os::Windows)
        && class.isolation() == Isolation::Process
        && !contradicts
        && class.build().is_none_or(|host| images.all(|image| host.runs(image, Isolation::Process)))
        && (case.reach.total == 0 || !wants.admitted(case.cluster.nodes()).is_empty())
}

#[cfg(test)]
mod tests {
    use crate::{
        policy::Policy,
        testing::{class, cluster, decide_with, windows},
    };
    use bifold_crds::{WindowsWorkloadPolicySpec, workload_policy::PlacementMode};
    use serde_json::{Value, json};

    fn by_class() -> Policy {
        let mut spec = WindowsWorkloadPolicySpec::default();
        spec.placement.mode = PlacementMode::RuntimeClass;
        Policy::new(None, &spec)
    }

    fn placed(spec: &Value) -> Value {
        let mut cluster = cluster();
        for (name, build) in
            [("windows-2019", "10.0.17763"), ("windows-2022", "10.0.20348"), ("windows-2025", "10.0.26100")]
        {
            let selector = [("kubernetes.io/os", "windows"), ("node.kubernetes.io/windows-build", build)];
            cluster.put_class(name, class("runhcs-wcow-process", &selector));
        }
        cluster.put_class("a-hyperv", class("runhcs-wcow-hypervisor", &[("kubernetes.io/os", "windows")]));
        let (_, patched) = decide_with(&windows(spec), &cluster, &by_class());
        let (_, again) = decide_with(&patched, &cluster, &by_class());
        assert_eq!(again, patched, "a second pass changes nothing");
        patched["spec"].clone()
    }

    #[test]
    fn a_pod_gets_the_class_of_its_build_and_what_the_class_lacks() {
        let spec =
            placed(&json!({ "containers": [{ "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022" }],
            "nodeSelector": null }));
        assert_eq!(spec["runtimeClassName"], "windows-2022");
        assert_eq!((&spec["nodeSelector"], &spec["affinity"]), (&json!(null), &json!(null)));
        assert_eq!(
            spec["tolerations"].as_array().unwrap().len(),
            1,
            "the node is tainted and the class has none"
        );
        assert_eq!(spec["os"]["name"], "windows");
    }

    #[test]
    fn without_a_fitting_class_the_selector_is_written() {
        let unknown_build = json!({ "containers": [{ "image": "a" }] });
        let other = json!({ "containers": [{ "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022" }],
            "nodeSelector": { "kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.1" } });
        let bound = json!({ "containers": [{ "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022" }],
            "nodeName": "win-2025" });
        for spec in [unknown_build, other, bound] {
            let placed = placed(&spec);
            assert_eq!(placed["runtimeClassName"], json!(null));
            assert_eq!(placed["nodeSelector"]["kubernetes.io/os"], "windows");
        }
    }
}

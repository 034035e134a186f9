//! The fields that the API server refuses once `spec.os.name` is `windows`.
//!
//! Source: Kubernetes `pkg/apis/core/validation/validation.go` (`validateWindows`, `validatePodResources`) of v1.36.
//! "Set" is what the API server means by it: any value but `null`, so `privileged: false` and
//! `supplementalGroups: []` count; `true` for the two plain booleans; not empty for `sysctls`.

use crate::pod::{Container, SecurityContext, Spec};

/// A field that is forbidden on the pod itself.
pub struct PodField {
    /// Its path.
    pub path: &'static str,
    set: fn(&Spec<'_>) -> bool,
}

/// A field that is forbidden on every container, of all three kinds.
pub struct ContainerField {
    /// Its path within the container.
    pub path: &'static str,
    set: fn(&Container<'_>) -> bool,
}

const fn pod(path: &'static str, set: fn(&Spec<'_>) -> bool) -> PodField {
    PodField { path, set }
}

const fn container(path: &'static str, set: fn(&Container<'_>) -> bool) -> ContainerField {
    ContainerField { path, set }
}

fn on_pod(spec: &Spec<'_>, set: fn(&SecurityContext<'_>) -> bool) -> bool {
    spec.security_context.as_deref().is_some_and(set)
}

fn on_container(container: &Container<'_>, set: fn(&SecurityContext<'_>) -> bool) -> bool {
    container.security_context.as_deref().is_some_and(set)
}

/// The fields of the pod.
pub const POD_FIELDS: [PodField; 16] = [
    pod("spec.hostPID", |s| s.host_pid == Some(true)),
    pod("spec.hostIPC", |s| s.host_ipc == Some(true)),
    pod("spec.hostUsers", |s| s.host_users.is_some()),
    pod("spec.shareProcessNamespace", |s| s.share_process_namespace.is_some()),
    pod("spec.resources", |s| s.resources.is_some()),
    pod("spec.securityContext.appArmorProfile", |s| on_pod(s, |c| c.app_armor_profile.is_some())),
    pod("spec.securityContext.seLinuxOptions", |s| on_pod(s, |c| c.se_linux_options.is_some())),
    pod("spec.securityContext.seccompProfile", |s| on_pod(s, |c| c.seccomp_profile.is_some())),
    pod("spec.securityContext.fsGroup", |s| on_pod(s, |c| c.fs_group.is_some())),
    pod("spec.securityContext.fsGroupChangePolicy", |s| on_pod(s, |c| c.fs_group_change_policy.is_some())),
    pod("spec.securityContext.sysctls", |s| {
        on_pod(s, |c| c.sysctls.as_ref().is_some_and(|list| !list.is_empty()))
    }),
    pod("spec.securityContext.runAsUser", |s| on_pod(s, |c| c.run_as_user.is_some())),
    pod("spec.securityContext.runAsGroup", |s| on_pod(s, |c| c.run_as_group.is_some())),
    pod("spec.securityContext.supplementalGroups", |s| on_pod(s, |c| c.supplemental_groups.is_some())),
    pod("spec.securityContext.supplementalGroupsPolicy", |s| {
        on_pod(s, |c| c.supplemental_groups_policy.is_some())
    }),
    pod("spec.securityContext.seLinuxChangePolicy", |s| on_pod(s, |c| c.se_linux_change_policy.is_some())),
];

/// The fields of containers. The last is refused only where the API server knows the field (`ContainerStopSignals`).
pub const CONTAINER_FIELDS: [ContainerField; 11] = [
    container("securityContext.appArmorProfile", |c| on_container(c, |s| s.app_armor_profile.is_some())),
    container("securityContext.seLinuxOptions", |c| on_container(c, |s| s.se_linux_options.is_some())),
    container("securityContext.seccompProfile", |c| on_container(c, |s| s.seccomp_profile.is_some())),
    container("securityContext.capabilities", |c| on_container(c, |s| s.capabilities.is_some())),
    container("securityContext.readOnlyRootFilesystem", |c| {
        on_container(c, |s| s.read_only_root_filesystem.is_some())
    }),
    container("securityContext.privileged", |c| on_container(c, |s| s.privileged.is_some())),
    container("securityContext.allowPrivilegeEscalation", |c| {
        on_container(c, |s| s.allow_privilege_escalation.is_some())
    }),
    container("securityContext.procMount", |c| on_container(c, |s| s.proc_mount.is_some())),
    container("securityContext.runAsUser", |c| on_container(c, |s| s.run_as_user.is_some())),
    container("securityContext.runAsGroup", |c| on_container(c, |s| s.run_as_group.is_some())),
    container("lifecycle.stopSignal", |c| {
        let signal = c.lifecycle.as_ref().and_then(|l| l.stop_signal.as_deref());
        signal.is_some_and(|s| s != "SIGKILL" && s != "SIGTERM")
    }),
];

/// The paths of all such fields that are set.
pub fn set_in<'s>(spec: &'s Spec<'_>) -> impl Iterator<Item = String> + 's {
    let on_pod = POD_FIELDS.iter().filter(|f| (f.set)(spec)).map(|f| f.path.to_owned());
    let on_containers = spec.all_containers().flat_map(|(kind, index, container)| {
        let set = CONTAINER_FIELDS.iter().filter(|f| (f.set)(container));
        set.map(move |f| format!("spec.{}[{index}].{}", kind.field(), f.path))
    });
    on_pod.chain(on_containers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(spec: &serde_json::Value) -> Vec<String> {
        set_in(&serde::Deserialize::deserialize(spec).unwrap()).collect()
    }

    #[test]
    fn there_are_26_fields_and_the_stop_signal() {
        assert_eq!(POD_FIELDS.len() + CONTAINER_FIELDS.len(), 26 + 1);
    }

    #[test]
    fn every_field_of_the_table_is_seen_in_every_kind_of_container() {
        for field in &POD_FIELDS {
            let (last, parents) = {
                let mut p: Vec<_> = field.path.split('.').skip(1).collect();
                (p.pop().unwrap(), p)
            };
            let value = if last == "sysctls" { json!([{}]) } else { json!(true) };
            let mut spec = json!({ last: value });
            for parent in parents.into_iter().rev() {
                spec = json!({ parent: spec });
            }
            assert_eq!(set(&spec), [field.path]);
        }
        for field in &CONTAINER_FIELDS {
            let (parent, last) = field.path.split_once('.').unwrap();
            let value = if last == "stopSignal" { json!("SIGINT") } else { json!(false) };
            for list in ["containers", "initContainers", "ephemeralContainers"] {
                let spec = json!({ list: [{}, { parent: { last: value } }] });
                assert_eq!(set(&spec), [format!("spec.{list}[1].{}", field.path)]);
            }
        }
    }

    #[test]
    fn null_is_not_set_and_false_and_empty_are_where_the_api_server_says_so() {
        let unset = json!({
            "hostPID": false, "hostIPC": null, "hostUsers": null,
            "securityContext": { "runAsUser": null, "sysctls": [], "runAsNonRoot": true, "windowsOptions": {} },
            "containers": [{ "securityContext": null, "lifecycle": { "stopSignal": "SIGTERM" } }]
        });
        assert_eq!(set(&unset), Vec::<String>::new());
        let counted =
            json!({ "shareProcessNamespace": false, "securityContext": { "supplementalGroups": [] } });
        assert_eq!(set(&counted), ["spec.shareProcessNamespace", "spec.securityContext.supplementalGroups"]);
    }
}

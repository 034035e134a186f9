//! Step "facts": a pod, or the pod template of a workload, as far as Bifold looks at it.
//!
//! A view borrows from the document and says of every field whether it is there, because a patch has to know what it
//! adds to. It is never written back: what the view does not know must survive.

use serde::Deserialize;

use crate::applied::Managed;
use crate::json::{List, Map, Object, Objects, Others, Set, Text};

/// A pod, or a pod template: both have `metadata` and `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct PodView<'a> {
    /// `metadata`.
    pub metadata: Option<Object<Metadata<'a>>>,
    /// `spec`.
    pub spec: Option<Object<Spec<'a>>>,
    /// `metadata` of the workload whose template it is.
    #[serde(skip)]
    pub workload: Option<Metadata<'a>>,
}

/// `metadata` of a pod or of a workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Metadata<'a> {
    /// Its annotations.
    pub annotations: Option<Map<'a>>,
    /// What made it.
    pub owner_references: Option<Objects<Owner<'a>>>,
    /// Who says which of its fields.
    pub managed_fields: Option<Objects<Managed<'a>>>,
    /// Since when it is being deleted.
    pub deletion_timestamp: Set,
}

/// One of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Owner<'a> {
    /// Such as `apps/v1`.
    pub api_version: Option<Text<'a>>,
    /// Such as `DaemonSet`.
    pub kind: Option<Text<'a>>,
    /// Whether this owner manages the object.
    pub controller: Option<bool>,
}

/// `spec` of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Spec<'a> {
    /// `os`.
    pub os: Option<Object<OsField<'a>>>,
    /// The node that it is bound to.
    pub node_name: Option<Text<'a>>,
    /// Its RuntimeClass.
    pub runtime_class_name: Option<Text<'a>>,
    /// Resources that its RuntimeClass costs.
    pub overhead: Set,
    /// Labels that its node must carry.
    pub node_selector: Option<Map<'a>>,
    /// `affinity`.
    pub affinity: Option<Object<Affinity<'a>>>,
    /// Taints that it takes.
    pub tolerations: Option<Objects<Toleration<'a>>>,
    /// Its service account.
    pub service_account_name: Option<Text<'a>>,
    /// Its containers.
    pub containers: Option<Objects<Container<'a>>>,
    /// Containers that run before them.
    pub init_containers: Option<Objects<Container<'a>>>,
    /// Containers that were added for debugging.
    pub ephemeral_containers: Option<Objects<Container<'a>>>,
    /// Its volumes.
    pub volumes: Option<Objects<Volume<'a>>>,
    /// Security settings of all containers.
    pub security_context: Option<Object<SecurityContext<'a>>>,
    /// `hostPID`.
    #[serde(rename = "hostPID")]
    pub host_pid: Option<bool>,
    /// `hostIPC`.
    #[serde(rename = "hostIPC")]
    pub host_ipc: Option<bool>,
    /// `hostUsers`.
    pub host_users: Set,
    /// `shareProcessNamespace`.
    pub share_process_namespace: Set,
    /// Resources of the pod as a whole.
    pub resources: Set,
}

/// `spec.os`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct OsField<'a> {
    /// `linux` or `windows`.
    pub name: Option<Text<'a>>,
    /// Its other fields.
    #[serde(flatten)]
    pub others: Others,
}

/// `spec.affinity`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Affinity<'a> {
    /// `nodeAffinity`.
    pub node_affinity: Option<Object<NodeAffinity<'a>>>,
    /// Its other fields.
    #[serde(flatten)]
    pub others: Others,
}

/// `spec.affinity.nodeAffinity`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct NodeAffinity<'a> {
    /// What a node must satisfy.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<Object<NodeSelector<'a>>>,
    /// Its other fields.
    #[serde(flatten)]
    pub others: Others,
}

/// A list of terms of which one must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct NodeSelector<'a> {
    /// The terms.
    pub node_selector_terms: Option<Objects<Term<'a>>>,
}

/// A term: all of its requirements must hold. One without requirements holds nowhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Term<'a> {
    /// Requirements on labels.
    pub match_expressions: Option<Objects<Requirement<'a>>>,
    /// Requirements on fields, of which there is one: `metadata.name`.
    pub match_fields: Option<Objects<Requirement<'a>>>,
}

/// One requirement of a term.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Requirement<'a> {
    /// Which label or field.
    pub key: Option<Text<'a>>,
    /// Such as `In`.
    pub operator: Option<Text<'a>>,
    /// What it is compared with.
    pub values: Option<List<Text<'a>>>,
}

/// One of `spec.tolerations`, or of the tolerations of a RuntimeClass.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Toleration<'a> {
    /// The key of the taint; empty means every key.
    pub key: Option<Text<'a>>,
    /// `Exists`, or `Equal` when empty.
    pub operator: Option<Text<'a>>,
    /// The value of the taint.
    pub value: Option<Text<'a>>,
    /// The effect of the taint; empty means every effect.
    pub effect: Option<Text<'a>>,
}

/// A container, init container or ephemeral container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Container<'a> {
    /// Its name.
    pub name: Option<Text<'a>>,
    /// Its image as written.
    pub image: Option<Text<'a>>,
    /// Volumes that it mounts.
    pub volume_mounts: Option<Objects<VolumeMount<'a>>>,
    /// Its security settings.
    pub security_context: Option<Object<SecurityContext<'a>>>,
    /// `lifecycle`.
    pub lifecycle: Option<Object<Lifecycle<'a>>>,
}

/// One of a container's `volumeMounts`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct VolumeMount<'a> {
    /// The name of the volume.
    pub name: Option<Text<'a>>,
}

/// A container's `lifecycle`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Lifecycle<'a> {
    /// The signal that stops it.
    pub stop_signal: Option<Text<'a>>,
}

/// One of `spec.volumes`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Volume<'a> {
    /// Its name.
    pub name: Option<Text<'a>>,
    /// A Secret.
    pub secret: Option<Object<SecretSource<'a>>>,
    /// Several sources in one directory.
    pub projected: Option<Object<Projected<'a>>>,
}

/// A Secret as a volume or as a source of a projected volume; the two name it differently.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct SecretSource<'a> {
    /// The Secret of a `secret` volume.
    pub secret_name: Option<Text<'a>>,
    /// The Secret of a projected source.
    pub name: Option<Text<'a>>,
    /// The keys that become files; without it all of them.
    pub items: Option<Objects<KeyToPath<'a>>>,
}

/// A key of a Secret that becomes a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct KeyToPath<'a> {
    /// The key.
    pub key: Option<Text<'a>>,
}

/// `projected` of a volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Projected<'a> {
    /// Its sources.
    pub sources: Option<Objects<ProjectedSource<'a>>>,
}

/// A source of a projected volume. Sources that are no Secret are of no interest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ProjectedSource<'a> {
    /// A Secret.
    pub secret: Option<Object<SecretSource<'a>>>,
}

/// `securityContext` of a pod or of a container: the fields of both.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
#[allow(missing_docs)] // Each is the API's field of that name; `linux_only` says what they have in common.
pub struct SecurityContext<'a> {
    pub windows_options: Option<Object<WindowsOptions<'a>>>,
    pub app_armor_profile: Set,
    pub se_linux_options: Set,
    pub seccomp_profile: Set,
    pub fs_group: Set,
    pub fs_group_change_policy: Set,
    pub sysctls: Option<List<serde::de::IgnoredAny>>,
    pub run_as_user: Set,
    pub run_as_group: Set,
    pub supplemental_groups: Set,
    pub supplemental_groups_policy: Set,
    #[serde(rename = "seLinuxChangePolicy")]
    pub se_linux_change_policy: Set,
    pub capabilities: Set,
    pub read_only_root_filesystem: Set,
    pub privileged: Set,
    pub allow_privilege_escalation: Set,
    pub proc_mount: Set,
}

/// `windowsOptions` of a security context.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct WindowsOptions<'a> {
    /// Whether the container is a process of the host.
    pub host_process: Option<bool>,
    /// The Windows user that the container runs as.
    pub run_as_user_name: Option<Text<'a>>,
}

/// Which of a pod's lists of containers one is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerKind {
    /// `initContainers`.
    Init,
    /// `containers`.
    Main,
    /// `ephemeralContainers`.
    Ephemeral,
}

impl ContainerKind {
    /// The name of the list.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Init => "initContainers",
            Self::Main => "containers",
            Self::Ephemeral => "ephemeralContainers",
        }
    }
}

impl<'a> Spec<'a> {
    /// Every container, of all three kinds, with its place.
    pub fn all_containers(&self) -> impl Iterator<Item = (ContainerKind, usize, &Container<'a>)> {
        let lists = [
            (ContainerKind::Main, &self.containers),
            (ContainerKind::Init, &self.init_containers),
            (ContainerKind::Ephemeral, &self.ephemeral_containers),
        ];
        lists.into_iter().flat_map(|(kind, list)| {
            list.iter().flat_map(|l| l.iter()).enumerate().map(move |(i, c)| (kind, i, c))
        })
    }

    /// The terms of the required node affinity.
    #[must_use]
    pub fn terms(&self) -> &[Term<'a>] {
        let required = self.affinity.as_ref().and_then(|a| a.node_affinity.as_ref()?.required.as_ref());
        required.and_then(|r| r.node_selector_terms.as_deref()).unwrap_or_default()
    }

    /// Whether any part of it is a process of the host. (The API server wants all or none.)
    #[must_use]
    pub fn host_process(&self) -> bool {
        let set = |context: &Option<Object<SecurityContext<'_>>>| {
            context.as_ref().and_then(|c| c.windows_options.as_ref()?.host_process) == Some(true)
        };
        set(&self.security_context) || self.all_containers().any(|(_, _, c)| set(&c.security_context))
    }
}

impl Term<'_> {
    /// Whether it has no requirements; such a term holds nowhere.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.match_expressions.as_ref().is_none_or(|e| e.is_empty())
            && self.match_fields.as_ref().is_none_or(|f| f.is_empty())
    }
}

impl PodView<'_> {
    /// Whether it is the API server's picture of a static pod, which nobody may change.
    #[must_use]
    pub fn is_mirror(&self) -> bool {
        let annotations = self.metadata.as_ref().and_then(|m| m.annotations.as_ref());
        annotations.is_some_and(|a| a.get(bifold_crds::keys::MIRROR_POD_ANNOTATION).is_some())
    }

    /// Whether a DaemonSet made it: its node was chosen from the template, so it has no choice left.
    #[must_use]
    pub fn is_daemon_pod(&self) -> bool {
        let owners = self.metadata.as_ref().and_then(|m| m.owner_references.as_deref()).unwrap_or_default();
        let owned = owners.iter().any(|o| {
            o.kind.as_deref() == Some("DaemonSet")
                && o.controller == Some(true)
                && o.api_version.as_deref().is_some_and(|v| v.starts_with("apps/"))
        });
        let aimed = |t: &Term<'_>| {
            t.match_fields.iter().flat_map(|f| f.iter()).any(|r| r.key.as_deref() == Some("metadata.name"))
        };
        owned && self.spec.as_ref().is_some_and(|s| s.terms().iter().any(aimed))
    }
}

/// The text of an optional field, empty when it is absent.
#[expect(clippy::ref_option, reason = "it is asked of fields")]
pub(crate) fn text<'t>(field: &'t Option<Text<'_>>) -> &'t str {
    field.as_deref().unwrap_or_default()
}

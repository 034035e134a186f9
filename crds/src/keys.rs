//! Every key and fixed value that Bifold reads from, or writes to, an object of the API server.

/// Label that the kubelet sets on every node: `linux` or `windows`.
pub const OS_LABEL: &str = "kubernetes.io/os";
/// Predecessor of [`OS_LABEL`], deprecated since Kubernetes 1.14; kubelets still set it.
pub const LEGACY_OS_LABEL: &str = "beta.kubernetes.io/os";
/// Label that the kubelet sets on every node, such as `amd64`.
pub const ARCH_LABEL: &str = "kubernetes.io/arch";
/// Label that the kubelet sets on Windows nodes: `10.0.<build>`, without the revision.
pub const WINDOWS_BUILD_LABEL: &str = "node.kubernetes.io/windows-build";

/// Value of the OS labels and of `spec.os.name` for Windows.
pub const WINDOWS: &str = "windows";
/// Value of the OS labels and of `spec.os.name` for Linux.
pub const LINUX: &str = "linux";

/// Keys of taints by which distributions keep Linux pods off Windows nodes (or the reverse).
///
/// Compared without regard to case, as are the values: `os=windows` is Kubernetes' own documentation, `os=Windows`
/// OpenShift, `node.kubernetes.io/os` GKE and AKS on Azure Local, `OS` K2s, `cattle.io/os` RKE1.
pub const OS_TAINT_KEYS: [&str; 6] =
    ["os", "node.kubernetes.io/os", "kubernetes.io/os", "beta.kubernetes.io/os", "cattle.io/os", "windows"];

/// Label on a Node: the pool it belongs to.
pub const POOL_LABEL: &str = "bifold.dev/pool";
/// Annotation on a Node: what the operator wrote there, so that exactly that can be taken back. JSON.
pub const APPLIED_ANNOTATION: &str = "bifold.dev/applied";
/// Key of the start-up taint of a pool with `requireAgent`.
pub const AGENT_NOT_READY_TAINT: &str = "bifold.dev/agent-not-ready";
/// Finalizer of a `WindowsNodePool`: its nodes and RuntimeClasses have not been released yet.
pub const POOL_FINALIZER: &str = "bifold.dev/release-nodes";
/// Annotation on a Namespace: the OS of pods that say nothing themselves (`linux` or `windows`).
pub const NAMESPACE_OS_ANNOTATION: &str = "bifold.dev/os";
/// Annotation on a DaemonSet: what was written into its template, so that it is taken back when it is no longer right.
/// JSON.
pub const PLACED_ANNOTATION: &str = "bifold.dev/placed";
/// Label on a Namespace: with the value [`ADMISSION_DISABLED`] its pods are never sent to the webhook.
pub const ADMISSION_LABEL: &str = "bifold.dev/admission";
/// Value of [`ADMISSION_LABEL`] that switches admission off.
pub const ADMISSION_DISABLED: &str = "disabled";
/// Label on what the operator makes: the name of the pool it was made for.
pub const MADE_FOR_LABEL: &str = "bifold.dev/made-for-pool";

/// Annotation of a mirror pod (a static pod as the kubelet reports it); such a pod is never changed.
pub const MIRROR_POD_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Annotation in which `kubectl apply` keeps the text that it applied last.
pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Handler of containerd for containers that share the host's kernel.
pub const PROCESS_HANDLER: &str = "runhcs-wcow-process";
/// Handler of containerd for containers in a utility VM of their own.
pub const HYPERVISOR_HANDLER: &str = "runhcs-wcow-hypervisor";

/// `metadata.managedFields[].manager` of everything the operator applies. Changing it orphans those fields.
pub const OPERATOR_FIELD_MANAGER: &str = "bifold-operator";

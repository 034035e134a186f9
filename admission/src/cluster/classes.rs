//! RuntimeClasses: how a pod of the class is isolated, and where the API server will send it.

use std::collections::BTreeMap;

use bifold_crds::{Isolation, WindowsBuild, keys, workload_policy::Os};
use k8s_openapi::api::{core::v1, node::v1::RuntimeClass as Object};

use crate::pod::Toleration;

/// What is known of a RuntimeClass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuntimeClass {
    /// The handler in the container runtime's configuration.
    pub handler: String,
    /// Labels that the API server adds to the node selector of its pods.
    pub selector: BTreeMap<String, String>,
    /// Tolerations that the API server adds to its pods.
    pub tolerations: Vec<Toleration<'static>>,
}

/// All handlers of containerd for Windows containers begin so (`runhcs-wcow-hypervisor-17763` is one of AKS).
const WINDOWS_HANDLERS: &str = "runhcs-wcow-";

impl RuntimeClass {
    /// The OS that it sends its pods to.
    #[must_use]
    pub fn os(&self) -> Option<Os> {
        let label = self.selector.get(keys::OS_LABEL).or_else(|| self.selector.get(keys::LEGACY_OS_LABEL));
        label.and_then(|os| Os::from_api(os))
    }

    /// The build that it sends its pods to.
    #[must_use]
    pub fn build(&self) -> Option<WindowsBuild> {
        self.selector.get(keys::WINDOWS_BUILD_LABEL)?.parse().ok()
    }

    /// Whether its handler makes Windows containers.
    #[must_use]
    pub fn has_windows_handler(&self) -> bool {
        self.handler.starts_with(WINDOWS_HANDLERS)
    }

    /// How its containers are kept apart from the host.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        if self.handler.starts_with(keys::HYPERVISOR_HANDLER) {
            Isolation::HyperV
        } else {
            Isolation::Process
        }
    }
}

impl From<Object> for RuntimeClass {
    fn from(class: Object) -> Self {
        let scheduling = class.scheduling.unwrap_or_default();
        Self {
            handler: class.handler,
            selector: scheduling.node_selector.unwrap_or_default(),
            tolerations: scheduling.tolerations.unwrap_or_default().into_iter().map(toleration).collect(),
        }
    }
}

fn toleration(t: v1::Toleration) -> Toleration<'static> {
    Toleration {
        key: t.key.map(Into::into),
        operator: t.operator.map(Into::into),
        value: t.value.map(Into::into),
        effect: t.effect.map(Into::into),
    }
}

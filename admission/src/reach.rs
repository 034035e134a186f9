//! Which Windows nodes a pod could use: those that its selector and affinity admit, of these those that run its
//! images, of these those whose taints it takes once the taints about the OS are dealt with.

use bifold_crds::{Isolation, WindowsBuild, keys};

use crate::{
    cluster::{Cluster, Freshness, RuntimeClass, Shape, Taint},
    evidence::Image,
    pod::{Spec, text},
    scheduling::Wants,
};

/// The Windows nodes that a pod could use. Shapes, not nodes: nobody needs the names.
#[derive(Debug, Default)]
pub struct Reach<'c> {
    /// How many Windows nodes there are.
    pub total: usize,
    /// Those that its selector and affinity admit.
    pub admitted: Vec<&'c Shape>,
    /// Those of them that run every image whose build is known.
    pub runnable: Vec<&'c Shape>,
    /// Those of them whose taints it takes, or would take with tolerations for the OS.
    pub usable: Vec<&'c Shape>,
    /// Whether anything is known of nodes.
    pub known: bool,
}

impl<'c> Reach<'c> {
    /// Looks at every shape of node.
    #[must_use]
    pub fn new(
        spec: &Spec<'_>,
        class: Option<&RuntimeClass>,
        images: &[Image<'_>],
        isolation: Isolation,
        cluster: &'c Cluster,
    ) -> Self {
        let wants = Wants::new(spec, class);
        let admitted = match cluster.nodes().get(text(&spec.node_name)) {
            Some(bound) => vec![&*bound.shape],
            None => wants.admitted(cluster.nodes()),
        };
        let runs = |shape: &&&Shape| {
            shape
                .build
                .is_none_or(|host| images.iter().filter_map(|i| i.build).all(|b| host.runs(b, isolation)))
        };
        let runnable: Vec<&Shape> = admitted.iter().filter(runs).copied().collect();
        let open = |shape: &&&Shape| wants.enters(shape, |t| t.is_about_os() || t.is_condition());
        let usable = runnable.iter().filter(open).copied().collect();
        let known = cluster.freshness() != Freshness::Cold;
        Self { total: cluster.nodes().len(), admitted, runnable, usable, known }
    }

    /// The builds of nodes that run the pod, as their labels say, oldest first.
    #[must_use]
    pub fn builds(&self) -> Vec<WindowsBuild> {
        builds(&self.runnable)
    }

    /// The taints about the OS that a pod meets on the nodes it could use.
    pub fn os_taints(&self) -> impl Iterator<Item = &'c Taint> {
        let nodes = if self.usable.is_empty() { &self.runnable } else { &self.usable };
        nodes.iter().flat_map(|shape| shape.taints.iter()).filter(|t| t.is_about_os())
    }
}

/// Whether a pod that is not for Windows could land on a Windows node, now or once the node is well again.
#[must_use]
pub fn could_land(wants: Wants<'_>, cluster: &Cluster) -> bool {
    wants.admitted(cluster.nodes()).iter().any(|shape| wants.enters(shape, Taint::is_condition))
}

/// The builds that these nodes carry as a label, oldest first.
pub(crate) fn builds(shapes: &[&Shape]) -> Vec<WindowsBuild> {
    let label = |shape: &&Shape| shape.labels.get(keys::WINDOWS_BUILD_LABEL)?.parse().ok();
    let mut builds: Vec<WindowsBuild> = shapes.iter().filter_map(label).collect();
    builds.sort_unstable();
    builds.dedup();
    builds
}

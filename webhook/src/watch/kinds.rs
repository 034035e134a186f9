//! The kinds that are watched, each reduced at the edge to what a decision needs.

use bifold_admission::{Cluster, Namespace, RuntimeClass, WindowsNode};
use bifold_crds::WindowsWorkloadPolicy;
use k8s_openapi::api::{
    core::v1::{Namespace as NamespaceObject, Node},
    node::v1::RuntimeClass as RuntimeClassObject,
};
use kube::{
    ResourceExt as _,
    core::{DeserializeGuard, PartialObjectMeta},
};

use super::{Kind, Read};

/// Windows nodes. Heartbeats change nothing of what is kept.
pub struct Nodes;

/// RuntimeClasses.
pub struct Classes;

/// Namespaces, of which only the metadata is asked for.
pub struct Namespaces;

/// Policies.
pub struct Policies;

impl Kind for Nodes {
    type Object = Node;
    type Value = WindowsNode;
    const NAME: &'static str = "Node";

    fn read(node: Node) -> Read<WindowsNode> {
        let name = node.name_any();
        match WindowsNode::of(node) {
            Some(node) => Read::Value(name, node),
            None => Read::Ignored(name),
        }
    }

    fn put(cluster: &mut Cluster, _: String, node: WindowsNode) {
        cluster.put_node(node);
    }

    fn remove(cluster: &mut Cluster, name: &str) {
        cluster.remove_node(name);
    }

    fn replace(cluster: &mut Cluster, listed: Vec<(String, WindowsNode)>, _: &[String]) {
        cluster.replace_nodes(listed.into_iter().map(|(_, node)| node));
    }
}

impl Kind for Classes {
    type Object = RuntimeClassObject;
    type Value = RuntimeClass;
    const NAME: &'static str = "RuntimeClass";

    fn read(class: RuntimeClassObject) -> Read<RuntimeClass> {
        Read::Value(class.name_any(), class.into())
    }

    fn put(cluster: &mut Cluster, name: String, class: RuntimeClass) {
        cluster.put_class(name, class);
    }

    fn remove(cluster: &mut Cluster, name: &str) {
        cluster.remove_class(name);
    }

    fn replace(cluster: &mut Cluster, listed: Vec<(String, RuntimeClass)>, _: &[String]) {
        cluster.replace_classes(listed);
    }
}

impl Kind for Namespaces {
    type Object = PartialObjectMeta<NamespaceObject>;
    type Value = Namespace;
    const NAME: &'static str = "Namespace";

    fn read(object: Self::Object) -> Read<Namespace> {
        let (name, metadata) = (object.name_any(), object.metadata);
        let annotations = metadata.annotations.unwrap_or_default();
        Read::Value(name, Namespace::new(metadata.labels.unwrap_or_default(), &annotations))
    }

    fn put(cluster: &mut Cluster, name: String, namespace: Namespace) {
        cluster.put_namespace(name, namespace);
    }

    fn remove(cluster: &mut Cluster, name: &str) {
        cluster.remove_namespace(name);
    }

    fn replace(cluster: &mut Cluster, listed: Vec<(String, Namespace)>, _: &[String]) {
        cluster.replace_namespaces(listed);
    }
}

impl Kind for Policies {
    type Object = DeserializeGuard<WindowsWorkloadPolicy>;
    type Value = WindowsWorkloadPolicy;
    const NAME: &'static str = "WindowsWorkloadPolicy";

    fn read(guard: Self::Object) -> Read<WindowsWorkloadPolicy> {
        match guard.0 {
            Ok(policy) => Read::Value(policy.name_any(), policy),
            Err(invalid) => Read::Unreadable(invalid.metadata.name.unwrap_or_default(), invalid.error),
        }
    }

    fn put(cluster: &mut Cluster, _: String, policy: WindowsWorkloadPolicy) {
        cluster.put_policy(&policy);
    }

    fn remove(cluster: &mut Cluster, name: &str) {
        cluster.remove_policy(name);
    }

    fn replace(cluster: &mut Cluster, listed: Vec<(String, WindowsWorkloadPolicy)>, kept: &[String]) {
        cluster.retain_policies(|name| kept.iter().any(|k| k == name));
        for (_, policy) in listed {
            cluster.put_policy(&policy);
        }
    }
}

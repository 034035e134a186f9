//! What a story is given: a cluster, a namespace of its own, and ways to wait, to look and to act.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt as _};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::SimulatedNode;
use crate::cluster::Cluster;
use crate::shell::{self, Output};
use crate::wait::{self, Look};

/// Long enough for anything that should happen by itself on a machine that also compiles; nothing waits so long that
/// goes well.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// Handed to every story by value; clones are the same context.
#[derive(Clone)]
pub struct Context {
    /// With an administrator's rights.
    pub client: Client,
    /// The cluster: its parts can be stopped and started, its logs read.
    pub cluster: Cluster,
    /// The story's own namespace.
    pub namespace: String,
    /// Cluster-wide objects to delete afterwards, in the order in which they were made.
    pub(super) made: Arc<Mutex<Vec<Made>>>,
}

/// A cluster-wide object that a story made.
pub(super) struct Made {
    pub(super) resource: ApiResource,
    pub(super) name: String,
}

impl Context {
    pub(super) fn new(client: Client, cluster: Cluster, namespace: String) -> Self {
        Self { client, cluster, namespace, made: Arc::default() }
    }

    /// Looks until `look` is done, or `limit` has passed; the error then says what was seen last.
    pub async fn wait_for<T, F>(&self, what: &str, limit: Duration, look: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<Look<T>>>,
    {
        wait::wait_for(what, limit, look).await
    }

    /// Makes a simulated Windows node, which is deleted after the story. It is as its maker described it when this
    /// returns: a new node is tainted `not-ready` until the node controller has seen that it is ready.
    pub async fn simulated_node(&self, node: &SimulatedNode) -> Result<Node> {
        node.create(&self.client).await?;
        self.remember(ApiResource::erase::<Node>(&()), &node.name);
        let nodes: Api<Node> = Api::all(self.client.clone());
        self.wait_for(&format!("node {} to be taken for ready", node.name), PATIENCE, || async {
            let seen = nodes.get(&node.name).await?;
            let taints = seen.spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten();
            let new =
                taints.map(|taint| &taint.key).find(|key| key.starts_with("node.kubernetes.io/not-ready"));
            Ok(new.map_or_else(|| Look::Done(seen.clone()), |key| Look::NotYet(format!("tainted {key}"))))
        })
        .await
    }

    /// Runs kubectl in the story's namespace. The result is what it wrote, warnings on standard error included, and
    /// how it ended: the story judges.
    pub async fn kubectl<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Result<Output> {
        let mut kubectl = self.cluster.kubectl()?;
        shell::output(kubectl.args(["--namespace", &self.namespace]).args(args)).await
    }

    /// Runs kubectl in the story's namespace with something to read, as in `kubectl apply -f -`.
    pub async fn kubectl_with_input<'a>(
        &self,
        args: impl IntoIterator<Item = &'a str>,
        input: &str,
    ) -> Result<Output> {
        let mut kubectl = self.cluster.kubectl()?;
        shell::output_with_input(kubectl.args(["--namespace", &self.namespace]).args(args), input).await
    }

    /// Kills the programs of a pod of `linux-1` with SIGKILL, as a crash would: nothing of theirs is said or given back.
    pub fn kill_containers(&self, pod: &str) -> Result<()> {
        // Every container has its pod's name as its host name, in a variable; pods of a Deployment are unique by it.
        let variable = format!("HOSTNAME={pod}");
        let is_of_pod = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        };
        let processes = fs::read_dir("/proc")?.flatten().filter_map(|p| p.file_name().to_str()?.parse().ok());
        let ours: Vec<i32> = processes.filter(is_of_pod).collect();
        ensure!(!ours.is_empty(), "no process of pod {pod} runs on this machine");
        for pid in ours {
            kill(Pid::from_raw(pid), Signal::SIGKILL)
                .with_context(|| format!("kill a process of pod {pod}"))?;
        }
        Ok(())
    }

    pub(super) fn remember(&self, resource: ApiResource, name: &str) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.iter().any(|known| known.name == name && known.resource == resource) {
            made.push(Made { resource, name: name.to_owned() });
        }
    }

    /// Deletes what the story made cluster-wide, the latest first, and waits until it is gone.
    pub(super) async fn forget(&self) -> Result<()> {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        for object in made.iter().rev() {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &object.resource);
            let what = format!("the deletion of {} {}", object.resource.kind, object.name);
            super::objects::delete(&api, &object.name).await?;
            self.wait_for(&what, PATIENCE, || async {
                Ok(match api.get_metadata_opt(&object.name).await? {
                    None => Look::Done(()),
                    Some(left) => Look::NotYet(format!("finalizers {:?}", left.finalizers())),
                })
            })
            .await?;
        }
        Ok(())
    }
}

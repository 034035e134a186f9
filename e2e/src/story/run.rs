//! Running stories, one after the other, each in a namespace of its own.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow, bail};
use bifold_crds::keys;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};

use super::context::PATIENCE;
use super::{Context, Kind, Story, Telling};
use crate::cluster::Cluster;
use crate::progress::Steps;
use crate::shell;
use crate::wait::{Look, wait_for};

/// What came of everything that was tried.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Tally {
    /// Counts one result, and prints why it failed.
    pub(crate) fn count(&mut self, steps: &Steps, result: Result<()>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(error) => {
                self.failed += 1;
                steps.say(&shell::indented(&format!("{error:#}")));
            }
        }
    }
}

/// A story or a half of one, with all that it takes to run it.
pub(crate) struct Chapter {
    pub(crate) name: String,
    id: String,
    telling: Telling,
    admission: bool,
}

/// The chapters of the chosen stories; of all if none is chosen.
pub(crate) fn chapters(stories: &[Story], only: &[String]) -> Result<Vec<Chapter>> {
    if let Some(unknown) = only.iter().find(|id| !stories.iter().any(|story| story.id == id.as_str())) {
        let known: Vec<&str> = stories.iter().map(|story| story.id).collect();
        bail!("there is no story {unknown:?}; there are: {}", known.join(", "));
    }
    let chosen = stories.iter().filter(|story| only.is_empty() || only.iter().any(|id| id == story.id));
    Ok(chosen.flat_map(Story::chapters).collect())
}

impl Story {
    fn chapters(&self) -> Vec<Chapter> {
        let chapter = |half: &str, telling, admission| Chapter {
            name: format!("{}: {}{half}", self.id, self.title),
            id: self.id.to_owned(),
            telling,
            admission,
        };
        match self.kind {
            Kind::Plain(telling) => vec![chapter("", telling, true)],
            Kind::Placement { with, without } => {
                vec![chapter("", with, true), chapter(", and without Bifold does not", without, false)]
            }
        }
    }
}

impl Chapter {
    /// Tells the story. Whatever comes of it, what it made is removed.
    pub(crate) async fn tell(&self, cluster: &Cluster) -> Result<()> {
        let client = cluster.client().await?;
        let namespace = self.open(&client).await.context("make the story's namespace")?;
        let context = Context::new(client.clone(), cluster.clone(), namespace.clone());
        // A task of its own, so that a panic is this story's error and nothing more.
        let told = tokio::spawn((self.telling)(context.clone())).await;
        let told = told.map_err(anyhow::Error::from).and_then(|result| result);
        let told = match told {
            Err(error) => Err(anyhow!("{error:#}\n{}", evidence(&context).await)),
            Ok(()) => Ok(()),
        };
        cluster.restart_ended().await.context("start again what the story stopped")?;
        let closed = close(&client, &context).await.context("remove what the story made");
        told.and(closed)
    }

    async fn open(&self, client: &Client) -> Result<String> {
        let disabled = (keys::ADMISSION_LABEL.to_owned(), keys::ADMISSION_DISABLED.to_owned());
        let namespace = Namespace {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}-", self.id)),
                labels: (!self.admission).then(|| BTreeMap::from([disabled])),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let made = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        let name = made.metadata.name.context("a namespace without a name")?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &name);
        wait_for("the namespace's default service account", PATIENCE, || async {
            Ok(match accounts.get_opt("default").await? {
                Some(_) => Look::Done(()),
                None => Look::NotYet("none".to_owned()),
            })
        })
        .await?;
        Ok(name)
    }
}

/// Deletes the namespace and what was made outside of it; waits until no pod is left to take room on a node.
async fn close(client: &Client, context: &Context) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete(&context.namespace, &DeleteParams::default()).await?;
    context.forget().await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &context.namespace);
    wait_for("the deletion of the story's pods", PATIENCE, || async {
        let left = pods.list_metadata(&ListParams::default()).await?.items.len();
        Ok(if left == 0 { Look::Done(()) } else { Look::NotYet(format!("{left} pods")) })
    })
    .await
}

/// What a person would look at first when a story has failed.
async fn evidence(context: &Context) -> String {
    let pods = context.kubectl(["get", "pods", "--output=wide"]).await;
    let events = context.kubectl(["get", "events", "--sort-by=.lastTimestamp"]).await;
    let shown =
        [pods, events].map(|output| output.map_or_else(|error| error.to_string(), |output| output.stdout));
    format!("pods and events of the story's namespace:\n{}", shell::tail(&shown.join("\n")))
}

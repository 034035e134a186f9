//! How stories are written.
//!
//! A story is a file in `e2e/scenarios/` about something that a user could tell: what was applied, and on which node
//! the pods were. It talks to the API server (or runs kubectl or Helm) as the user would, and judges by what the API
//! server and the real scheduler made of it: `spec.nodeName`, conditions, events; never by Bifold's own
//! logs. It waits with [`Context::wait_for`] or what is built on it, and never sleeps.
//!
//! Nearly every story about placement has two halves. The second runs in a namespace that is not sent to the webhook
//! (`bifold.dev/admission=disabled`) and asserts the *specific* wrong outcome there; without it, the first half might
//! pass on a cluster where nothing could go wrong. The two are reported as two results.
//!
//! ```text
//! //! One sentence: what a user does, and what must come of it.
//!
//! use std::time::Duration;
//! use anyhow::{Result, ensure};
//! use bifold_e2e::story::{Context, Story, build_of};
//!
//! pub(crate) const STORY: Story = Story::placement(
//!     "win-webserver",
//!     "the docs' win-webserver lands where its image runs",
//!     |ctx| Box::pin(with(ctx)),
//!     |ctx| Box::pin(without(ctx)),
//! );
//!
//! async fn with(ctx: Context) -> Result<()> {
//!     ctx.apply(MANIFEST).await?;
//!     for placed in ctx.placed("app=win-webserver", 2).await? {
//!         ensure!(build_of(&placed.node) == "10.0.20348", "{placed} cannot run the image");
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The file gets a `mod` line and its `STORY` a place in the table of `e2e/scenarios/mod.rs`.
//!
//! What the framework does around a story:
//! - The namespace is fresh, has its default service account, and is deleted afterwards; the next story starts when
//!   its pods are gone.
//! - Cluster-wide objects made through [`Context::apply`] or [`Context::simulated_node`] are deleted afterwards, the
//!   latest first, also when the story fails. What a story makes in another way it removes itself.
//! - Stories run one after the other, so a story may change the cluster (pools, nodes, the release) if it puts back
//!   what it did not make.
//! - An error or a panic fails the story and not the run. The namespace's pods and events are then printed.
//! - Linux containers use the image [`PAUSE_IMAGE`], which ends at once when asked to; Windows images are never pulled,
//!   as Windows nodes are simulated. There is no cluster DNS and no internet.

mod context;
mod look;
mod objects;
mod release;
mod replica;
pub(crate) mod run;

use anyhow::Result;
use futures::future::BoxFuture;

pub use crate::cluster::nodes::linux::PAUSE_IMAGE;
pub use crate::cluster::nodes::simulated::SimulatedNode;
pub use crate::wait::Look;
pub use context::Context;
pub use look::{BUILDS_FOR_LTSC2022, Placed, build_of, node_name, os_of, unschedulable};
pub use release::CHART;
pub use replica::Replica;

/// What a story does, or one half of it.
pub type Telling = fn(Context) -> BoxFuture<'static, Result<()>>;

/// A story: an entry in the table of `e2e/scenarios/mod.rs`.
#[derive(Debug)]
pub struct Story {
    /// Kebab-case, the name of its file; `cargo e2e test --only ID`.
    pub id: &'static str,
    /// What is true when it passes, in a few words.
    pub title: &'static str,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Plain(Telling),
    Placement { with: Telling, without: Telling },
}

impl Story {
    /// A story whose wrong outcome needs no showing: a refusal, a life cycle, a failure survived.
    #[must_use]
    pub const fn plain(id: &'static str, title: &'static str, telling: Telling) -> Self {
        Self { id, title, kind: Kind::Plain(telling) }
    }

    /// A story about where pods are placed; `without` asserts what goes wrong where Bifold does not admit.
    #[must_use]
    pub const fn placement(id: &'static str, title: &'static str, with: Telling, without: Telling) -> Self {
        Self { id, title, kind: Kind::Placement { with, without } }
    }
}

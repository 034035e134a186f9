//! Decides which OS a pod is for, what it lacks to land right, and what is wrong with it.
//!
//! ```text
//! review ─▶ pod ─▶ evidence ─▶ rules ─▶ placement | guard ─▶ decide ─▶ patch ─▶ review
//! (bytes)  (facts)                ▲          ▲                                  (bytes)
//!                              cluster    policy
//! ```
//!
//! Everything here is a function of its arguments: no client, clock, file or environment. The webhook calls
//! [`review()`] with a [`Cluster`] that its watches fill; whoever has a pod and no API server calls [`decide()`].

pub mod applied;
mod case;
pub mod cluster;
pub mod decide;
pub mod evidence;
mod guard;
pub mod image;
pub mod json;
pub mod linux_only;
pub mod patch;
pub mod pattern;
pub mod placed;
pub mod placement;
pub mod pod;
pub mod policy;
pub mod question;
pub mod reach;
pub mod review;
pub mod rules;
pub mod scheduling;
pub mod shown;
pub mod workload;

#[cfg(test)]
mod testing;

pub use cluster::{Cluster, Freshness, Namespace, RuntimeClass, WindowsNode};
pub use decide::{Decision, decide};
pub use patch::patch;
pub use pod::PodView;
pub use policy::Policy;
pub use question::{Request, Subject};
pub use review::{Answer, NoReview, Outcome, review};
pub use rules::{Finding, RULES, rule_ids};
pub use workload::{KINDS, Kind};

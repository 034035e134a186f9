//! The controller of `WindowsNodePool`.
//!
//! ```text
//! watch ─▶ observe ─▶ validate ─▶ plan ─▶ apply ─▶ report
//!          caches     values      pure    writes   status, then events
//! ```
//!
//! # Guarantees
//!
//! What is on a node and was not put there by us stays: labels belong to their field manager (server-side apply),
//! taints are remembered on the node in the write that adds them, and a RuntimeClass without our mark is never
//! touched. Each write can be repeated and each plan starts from what is there, so a process that dies between two
//! writes leaves nothing that the next one does not find. An unchanged world is not written to.
//!
//! # Caveats
//!
//! A node whose label `kubernetes.io/os` is no longer `windows` is out of sight and keeps what it was given.

pub mod apply;
pub mod observe;
pub mod plan;
mod reconcile;
pub mod report;
#[cfg(test)]
mod testing;
pub mod validate;
pub mod watch;

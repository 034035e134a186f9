//! The process that owns all others of a cluster.
//!
//! ```text
//! setsid unshare --pid --mount …     outlives `up`; one process of this machine
//! └─ supervise        process 1 of a PID namespace of its own ([`serve`])
//!    ├─ etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok
//!    ├─ linux-1       holds the node's mount and network namespaces
//!    ├─ containerd, kubelet, kube-proxy    inside those
//!    └─ container shims and containers, adopted
//! ```
//!
//! It starts what it is asked to start ([`client`]), collects what ends, and decides nothing. Because it is process 1
//! of a namespace, its end, by whatever cause, makes the kernel kill everything in the namespace and undo every mount
//! in it; nothing has to be found again by name, and no order of stopping can hang.

pub(crate) mod client;
pub(crate) mod serve;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One program to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Also the name of its log.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// The part whose mount and network namespaces it is started in.
    pub(crate) inside: Option<String>,
}

impl Part {
    pub(crate) fn new(name: &str, program: PathBuf, args: impl IntoIterator<Item = String>) -> Self {
        Self { name: name.to_owned(), program, args: args.into_iter().collect(), inside: None }
    }

    pub(crate) fn inside(self, node: &str) -> Self {
        Self { inside: Some(node.to_owned()), ..self }
    }
}

/// What a part is doing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) part: Part,
    /// As the supervisor sees it, in its PID namespace.
    pub(crate) pid: i32,
    pub(crate) since: jiff::Timestamp,
    /// How it ended, if it has.
    pub(crate) ended: Option<String>,
}

/// A request: one JSON line on a connection of its own.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Start a part. One of the same name that runs is an error; one that ended is replaced.
    Run(Part),
    /// Ask a part to end, and kill it if it has not after so many seconds.
    Stop { name: String, grace: u64 },
    /// Tell what was started, in that order.
    List,
}

/// The answer: one JSON line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The part that was started.
    Started(Running),
    Stopped,
    Parts(Vec<Running>),
    Failed(String),
}

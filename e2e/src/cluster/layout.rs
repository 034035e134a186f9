//! Where one cluster lives: its files, addresses and names, all derived from its name and number.
//!
//! Two clusters share nothing. Each has a bridge, a node network, ranges of pod and service addresses, a loopback
//! address for what must not be reached from outside, a control group and a directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::paths;

/// The port of the API server, on the bridge's address.
const API_PORT: u16 = 6443;
/// Numbers that leave room for every range below: 10.88.N, 10.(100+N), 10.(150+N).
const NUMBERS: std::ops::RangeInclusive<u8> = 1..=50;
/// A unix socket's path has 107 characters at most, and the longest here is some 40 longer than the name.
const LONGEST_NAME: usize = 24;
const RECORD: &str = "cluster.json";

/// A cluster's name and number, and everything that follows from them.
#[derive(Debug, Clone)]
pub struct Layout {
    name: String,
    number: u8,
    directory: PathBuf,
}

/// What is written down about a cluster for later commands.
#[derive(Serialize, Deserialize)]
struct Record {
    number: u8,
}

impl Layout {
    /// Finds the cluster of this name, if it was ever started and not removed since.
    pub fn find(name: &str) -> Result<Option<Self>> {
        let directory = directory_of(name)?;
        let Ok(text) = fs::read_to_string(directory.join(RECORD)) else { return Ok(None) };
        let record: Record = serde_json::from_str(&text).context("read the cluster's record")?;
        Ok(Some(Self { name: name.to_owned(), number: record.number, directory }))
    }

    /// The clusters that were started and not removed since.
    pub fn all() -> Result<Vec<Self>> {
        let Ok(entries) = fs::read_dir(paths::state()?) else { return Ok(Vec::new()) };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let found = names.filter(|name| check_name(name).is_ok()).map(|name| Self::find(&name));
        found.filter_map(Result::transpose).collect()
    }

    /// Takes the lowest number that no cluster and no bridge uses, and writes it down.
    pub(crate) fn reserve(name: &str) -> Result<Self> {
        let directory = directory_of(name)?;
        let state = paths::state()?;
        fs::create_dir_all(&state)?;
        // The directory itself is what is locked: nothing more to create, nothing left over.
        let lock = File::open(&state)?;
        lock.lock().context("lock the list of clusters")?;
        let taken: Vec<u8> = Self::all()?.iter().map(|other| other.number).collect();
        let free = |number: &u8| {
            !taken.contains(number) && !Path::new("/sys/class/net").join(bridge_name(*number)).exists()
        };
        let number = NUMBERS.into_iter().find(free).context("all numbers of clusters are taken")?;
        for part in ["logs", "pki", "conf"] {
            fs::create_dir_all(directory.join(part))?;
        }
        let layout = Self { name: name.to_owned(), number, directory };
        fs::write(layout.path(RECORD), serde_json::to_string(&Record { number })?)?;
        Ok(layout)
    }

    /// The cluster's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory of everything that this cluster keeps.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file or directory of this cluster.
    #[must_use]
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.directory.join(relative)
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    /// The log of one part.
    #[must_use]
    pub fn log(&self, part: &str) -> PathBuf {
        self.path("logs").join(format!("{part}.log"))
    }

    /// What the API server noted about requests for pods and workloads, one JSON object a line.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.path("logs").join("audit.jsonl")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("supervisor.sock")
    }

    /// This program's own copy of itself: the checkout may be built again, or cleaned, while the cluster runs.
    pub(crate) fn program(&self) -> PathBuf {
        self.path("bifold-e2e")
    }

    /// The bridge that the API server listens on and every node is plugged into.
    pub(crate) fn bridge(&self) -> String {
        bridge_name(self.number)
    }

    /// The bridge's own address, and the API server's.
    pub(crate) fn gateway(&self) -> String {
        self.node_address(1)
    }

    /// An address on the bridge: 1 is the API server, 2 to 9 are for Linux nodes, 11 and up for Windows nodes.
    pub(crate) fn node_address(&self, host: u8) -> String {
        format!("10.88.{}.{host}", self.number)
    }

    /// Where the API server is reached from nodes, pods and this machine alike.
    #[must_use]
    pub fn api_server(&self) -> String {
        format!("https://{}:{API_PORT}", self.gateway())
    }

    pub(crate) fn api_port() -> u16 {
        API_PORT
    }

    /// A loopback address of this cluster alone, so that its parts can keep their usual ports.
    pub(crate) fn loopback(&self) -> String {
        format!("127.88.{}.1", self.number)
    }

    /// All pod addresses.
    pub(crate) fn pod_range(&self) -> String {
        format!("10.{}.0.0/16", 100 + self.number)
    }

    /// The pod addresses of the first Linux node.
    pub(crate) fn first_node_pod_range(&self) -> String {
        format!("10.{}.0.0/24", 100 + self.number)
    }

    /// All Service addresses.
    pub(crate) fn service_range(&self) -> String {
        format!("10.{}.0.0/16", 150 + u16::from(self.number))
    }

    /// The address of the Service `kubernetes`.
    pub(crate) fn api_service_address(&self) -> String {
        format!("10.{}.0.1", 150 + u16::from(self.number))
    }

    /// The control group, relative to the root of every hierarchy, that all pods are below.
    pub(crate) fn control_group(&self) -> String {
        format!("bifold-e2e-{}", self.name)
    }
}

fn bridge_name(number: u8) -> String {
    format!("bifold{number}")
}

fn directory_of(name: &str) -> Result<PathBuf> {
    check_name(name)?;
    Ok(paths::state()?.join(name))
}

fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
        bail!("{name:?} cannot name a cluster: use 1 to {LONGEST_NAME} of the characters a-z, 0-9 and -");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(number: u8) -> Layout {
        Layout { name: "x".to_owned(), number, directory: PathBuf::from("/x") }
    }

    #[test]
    fn the_ranges_of_any_two_clusters_are_different() {
        let ranges = |number| {
            let layout = layout(number);
            [layout.gateway(), layout.loopback(), layout.pod_range(), layout.service_range(), layout.bridge()]
        };
        let mut all: Vec<String> = NUMBERS.flat_map(ranges).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn the_last_number_still_makes_addresses() {
        let layout = layout(*NUMBERS.end());
        assert_eq!(layout.service_range(), "10.200.0.0/16");
        assert!(layout.gateway().parse::<std::net::Ipv4Addr>().is_ok());
        assert!(layout.bridge().len() <= 15, "the kernel's limit for an interface name");
    }

    #[test]
    fn a_name_that_is_a_path_is_refused() {
        assert!(check_name("../x").is_err());
        assert!(check_name("Test").is_err());
        assert!(check_name("").is_err());
        assert!(check_name("test-2").is_ok());
    }
}

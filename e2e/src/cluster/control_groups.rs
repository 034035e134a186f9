//! The control group that a cluster's pods are below, in every hierarchy: one in version 2, a dozen in version 1.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::layout::Layout;

/// Makes the group; the kubelet refuses to start without its root.
pub(crate) fn create(layout: &Layout) -> Result<()> {
    for group in groups(layout)? {
        fs::create_dir_all(&group).with_context(|| format!("create {}", group.display()))?;
    }
    Ok(())
}

/// Removes the group and all below it. There is nothing in them any more: the processes are dead.
pub(crate) fn remove(layout: &Layout) -> Result<()> {
    for group in groups(layout)? {
        remove_tree(&group).with_context(|| format!("remove {}", group.display()))?;
    }
    Ok(())
}

fn groups(layout: &Layout) -> Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("read the list of mounts")?;
    Ok(roots(&mounts).into_iter().map(|root| root.join(layout.control_group())).collect())
}

/// Where hierarchies are mounted, including those that control nothing: runc makes groups in them, too.
fn roots(mounts: &str) -> Vec<PathBuf> {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields
        .filter(|fields| matches!(fields.as_slice(), [_, _, "cgroup" | "cgroup2", ..]))
        .map(|fields| PathBuf::from(fields[1]))
        .collect()
}

/// A control group's directory holds files that cannot be removed and need not be: only directories count.
fn remove_tree(group: &Path) -> std::io::Result<()> {
    let entries = match fs::read_dir(group) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_control_groups_are_found() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                      tmpfs /run tmpfs rw 0 0\n";
        assert_eq!(roots(mounts), [Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup/unified")]);
    }
}

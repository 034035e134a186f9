//! Where things are kept: the checkout, the cache that survives `cargo clean`, and the state of running clusters.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// Directories that a Linux node replaces by its own, see [`crate::cluster::nodes::linux`].
/// Whatever runs inside that node could not see a state or cache directory below them.
pub(crate) const NODE_OWNED: [&str; 3] = ["/run", "/var/lib", "/var/log"];

/// The root of the workspace that this program was compiled from.
pub(crate) fn workspace() -> &'static Path {
    let e2e = Path::new(env!("CARGO_MANIFEST_DIR"));
    e2e.parent().unwrap_or(e2e)
}

/// The directory of this crate in the checkout.
pub(crate) fn e2e() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `~/.cache/bifold`: what can be made again, but slowly.
pub(crate) fn cache() -> Result<PathBuf> {
    let base = directories::BaseDirs::new().context("find the home directory of this user")?;
    visible_to_nodes(base.cache_dir().join("bifold"))
}

/// `~/.local/state/bifold/e2e`: one directory for each running cluster.
pub(crate) fn state() -> Result<PathBuf> {
    let base = directories::BaseDirs::new().context("find the home directory of this user")?;
    let state = base.state_dir().context("find the state directory of this user")?;
    visible_to_nodes(state.join("bifold").join("e2e"))
}

fn visible_to_nodes(path: PathBuf) -> Result<PathBuf> {
    match NODE_OWNED.iter().find(|owned| path.starts_with(owned)) {
        Some(owned) => bail!(
            "{} is below {owned}, which a Linux node replaces by its own; set XDG_CACHE_HOME and XDG_STATE_HOME elsewhere",
            path.display()
        ),
        None => Ok(path),
    }
}

/// A short name for content: the first 12 hexadecimal digits of its SHA-256.
pub(crate) fn short_hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    for piece in pieces {
        digest.update(piece);
    }
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&digest.finish().as_ref()[..6]);
    format!("{:012x}", u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_a_node_hides_is_refused() {
        assert!(visible_to_nodes(PathBuf::from("/var/lib/jenkins/.cache/bifold")).is_err());
        assert!(visible_to_nodes(PathBuf::from("/home/ann/.cache/bifold")).is_ok());
    }

    #[test]
    fn the_short_hash_is_the_beginning_of_sha256() {
        assert_eq!(short_hash([b"a".as_slice(), b"bc"]), "ba7816bf8f01");
    }
}

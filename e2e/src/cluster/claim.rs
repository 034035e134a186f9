//! One command at a time brings up a cluster of a given name.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use anyhow::{Context as _, Result};

/// Held while a cluster is brought up or tested. It is a socket without a file, so that it ends with its process,
/// however that ends.
pub(crate) struct Claim {
    _socket: UnixListener,
}

impl Claim {
    /// Claims a name, or fails because another command has.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let address = SocketAddr::from_abstract_name(format!("bifold-e2e-{name}"))?;
        let socket = UnixListener::bind_addr(&address);
        let socket = socket.with_context(|| {
            format!("another `up` or `test` is at work on cluster {name:?}; choose another --name")
        });
        Ok(Self { _socket: socket? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_claimed_once_and_free_afterwards() {
        let name = format!("claimed-by-{}", std::process::id());
        let first = Claim::new(&name).unwrap();
        assert!(Claim::new(&name).is_err());
        drop(first);
        assert!(Claim::new(&name).is_ok());
    }
}

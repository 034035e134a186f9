//! The seam to Windows: everything that is asked of a host goes through [`Host`].
//!
//! Two sides answer: Windows itself, and a [`Recording`] of a host, which works everywhere and on which all logic
//! above is tested. A [`Recorder`] makes the second from the first.

mod recording;
#[cfg(windows)]
mod windows;

pub use recording::{Recorder, Recording};

/// What can be asked of a host.
pub trait Host {
    /// The value `name` of the registry key `key` below `HKEY_LOCAL_MACHINE`.
    fn registry(&self, key: &str, name: &str) -> Result<Value, ReadError>;
}

/// A registry value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `REG_SZ` and `REG_EXPAND_SZ`, the latter with its variables as they stand there.
    Text(String),
    /// `REG_DWORD` and `REG_QWORD`.
    Number(u64),
    /// Any other type; the words say which.
    Other(String),
}

/// Why a value could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such key or no such value.
    #[error("is not there")]
    Missing,
    /// Windows said no; the text is Windows' own.
    #[error("cannot be read: {0}")]
    Refused(String),
}

/// There is no host to read.
#[derive(Debug, thiserror::Error)]
#[error(
    "bifold-node-agent reads Windows hosts only, and this is {0}: read a recorded host with `facts --replay FILE`"
)]
pub struct NotWindows(&'static str);

/// The host that this process runs on.
#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "the other side can fail")]
pub fn this_one() -> Result<Box<dyn Host>, NotWindows> {
    Ok(Box::new(windows::Windows))
}

/// The host that this process runs on.
#[cfg(not(windows))]
pub fn this_one() -> Result<Box<dyn Host>, NotWindows> {
    Err(NotWindows(std::env::consts::OS))
}

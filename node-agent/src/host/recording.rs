//! The side that replays a recorded host, and what records one.
//!
//! A recording is a JSON file that a person can read, cut down and attach to a bug report: every registry value that
//! was asked for, under its key. What is not in it is not on the host.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Host, ReadError, Value};

/// A recording of another form is refused rather than half understood.
const FORMAT: u32 = 1;

/// A recorded host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recording {
    /// The form of the file.
    bifold_host: u32,
    /// Where it comes from, for a person.
    origin: String,
    /// Values by name, by key below `HKEY_LOCAL_MACHINE`.
    registry: BTreeMap<String, BTreeMap<String, Answer>>,
}

/// The one field that every form of a recording has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    bifold_host: u32,
}

/// What the host answered when it was asked for a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    Text(String),
    Number(u64),
    Other(String),
    Refused(String),
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file could not be read.
    #[error("read the recorded host {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is no recording.
    #[error("{path} is not a recorded host")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A later version of the agent recorded it.
    #[error("{path} is a recording of form {found}, and this version reads form {FORMAT}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Its form.
        found: u32,
    },
    /// The file could not be written.
    #[error("write the recorded host to {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Recording {
    /// Reads a recording.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let text = fs::read(path).map_err(|source| RecordingError::Read { path: path.into(), source })?;
        let unreadable = |source| RecordingError::Parse { path: path.into(), source };
        let form: Form = serde_json::from_slice(&text).map_err(unreadable)?;
        if form.bifold_host != FORMAT {
            return Err(RecordingError::Format { path: path.into(), found: form.bifold_host });
        }
        serde_json::from_slice(&text).map_err(unreadable)
    }

    /// Writes the recording; `-` is stdout.
    pub fn write(&self, path: &Path) -> Result<(), RecordingError> {
        let failed = |source| RecordingError::Write { path: path.into(), source };
        let mut text = serde_json::to_vec_pretty(self).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        let written =
            if path == Path::new("-") { io::stdout().write_all(&text) } else { fs::write(path, text) };
        written.map_err(failed)
    }
}

impl Host for Recording {
    fn registry(&self, key: &str, name: &str) -> Result<Value, ReadError> {
        // The registry does not tell upper from lower case.
        let values = self.registry.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v);
        let answer =
            values.and_then(|v| v.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, a)| a));
        match answer.cloned() {
            None => Err(ReadError::Missing),
            Some(Answer::Text(text)) => Ok(Value::Text(text)),
            Some(Answer::Number(number)) => Ok(Value::Number(number)),
            Some(Answer::Other(what)) => Ok(Value::Other(what)),
            Some(Answer::Refused(why)) => Err(ReadError::Refused(why)),
        }
    }
}

/// A host that writes down what it is asked.
pub struct Recorder {
    host: Box<dyn Host>,
    heard: RefCell<Recording>,
}

impl Recorder {
    /// Records what `host` answers.
    #[must_use]
    pub fn new(host: Box<dyn Host>) -> Self {
        let origin = format!("recorded by bifold-node-agent {}", env!("CARGO_PKG_VERSION"));
        let heard = Recording { bifold_host: FORMAT, origin, registry: BTreeMap::new() };
        Self { host, heard: RefCell::new(heard) }
    }

    /// What was heard.
    #[must_use]
    pub fn finish(self) -> Recording {
        self.heard.into_inner()
    }
}

impl Host for Recorder {
    fn registry(&self, key: &str, name: &str) -> Result<Value, ReadError> {
        let answer = self.host.registry(key, name);
        let heard = match answer.clone() {
            Err(ReadError::Missing) => return answer,
            Ok(Value::Text(text)) => Answer::Text(text),
            Ok(Value::Number(number)) => Answer::Number(number),
            Ok(Value::Other(what)) => Answer::Other(what),
            Err(ReadError::Refused(why)) => Answer::Refused(why),
        };
        self.heard.borrow_mut().registry.entry(key.to_owned()).or_default().insert(name.to_owned(), heard);
        answer
    }
}

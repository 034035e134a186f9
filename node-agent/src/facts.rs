//! host -> **facts**: what the host is, and what it does not tell.
//!
//! Nothing here fails. A value that is missing or of another type than Windows documents becomes a [`Gap`], and the
//! rest is reported.

use bifold_crds::{
    WindowsBuild,
    windows_node::{HostFacts, RuntimeFacts},
};
use serde::Serialize;

use crate::host::{Host, ReadError, Value};

const VERSION_KEY: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";
const SERVICES_KEY: &str = r"SYSTEM\CurrentControlSet\Services";
/// Names under which container runtimes register themselves as a service, the preferred one first.
const RUNTIMES: [&str; 2] = ["containerd", "docker"];
/// Programs that run another program as a service; which one stands in the key `Parameters` of the service.
const WRAPPERS: [&str; 1] = ["nssm.exe"];

/// What was found out about a host.
#[derive(Debug, PartialEq, Serialize)]
pub struct Facts {
    /// The Windows installation; absent if not even its build could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostFacts>,
    /// The container runtime; absent if none is installed as a service. Its version and handlers are what only the
    /// runtime itself can tell, so they are empty here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeFacts>,
    /// Every container runtime that is installed as a service, running or not.
    pub services: Vec<Service>,
    /// What could not be found out.
    pub gaps: Vec<Gap>,
}

/// A Windows service that is a container runtime.
#[derive(Debug, PartialEq, Serialize)]
pub struct Service {
    /// The name of the service.
    pub name: String,
    /// What it runs, as the registry has it.
    pub command: String,
}

/// Something that could not be found out.
#[derive(Debug, PartialEq, Serialize)]
pub struct Gap {
    /// Where it should stand, as `key\value` below `HKEY_LOCAL_MACHINE`.
    pub value: String,
    /// What is wrong.
    pub why: String,
}

/// Reads the facts of `host`.
pub fn read(host: &dyn Host) -> Facts {
    let mut registry = Registry { host, gaps: Vec::new() };
    let services: Vec<Service> =
        RUNTIMES.into_iter().filter_map(|name| service(&mut registry, name)).collect();
    Facts {
        runtime: services.first().map(runtime),
        host: windows(&mut registry),
        services,
        gaps: registry.gaps,
    }
}

fn windows(registry: &mut Registry<'_>) -> Option<HostFacts> {
    let build = registry.build();
    // All values are asked for even without a build, so that a recording and the gaps are complete.
    let revision = registry.number(VERSION_KEY, "UBR");
    let mut text = |name| registry.text(VERSION_KEY, name).unwrap_or_default();
    let (product, edition, installation_type) =
        (text("ProductName"), text("EditionID"), text("InstallationType"));
    Some(HostFacts { build: build?.to_string(), revision, product, edition, installation_type })
}

fn service(registry: &mut Registry<'_>, name: &str) -> Option<Service> {
    let key = format!(r"{SERVICES_KEY}\{name}");
    let image_path = registry.optional_text(&key, "ImagePath")?;
    let command = if is_wrapper(&image_path) { registry.wrapped(&key)? } else { image_path };
    Some(Service { name: name.to_owned(), command })
}

fn runtime(service: &Service) -> RuntimeFacts {
    RuntimeFacts {
        name: service.name.clone(),
        endpoint: address(&service.command).unwrap_or_default(),
        ..RuntimeFacts::default()
    }
}

/// Whether the program of a command line runs another one.
fn is_wrapper(command: &str) -> bool {
    let program = words(command).into_iter().next().unwrap_or_default();
    let file = program.rsplit(['\\', '/']).next().unwrap_or_default();
    WRAPPERS.iter().any(|w| w.eq_ignore_ascii_case(file))
}

/// The CRI endpoint that a command line of containerd names: `--address \\.\pipe\x` as `npipe:////./pipe/x`.
fn address(command: &str) -> Option<String> {
    let words = words(command);
    let mut rest = words.iter();
    let pipe = rest.find_map(|word| match word.split_once('=') {
        Some(("--address" | "-address", value)) => Some(value.to_owned()),
        _ => None,
    });
    let pipe = pipe.or_else(|| {
        let at = words.iter().position(|w| matches!(w.as_str(), "--address" | "-address" | "-a"))?;
        words.get(at + 1).cloned()
    })?;
    let path = pipe.replace('\\', "/");
    Some(if path.starts_with("npipe:") { path } else { format!("npipe://{path}") })
}

/// A Windows command line in words: separated by blanks, quotation marks keep blanks together.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut begun) = (String::new(), false, false);
    for c in command.chars() {
        match c {
            '"' => (quoted, begun) = (!quoted, true),
            ' ' | '\t' if !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// The registry of a host, with what it did not tell.
struct Registry<'a> {
    host: &'a dyn Host,
    gaps: Vec<Gap>,
}

impl Registry<'_> {
    /// `CurrentBuildNumber`, or its older name: one of them is on every Windows.
    fn build(&mut self) -> Option<WindowsBuild> {
        let older = || self.host.registry(VERSION_KEY, "CurrentBuild");
        let answer =
            self.host.registry(VERSION_KEY, "CurrentBuildNumber").or_else(|e| older().map_err(|_| e));
        let text = match answer {
            Ok(Value::Text(text)) => text,
            answer => return self.gap(VERSION_KEY, "CurrentBuildNumber", wrong(answer, "a text")),
        };
        match text.parse().ok().and_then(WindowsBuild::from_number) {
            Some(build) => Some(build),
            None => self.gap(
                VERSION_KEY,
                "CurrentBuildNumber",
                format!("is no build of Windows 10 or later: {text:?}"),
            ),
        }
    }

    fn text(&mut self, key: &str, name: &str) -> Option<String> {
        match self.host.registry(key, name) {
            Ok(Value::Text(text)) => Some(text),
            answer => self.gap(key, name, wrong(answer, "a text")),
        }
    }

    /// As `text`, but what is not there is no gap.
    fn optional_text(&mut self, key: &str, name: &str) -> Option<String> {
        match self.host.registry(key, name) {
            Ok(Value::Text(text)) => Some(text),
            Err(ReadError::Missing) => None,
            answer => self.gap(key, name, wrong(answer, "a text")),
        }
    }

    fn number(&mut self, key: &str, name: &str) -> Option<i64> {
        match self.host.registry(key, name) {
            Ok(Value::Number(number)) if i64::try_from(number).is_ok() => i64::try_from(number).ok(),
            answer => self.gap(key, name, wrong(answer, "a number")),
        }
    }

    /// The command that nssm runs as the service of `key`.
    fn wrapped(&mut self, key: &str) -> Option<String> {
        let key = format!(r"{key}\Parameters");
        let program = self.text(&key, "Application")?;
        let program = if program.contains(' ') { format!("\"{program}\"") } else { program };
        Some(match self.optional_text(&key, "AppParameters") {
            Some(parameters) if !parameters.is_empty() => format!("{program} {parameters}"),
            _ => program,
        })
    }

    fn gap<T>(&mut self, key: &str, name: &str, why: String) -> Option<T> {
        self.gaps.push(Gap { value: format!(r"{key}\{name}"), why });
        None
    }
}

/// What is wrong with an answer that is not `wanted`.
fn wrong(answer: Result<Value, ReadError>, wanted: &str) -> String {
    match answer {
        Ok(Value::Text(text)) => format!("is the text {text:?} instead of {wanted}"),
        Ok(Value::Number(number)) => format!("is the number {number} instead of {wanted}"),
        Ok(Value::Other(what)) => format!("is {what} instead of {wanted}"),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_as_windows_writes_it() {
        assert_eq!(
            words(r#""C:\Program Files\containerd\containerd.exe"  --run-service"#),
            [r"C:\Program Files\containerd\containerd.exe", "--run-service"]
        );
        assert_eq!(words(r#"a "" b"#), ["a", "", "b"]);
        assert_eq!(words("  "), [""; 0]);
    }

    #[test]
    fn the_endpoint_is_what_the_command_line_says_and_never_guessed() {
        let pipe = Some("npipe:////./pipe/cri".to_owned());
        for command in [
            r"containerd.exe --run-service --address \\.\pipe\cri",
            r"containerd.exe --address=\\.\pipe\cri --run-service",
            r"containerd.exe -a \\.\pipe\cri",
            "containerd.exe --address npipe:////./pipe/cri",
        ] {
            assert_eq!(address(command), pipe, "{command}");
        }
        for command in ["containerd.exe --run-service", "containerd.exe --address", ""] {
            assert_eq!(address(command), None, "{command}");
        }
    }

    #[test]
    fn a_wrapper_is_known_by_its_file() {
        assert!(is_wrapper(r#""C:\k\NSSM.exe""#));
        assert!(!is_wrapper(r"C:\nssm\containerd.exe nssm.exe"));
        assert!(!is_wrapper(""));
    }
}

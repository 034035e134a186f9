//! facts -> **report**: text for a person, JSON for a program.

use std::{
    fmt,
    io::{self, Write as _},
};

use crate::{args::Output, facts::Facts};

/// Prints the facts to stdout.
pub fn print(facts: &Facts, output: Output) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match output {
        Output::Text => write!(out, "{}", Text(facts)),
        Output::Json => {
            serde_json::to_writer_pretty(&mut out, facts)?;
            writeln!(out)
        }
    }
}

/// The facts as a person reads them.
pub struct Text<'a>(pub &'a Facts);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { host, runtime, services, gaps } = self.0;
        match host {
            None => line(f, "Build", "not known")?,
            Some(host) => {
                match host.revision {
                    Some(revision) => line(f, "Build", &format!("{}, revision {revision}", host.build))?,
                    None => line(f, "Build", &host.build)?,
                }
                for (name, value) in [
                    ("Product", &host.product),
                    ("Edition", &host.edition),
                    ("Installation", &host.installation_type),
                ] {
                    line(f, name, if value.is_empty() { "not known" } else { value })?;
                }
            }
        }
        match runtime {
            None => line(f, "Runtime", "none is installed as a service")?,
            Some(runtime) => line(f, "Runtime", &runtime.name)?,
        }
        for service in services {
            line(f, "Service", &format!("{}: {}", service.name, service.command))?;
        }
        for gap in gaps {
            line(f, "Gap", &format!(r"HKLM\{} {}", gap.value, gap.why))?;
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    writeln!(f, "{name:<14}{value}")
}

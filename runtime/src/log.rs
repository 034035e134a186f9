//! What is logged, and in which form.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::{
    Layer as _,
    filter::Targets,
    fmt,
    layer::SubscriberExt as _,
    util::{SubscriberInitExt as _, TryInitError},
};

/// Flags of the log.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Log")]
pub struct LogArgs {
    /// What is logged: a level, or levels by module, such as `info,kube=debug`.
    #[arg(long = "log", env = "BIFOLD_LOG", default_value = "info", value_name = "FILTER")]
    pub filter: Targets,
    /// The form of a log line.
    #[arg(long = "log-format", env = "BIFOLD_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub format: LogFormat,
}

/// The form of a log line.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For a person; with colours on a terminal.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogArgs {
    /// Starts the log of this process, on stderr.
    pub fn start(self) -> Result<(), TryInitError> {
        let lines = fmt::layer().with_writer(io::stderr);
        let lines = match self.format {
            LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        tracing_subscriber::registry().with(lines.with_filter(self.filter)).try_init()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Process {
        #[command(flatten)]
        log: LogArgs,
    }

    #[test]
    fn the_flags_have_defaults_and_are_checked() {
        let log = Process::parse_from(["p"]).log;
        assert_eq!((log.filter.to_string().as_str(), log.format), ("info", LogFormat::Text));
        assert!(Process::try_parse_from(["p", "--log", "info,kube=loud"]).is_err());
        assert!(Process::try_parse_from(["p", "--log-format", "xml"]).is_err());
    }
}

//! Running other programs: one way to start them, one error that says what was run and what it said.

use std::ffi::OsStr;
use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// How many lines of a failed program's output its error carries.
const LINES_SHOWN: usize = 60;

/// What a program wrote and how it ended.
#[derive(Debug)]
pub struct Output {
    /// Standard output, lossily decoded.
    pub stdout: String,
    /// Standard error, lossily decoded.
    pub stderr: String,
    /// How it ended.
    pub status: ExitStatus,
}

/// A program that dies with the future that waits for it, reads nothing and finds the tools of an administrator.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(true).stdin(Stdio::null()).env("PATH", search_path());
    command
}

/// `PATH` with the administrator's directories, which a plain `su` leaves out.
#[must_use]
pub fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")
}

/// Runs a program to its end and returns what it wrote, whatever its exit status.
pub async fn output(command: &mut Command) -> Result<Output> {
    let shown = describe(command);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("start `{shown}`"))?;
    Ok(finish(&child.wait_with_output().await.with_context(|| format!("run `{shown}`"))?))
}

/// As [`output`], with something to read.
pub async fn output_with_input(command: &mut Command, input: &str) -> Result<Output> {
    let shown = describe(command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("start `{shown}`"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading everything says why by its exit status.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    Ok(finish(&child.wait_with_output().await.with_context(|| format!("run `{shown}`"))?))
}

/// Runs a program that must succeed and returns its standard output.
pub async fn capture(command: &mut Command) -> Result<String> {
    let done = output(command).await?;
    if !done.status.success() {
        bail!(
            "`{}` failed ({}):\n{}",
            describe(command),
            done.status,
            tail(&format!("{}{}", done.stdout, done.stderr))
        );
    }
    Ok(done.stdout)
}

/// The last lines of a long text, indented.
#[must_use]
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    indented(&lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n"))
}

/// A text, indented.
#[must_use]
pub fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

fn finish(done: &std::process::Output) -> Output {
    Output {
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
        status: done.status,
    }
}

fn describe(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

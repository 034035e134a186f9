//! Starting the supervisor, talking to it, and ending it, from an ordinary process of this machine.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::serve::READY;
use super::{Answer, Part, Request, Running};
use crate::cluster::layout::Layout;
use crate::shell;
use crate::wait::{Look, wait_for};

/// The hidden subcommand that [`super::serve`] is.
pub(crate) const SUBCOMMAND: &str = "supervise";
/// After SIGKILL the kernel needs only the time to take the processes apart.
const KILLED_WITHIN: Duration = Duration::from_secs(30);
const OWNERS: &str = "supervisor.json";

/// A process of this machine whose end is the end of the cluster.
///
/// A process id alone may long belong to another process, after a crash and a restart of the machine say; together
/// with the time of its start it is unique.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    pid: i32,
    started: u64,
}

/// A part and where it is found on this machine.
pub(crate) struct Found {
    pub(crate) running: Running,
    /// The process id as this machine sees it.
    pub(crate) pid: Option<i32>,
}

/// Starts the supervisor in a session and namespaces of its own and waits until it serves requests.
pub(crate) async fn start(layout: &Layout) -> Result<()> {
    let log = File::options().create(true).append(true).open(layout.log("supervisor"))?;
    fs::copy("/proc/self/exe", layout.program()).context("copy this program")?;
    let mut command = std::process::Command::new("setsid");
    command
        .args([
            "unshare",
            "--pid",
            "--mount",
            "--propagation=private",
            "--mount-proc",
            "--fork",
            "--kill-child=KILL",
        ])
        .arg(layout.program())
        .arg(SUBCOMMAND)
        .arg(layout.directory())
        .env("PATH", shell::search_path())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    let child = tokio::process::Command::from(command).spawn();
    let mut child = child.context("start setsid and unshare, of the package util-linux")?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).context("the supervisor ended at once")?;
    // Written down before anything can go wrong, so that `down` finds it.
    let outer = Owner::of(pid)?;
    write_owners(layout, &[&outer])?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut said).await?;
    }
    if said.trim() != READY {
        bail!("the supervisor did not start:\n{}", log_tail(&layout.log("supervisor")));
    }
    let inner = Owner::of(ask(layout, &Request::List).await?.1)?;
    write_owners(layout, &[&outer, &inner])
}

/// Kills the supervisor, and with it every process of the cluster. Does nothing where there is none.
pub(crate) async fn end(layout: &Layout) -> Result<()> {
    for owner in owners(layout).iter().filter(|owner| owner.lives()) {
        match kill(Pid::from_raw(owner.pid), Signal::SIGKILL) {
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
            Err(error) => return Err(error).context("kill the supervisor"),
        }
    }
    // The kernel lets process 1 of a namespace go only when all others in it are gone.
    wait_for("the end of the cluster's processes", KILLED_WITHIN, || async {
        Ok(if lives(layout) { Look::NotYet("some are alive".to_owned()) } else { Look::Done(()) })
    })
    .await
}

/// Whether the cluster's processes are there at all.
pub(crate) fn lives(layout: &Layout) -> bool {
    owners(layout).iter().any(Owner::lives)
}

/// Starts a part.
pub(crate) async fn run(layout: &Layout, part: Part) -> Result<Running> {
    let name = part.name.clone();
    match ask(layout, &Request::Run(part)).await?.0 {
        Answer::Started(running) => Ok(running),
        other => refused(&format!("start {name}"), other),
    }
}

/// Asks a part to end; kills it if it has not within the grace period.
pub(crate) async fn stop(layout: &Layout, name: &str, grace: Duration) -> Result<()> {
    let request = Request::Stop { name: name.to_owned(), grace: grace.as_secs() };
    match ask(layout, &request).await?.0 {
        Answer::Stopped => Ok(()),
        other => refused(&format!("stop {name}"), other),
    }
}

/// Everything that was started, in that order.
pub(crate) async fn list(layout: &Layout) -> Result<Vec<Found>> {
    let (answer, supervisor) = ask(layout, &Request::List).await?;
    let Answer::Parts(parts) = answer else { return refused("list the parts", answer) };
    let pids = pids_here(supervisor);
    let found = parts.into_iter().map(|running| Found { pid: pids.get(&running.pid).copied(), running });
    Ok(found.collect())
}

/// The process id, on this machine, of a part that runs.
pub(crate) async fn pid_of(layout: &Layout, name: &str) -> Result<i32> {
    let parts = list(layout).await?;
    let part = parts.iter().find(|part| part.running.part.name == name && part.running.ended.is_none());
    part.and_then(|part| part.pid).with_context(|| format!("{name} is not running"))
}

/// Says that a part which should run has ended, and what it wrote last.
pub(crate) async fn ended(layout: &Layout, name: &str) -> Result<Option<anyhow::Error>> {
    let parts = list(layout).await?;
    let part = parts.iter().find(|part| part.running.part.name == name);
    let how = part.and_then(|part| part.running.ended.as_ref());
    Ok(how.map(|how| anyhow::anyhow!("{name} ended with {how}; it wrote:\n{}", log_tail(&layout.log(name)))))
}

async fn ask(layout: &Layout, request: &Request) -> Result<(Answer, i32)> {
    let stream = UnixStream::connect(layout.socket()).await;
    let mut stream = stream.with_context(|| {
        format!("cluster {0:?} is not running; `cargo e2e up --name {0}` starts it", layout.name())
    })?;
    // The kernel translates the id into this process's namespace.
    let supervisor = stream.peer_cred()?.pid().context("the supervisor has no process id here")?;
    stream.write_all(format!("{}\n", serde_json::to_string(request)?).as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await?;
    Ok((serde_json::from_str(&line).context("the supervisor did not answer")?, supervisor))
}

fn refused<T>(what: &str, answer: Answer) -> Result<T> {
    match answer {
        Answer::Failed(why) => bail!("{what}: {why}"),
        other => bail!("{what}: an answer to another question: {other:?}"),
    }
}

fn owners(layout: &Layout) -> Vec<Owner> {
    let text = fs::read_to_string(layout.path(OWNERS)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn write_owners(layout: &Layout, owners: &[&Owner]) -> Result<()> {
    Ok(fs::write(layout.path(OWNERS), serde_json::to_string(owners)?)?)
}

impl Owner {
    fn of(pid: i32) -> Result<Self> {
        Ok(Self { pid, started: started(pid).context("the supervisor ended at once")? })
    }

    fn lives(&self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// When a process was started, in the kernel's ticks; nothing for one that is gone or only waits to be collected.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may contain anything, so count from its end.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// For every process of the supervisor's PID namespace: its id there, and its id here.
fn pids_here(supervisor: i32) -> HashMap<i32, i32> {
    let namespace = |pid: i32| fs::read_link(PathBuf::from(format!("/proc/{pid}/ns/pid"))).ok();
    let wanted = namespace(supervisor);
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let members = pids.filter(|pid| wanted.is_some() && namespace(*pid) == wanted);
    members.filter_map(|pid| Some((innermost_pid(pid)?, pid))).collect()
}

fn innermost_pid(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// The end of a log, for an error message.
pub(crate) fn log_tail(path: &Path) -> String {
    shell::tail(&fs::read_to_string(path).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_apart_by_its_start() {
        let me = i32::try_from(std::process::id()).unwrap();
        let owner = Owner { pid: me, started: started(me).unwrap() };
        assert!(owner.lives());
        assert!(!Owner { started: owner.started + 1, ..owner }.lives());
    }
}

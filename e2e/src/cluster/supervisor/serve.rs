//! The supervisor itself: process 1 of the cluster's PID namespace. Synchronous and small, because nothing outlives it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::{Answer, Part, Request, Running};
use crate::shell;

/// Written to standard output when requests are served.
pub(super) const READY: &str = "ready";

/// Serves requests until a signal says to end. Everything that was started ends with it.
pub(crate) fn serve(directory: &Path) -> Result<()> {
    if !nix::unistd::getpid().eq(&Pid::from_raw(1)) {
        bail!("the supervisor must be process 1 of a PID namespace; `cargo e2e up` starts it");
    }
    // Before any thread exists, so that all threads inherit it and only `wait` below sees these signals.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.thread_block().context("block signals")?;

    let listener = UnixListener::bind(directory.join("supervisor.sock")).context("listen for requests")?;
    let parts =
        Arc::new(Parts { logs: directory.join("logs"), list: Mutex::default(), changed: Condvar::new() });
    let serving = Arc::clone(&parts);
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let parts = Arc::clone(&serving);
            std::thread::spawn(move || {
                if let Err(error) = parts.answer(&connection) {
                    eprintln!("a request failed: {error:#}");
                }
            });
        }
    });
    // Fails when `up` is gone by now, and with this process goes everything that it left.
    writeln!(std::io::stdout(), "{READY}").context("report to `up`")?;
    loop {
        match signals.wait().context("wait for a signal")? {
            Signal::SIGCHLD => parts.collect(),
            _ => return Ok(()),
        }
    }
}

struct Parts {
    logs: PathBuf,
    list: Mutex<Vec<Running>>,
    /// A part has ended.
    changed: Condvar,
}

impl Parts {
    fn answer(&self, connection: &UnixStream) -> Result<()> {
        let mut line = String::new();
        BufReader::new(connection).read_line(&mut line)?;
        let answer = match serde_json::from_str(&line)? {
            Request::Run(part) => self.run(part).map(Answer::Started),
            Request::Stop { name, grace } => {
                self.stop(&name, Duration::from_secs(grace)).map(|()| Answer::Stopped)
            }
            Request::List => Ok(Answer::Parts(self.lock().clone())),
        };
        let answer = answer.unwrap_or_else(|error| Answer::Failed(format!("{error:#}")));
        let mut connection = connection;
        Ok(writeln!(connection, "{}", serde_json::to_string(&answer)?)?)
    }

    fn run(&self, part: Part) -> Result<Running> {
        // Held over the start, so that `collect` cannot see the end of a process that is not in the list yet.
        let mut list = self.lock();
        if list.iter().any(|other| other.part.name == part.name && other.ended.is_none()) {
            bail!("{} is already running", part.name);
        }
        let mut command = match &part.inside {
            None => Command::new(&part.program),
            Some(node) => {
                let holder = list.iter().find(|other| &other.part.name == node && other.ended.is_none());
                let pid = holder.with_context(|| format!("{node} is not running"))?.pid;
                let mut command = Command::new("nsenter");
                // `--wd`: the working directory of this process is not the node's.
                command.args(["--target", &pid.to_string(), "--mount", "--net", "--uts", "--wd=/", "--"]);
                command.arg(&part.program);
                command
            }
        };
        let log =
            File::options().create(true).append(true).open(self.logs.join(format!("{}.log", part.name)))?;
        let child = command
            .args(&part.args)
            .current_dir("/")
            .env("PATH", shell::search_path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", part.program.display()))?;
        let running = Running {
            pid: i32::try_from(child.id()).context("a process id that is no i32")?,
            since: jiff::Timestamp::now(),
            ended: None,
            part,
        };
        list.retain(|other| other.part.name != running.part.name);
        list.push(running.clone());
        Ok(running)
    }

    fn stop(&self, name: &str, grace: Duration) -> Result<()> {
        let list = self.lock();
        let Some(pid) = alive(&list, name) else { bail!("{name} is not running") };
        kill(pid, Signal::SIGTERM)?;
        let still_alive = |list: &mut Vec<Running>| alive(list, name) == Some(pid);
        let (list, waited) =
            self.changed.wait_timeout_while(list, grace, still_alive).unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            kill(pid, Signal::SIGKILL)?;
            drop(self.changed.wait_while(list, still_alive).unwrap_or_else(PoisonError::into_inner));
        }
        Ok(())
    }

    /// Collects every process that has ended: parts, and orphans that process 1 inherits.
    fn collect(&self) {
        let mut list = self.lock();
        loop {
            let (pid, how) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, format!("exit code {code}")),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, format!("signal {signal}")),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => break,
                Ok(_) | Err(_) => continue,
            };
            if let Some(running) =
                list.iter_mut().find(|part| part.pid == pid.as_raw() && part.ended.is_none())
            {
                eprintln!("{}: {} ended with {how}", jiff::Timestamp::now(), running.part.name);
                running.ended = Some(how);
            }
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn alive(list: &[Running], name: &str) -> Option<Pid> {
    let running = list.iter().find(|part| part.part.name == name && part.ended.is_none())?;
    Some(Pid::from_raw(running.pid))
}

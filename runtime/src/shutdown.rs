//! When the platform asks this process to stop.

use std::{io, process};

use tokio_util::sync::CancellationToken;

/// Exit code after a second signal: the work was not finished.
const INTERRUPTED: i32 = 130;

/// A token that the first signal cancels; a second one ends the process at once.
///
/// The handlers are in place when this returns, so no signal is lost. Must be called inside a tokio runtime.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut signals = Signals::register()?;
    let stop = CancellationToken::new();
    let cancel = stop.clone();
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("asked to stop");
        cancel.cancel();
        signals.next().await;
        tracing::warn!("asked to stop a second time: leaving at once");
        process::exit(INTERRUPTED);
    });
    Ok(stop)
}

#[cfg(unix)]
struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn register() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! { _ = self.term.recv() => {}, _ = self.int.recv() => {} }
    }
}

/// A Windows container is stopped by `CTRL_SHUTDOWN_EVENT`, which `tokio::signal::ctrl_c` does not see.
#[cfg(windows)]
struct Signals {
    c: tokio::signal::windows::CtrlC,
    brk: tokio::signal::windows::CtrlBreak,
    close: tokio::signal::windows::CtrlClose,
    down: tokio::signal::windows::CtrlShutdown,
}

#[cfg(windows)]
impl Signals {
    fn register() -> io::Result<Self> {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};
        Ok(Self { c: ctrl_c()?, brk: ctrl_break()?, close: ctrl_close()?, down: ctrl_shutdown()? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.c.recv() => {}, _ = self.brk.recv() => {}, _ = self.close.recv() => {}, _ = self.down.recv() => {}
        }
    }
}

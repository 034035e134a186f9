//! Showing what is being done and how long it takes: a spinner in a terminal, plain lines elsewhere.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Without a terminal, a step that takes longer says so this often.
const STILL_AT_IT: Duration = Duration::from_secs(30);

/// The steps of one command and the time that each has taken.
pub(crate) struct Steps {
    bars: Option<MultiProgress>,
    done: Mutex<Vec<(String, Duration)>>,
    started: Instant,
}

impl Steps {
    pub(crate) fn new() -> Self {
        let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
        Self { bars, done: Mutex::new(Vec::new()), started: Instant::now() }
    }

    /// Does one step. Its name becomes the context of its error.
    pub(crate) async fn run<T>(&self, name: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        let bar = self.bars.as_ref().map(|bars| bars.add(spinner(name)));
        let started = Instant::now();
        let result = match bar {
            Some(_) => work.await,
            None => with_reminders(name, started, work).await,
        };
        let took = started.elapsed();
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        let mark = match &result {
            Ok(_) => console::style("✓").green(),
            Err(_) => console::style("✗").red(),
        };
        self.say(&format!(
            "{} {name} {}",
            mark.for_stderr(),
            console::style(seconds(took)).dim().for_stderr()
        ));
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), took));
        result.with_context(|| name.to_owned())
    }

    /// Writes a line without disturbing the spinners.
    pub(crate) fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// What took how long, ending with the whole.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["step", "seconds"]);
        for (name, took) in self.done.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            table.add_row([name.clone(), format!("{:.1}", took.as_secs_f64())]);
        }
        table.add_row(["all".to_owned(), format!("{:.1}", self.started.elapsed().as_secs_f64())]);
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// A duration as a person reads it: `0.4 s`, `2 min 05 s`.
pub(crate) fn seconds(took: Duration) -> String {
    match took.as_secs() {
        0..60 => format!("{:.1} s", took.as_secs_f64()),
        whole => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}

fn spinner(name: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(name.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg} {elapsed:.dim}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

async fn with_reminders<T>(name: &str, started: Instant, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + STILL_AT_IT, STILL_AT_IT);
    loop {
        tokio::select! {
            result = &mut work => return result,
            _ = tick.tick() => eprintln!("… {name}: {} so far", seconds(started.elapsed())),
        }
    }
}

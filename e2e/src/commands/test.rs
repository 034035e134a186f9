//! `cargo e2e test`: everything that is tested, and a cluster that is gone afterwards, whatever happens.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::args::Test;
use crate::checks;
use crate::cluster::claim::Claim;
use crate::cluster::layout::Layout;
use crate::cluster::stop;
use crate::progress::Steps;
use crate::story::Story;
use crate::story::run::{Tally, chapters};
use crate::tools::Tools;

/// Runs the tests. The last line says how many passed and failed; any failure is a failure of the whole.
pub(crate) async fn test(args: Test, stories: &'static [Story]) -> Result<ExitCode> {
    let _claim = Claim::new(&args.name)?;
    let steps = Arc::new(Steps::new());
    let tally = Arc::new(Mutex::new(Tally::default()));
    let (name, keep) = (args.name.clone(), args.keep);
    // Neither a panic nor a signal may leave a cluster behind, so the work is a task that this function outlives.
    let mut work = tokio::spawn(everything(args, stories, Arc::clone(&steps), Arc::clone(&tally)));
    let mut terminated = signal(SignalKind::terminate())?;
    let ended = tokio::select! {
        ended = &mut work => ended.map_err(anyhow::Error::from).and_then(|result| result),
        _ = tokio::signal::ctrl_c() => Err(end(work, "interrupted").await),
        _ = terminated.recv() => Err(end(work, "terminated").await),
    };

    let mut tally = tally.lock().await;
    if let Err(error) = ended {
        tally.count(&steps, Err(error));
    }
    if keep {
        steps.say(&format!("the cluster is left running: `cargo e2e down --name {name}` removes it"));
    } else if let Some(layout) = Layout::find(&name)? {
        let removed = steps.run("remove the cluster", stop::stop(&layout)).await;
        if removed.is_err() {
            tally.count(&steps, removed);
        }
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Ends the work. Once it is dropped, and with it every program that it runs, nothing new can appear.
async fn end(work: JoinHandle<Result<()>>, why: &'static str) -> anyhow::Error {
    work.abort();
    let _ = work.await;
    anyhow!(why)
}

async fn everything(
    args: Test,
    stories: &[Story],
    steps: Arc<Steps>,
    tally: Arc<Mutex<Tally>>,
) -> Result<()> {
    let chapters = chapters(stories, &args.only)?;
    crate::machine::prepare(&steps).await?;
    let tools = Tools::build(&steps).await?;
    // Only this task counts until it has ended.
    let mut tally = tally.lock().await;
    if !args.no_unit {
        checks::run(&steps, &tools, &mut tally).await?;
    }
    if let Some(layout) = Layout::find(&args.name)? {
        steps.run("remove the cluster of a former run", stop::stop(&layout)).await?;
    }
    let cluster = super::bring_up(&steps, &args.name, true).await.context("bring up the tests' cluster")?;
    for chapter in chapters {
        let told = steps.run(&chapter.name, chapter.tell(&cluster)).await;
        tally.count(&steps, told);
    }
    Ok(())
}

//! `tollgate demo`: a small simulated fleet on a temporary file, which calls mock providers in this process.

mod accounts;
mod events;
mod fleet;
mod screen;
mod summary;
mod tally;
mod view;

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tollgate::store::Backend;
use tollgate::{Limiter, Span};
use tollgate_file::FileStore;

use self::fleet::Fleet;
use self::screen::DemoScreen;
use self::summary::DemoSummary;
use self::view::DemoView;
use crate::args::DemoArgs;
use crate::context::Context;
use crate::output::Output;

/// The default duration.
const SECONDS: u16 = 15;

/// The default duration where examples have to be quick.
const SECONDS_QUICK: u16 = 2;

/// The refresh interval of the table.
const FRAME: Duration = Duration::from_millis(200);

/// Runs the fleet, and prints a summary.
pub(super) fn run(context: &Context, args: DemoArgs) -> Result<Output> {
    let is_quick = std::env::var_os("TOLLGATE_EXAMPLE_QUICK").is_some();
    let seconds = args.seconds.unwrap_or(if is_quick { SECONDS_QUICK } else { SECONDS });
    // A short seed is easy to type.
    let seed = args.seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 100_000);
    // Before the directory is created, so that no signal leaves it behind.
    let endings = DemoSignals::listen()?;
    let folder = DemoFolder::new()?;
    let store =
        FileStore::open(folder.0.join("demo.db")).context("the file of the demo cannot be created")?;
    let store: Arc<dyn Backend> = Arc::new(store);
    let fleet = Fleet::open(&store, seed)?;
    let limiter = Limiter::open(store, "demo").wait()?;
    fleet.store_limits(&limiter)?;
    let mut screen = DemoScreen::new(context);
    let watched =
        fleet.work(&limiter, seed, || watch(&fleet, &limiter, &mut screen, &endings, seconds.into()));
    if let Some(signal) = endings.wants_no_summary() {
        drop((fleet, limiter, folder));
        return end_as(signal);
    }
    let seconds = watched?;
    screen.end()?;
    Ok(Output::new(DemoSummary::of(&fleet, &limiter, (seconds, args.seconds), seed)?))
}

/// Shows the fleet until the time is over or a signal ends it. Returns the seconds that passed.
fn watch(
    fleet: &Fleet,
    limiter: &Limiter,
    screen: &mut DemoScreen,
    endings: &DemoSignals,
    seconds: u64,
) -> Result<u64> {
    let clock = limiter.catalog().backend().clock();
    let begin = clock.now();
    loop {
        let passed = clock.now().since(begin);
        let is_over = passed >= Span::from_secs(seconds) || endings.last().is_some();
        let done = passed.as_micros() / 1_000_000;
        screen.show(&DemoView::of(fleet, limiter)?, done.min(seconds), seconds)?;
        if is_over {
            return Ok(done.min(seconds));
        }
        pause(FRAME);
    }
}

/// The last signal: Ctrl-C ends the demo with a summary, others end it as soon as its directory is deleted.
struct DemoSignals(Arc<AtomicUsize>);

impl DemoSignals {
    fn listen() -> Result<DemoSignals> {
        let last = Arc::<AtomicUsize>::default();
        #[cfg(unix)]
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, Arc::clone(&last), usize::try_from(signal)?)?;
        }
        Ok(DemoSignals(last))
    }

    fn last(&self) -> Option<i32> {
        i32::try_from(self.0.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }

    #[cfg(unix)]
    fn wants_no_summary(&self) -> Option<i32> {
        self.last().filter(|signal| *signal != SIGINT)
    }

    #[cfg(not(unix))]
    fn wants_no_summary(&self) -> Option<i32> {
        None
    }
}

/// Ends the process as the signal would without a handler, so that the parent sees it.
fn end_as(signal: i32) -> Result<Output> {
    #[cfg(unix)]
    signal_hook::low_level::emulate_default_handler(signal)?;
    anyhow::bail!("ended by signal {signal}")
}

/// Sleeps.
#[expect(clippy::disallowed_methods, reason = "simulated calls take time, and so do frames")]
fn pause(length: Duration) {
    std::thread::sleep(length);
}

/// A temporary directory that is deleted on drop.
struct DemoFolder(PathBuf);

impl DemoFolder {
    fn new() -> Result<DemoFolder> {
        let name = format!("tollgate-demo-{}-{:x}", std::process::id(), RandomState::new().hash_one(1));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).with_context(|| format!("{} cannot be created", path.display()))?;
        Ok(DemoFolder(path))
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        // An error is ignored: the system cleans its directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

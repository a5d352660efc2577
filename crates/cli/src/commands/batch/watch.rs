//! Progress of a running batch: a bar on a terminal, a line at intervals elsewhere.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use tollgate::{Clock, Tick};
use tollgate_batch::Run;

use super::bar::BatchBar;
use super::input::BadLines;
use super::last_error::LastError;
use super::progress::Snapshot;
use super::throughput::Throughput;
use crate::context::Context;
use crate::output::Format;

/// The refresh interval of the bar.
const ON_A_TERMINAL: Duration = Duration::from_millis(200);

/// The interval of lines elsewhere.
const ELSEWHERE: Duration = Duration::from_secs(30);

/// Shows the progress of a batch on stderr.
pub(crate) struct ProgressView<'a> {
    context: &'a Context,
    how: WatchStyle,
    every: Interval,
    clock: Clock,
    began: Tick,
    total: Option<u64>,
    bad: Arc<BadLines>,
    last_error: LastError,
    throughput: Throughput,
}

/// How progress is shown.
enum WatchStyle {
    Bar(BatchBar),
    Lines,
    /// With `--quiet`, or with `--json`.
    Nothing,
}

impl<'a> ProgressView<'a> {
    /// Starts the view. Must be called in a runtime.
    pub(crate) fn new(
        context: &'a Context,
        total: Option<u64>,
        bad: Arc<BadLines>,
        last_error: LastError,
    ) -> ProgressView<'a> {
        let how = how(context, total);
        let mut every = interval(if matches!(how, WatchStyle::Bar(_)) { ON_A_TERMINAL } else { ELSEWHERE });
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        every.reset();
        let clock = Clock::system();
        let throughput = Throughput::new();
        ProgressView { context, how, every, began: clock.now(), clock, total, bad, last_error, throughput }
    }

    /// Waits until the next refresh.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the next call returns at the same time.
    pub(crate) async fn due(&mut self) {
        self.every.tick().await;
    }

    /// Shows the progress of the batch.
    pub(crate) fn show<O: Send + 'static>(&mut self, run: &Run<O>) {
        if matches!(self.how, WatchStyle::Nothing) {
            return;
        }
        let snapshot = self.snapshot(run);
        match &self.how {
            WatchStyle::Bar(bar) => bar.draw(&snapshot),
            WatchStyle::Lines => self.context.note(snapshot.line()),
            WatchStyle::Nothing => {}
        }
    }

    /// Prints a warning to stderr: above the bar, if there is one.
    pub(crate) fn warn(&self, reason: &str) {
        match &self.how {
            WatchStyle::Bar(bar) => bar.suspend(|| self.context.warn(reason)),
            WatchStyle::Lines | WatchStyle::Nothing => self.context.warn(reason),
        }
    }

    /// Stops refreshing: the batch is shutting down, and its summary comes below the last view.
    pub(crate) fn end(&mut self) {
        if let WatchStyle::Bar(bar) = std::mem::replace(&mut self.how, WatchStyle::Nothing) {
            bar.leave();
        }
    }

    fn snapshot<O: Send + 'static>(&mut self, run: &Run<O>) -> Snapshot {
        let counts = run.progress();
        let ended = counts.done + counts.failed;
        let elapsed = self.clock.now().since(self.began).to_duration();
        self.throughput.record(elapsed, ended);
        let finished = ended + counts.skipped + self.bad.count();
        let left = self.total.unwrap_or(0).saturating_sub(finished);
        Snapshot {
            counts,
            finished,
            total: self.total,
            per_second: self.throughput.per_second(),
            eta: self.throughput.eta(left),
            scopes: run.scopes(),
            last_error: self.last_error.text(),
        }
    }
}

fn how(context: &Context, total: Option<u64>) -> WatchStyle {
    // Events and a bar on the same terminal would overwrite each other.
    let is_for_programs = context.format == Format::Json;
    if context.is_quiet() || is_for_programs && io::stdout().is_terminal() {
        WatchStyle::Nothing
    } else if context.terminal.writes_over() {
        WatchStyle::Bar(BatchBar::new(total, context.terminal.width))
    } else if is_for_programs {
        WatchStyle::Nothing
    } else {
        WatchStyle::Lines
    }
}

//! Progress of a running batch: a bar on a terminal, a line now and then elsewhere.

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

/// How often the bar is drawn anew.
const ON_A_TERMINAL: Duration = Duration::from_millis(200);

/// How often a line is written elsewhere, where each one stays.
const ELSEWHERE: Duration = Duration::from_secs(30);

/// Shows how a batch goes on, on stderr.
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
    /// With `--quiet`, or to a program that reads events.
    Nothing,
}

impl<'a> ProgressView<'a> {
    /// Begins to watch. To be called in a runtime.
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
        let (clock, throughput) = (Clock::system(), Throughput::new());
        ProgressView { context, how, every, began: clock.now(), clock, total, bad, last_error, throughput }
    }

    /// Waits until progress is to be shown.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it is due all the same.
    pub(crate) async fn due(&mut self) {
        self.every.tick().await;
    }

    /// Shows how the batch stands.
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

    /// Says something on stderr that stays there: above the bar, if there is one.
    pub(crate) fn note(&self, note: &str) {
        match &self.how {
            WatchStyle::Bar(bar) => bar.suspend(|| self.context.note(note)),
            WatchStyle::Lines | WatchStyle::Nothing => self.context.note(note),
        }
    }

    /// Shows nothing more: the batch is asked to end, and what it says then comes below what it has shown.
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
    // Events and a bar on the same terminal would write over each other.
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

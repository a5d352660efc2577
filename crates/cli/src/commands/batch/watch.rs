//! How far a batch has come, for those who wait for it.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use tollgate_batch::Progress as Counts;

use crate::context::Context;
use crate::output::{Format, Progress, grouped};

/// How often the line on a terminal is written anew.
const ON_A_TERMINAL: Duration = Duration::from_millis(200);

/// How often a line is written elsewhere, where each one stays.
const ELSEWHERE: Duration = Duration::from_secs(30);

/// One line that is written over on a terminal, a line now and then elsewhere, nothing for programs.
pub(crate) struct Watch<'a> {
    context: &'a Context,
    line: Progress,
    every: Interval,
    total: Option<u64>,
    /// How many were finished at each look of the last ten seconds.
    recent: Vec<u64>,
}

impl<'a> Watch<'a> {
    /// To be called in a runtime.
    pub(crate) fn new(context: &'a Context, total: Option<u64>) -> Watch<'a> {
        let every = if context.terminal.writes_over() { ON_A_TERMINAL } else { ELSEWHERE };
        let mut every = interval(every);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        every.reset();
        Watch { context, line: Progress::new(&context.terminal), every, total, recent: vec![0] }
    }

    /// Waits until something is to be shown.
    pub(crate) async fn due(&mut self) {
        self.every.tick().await;
    }

    /// Shows how it stands.
    pub(crate) fn show(&mut self, counts: &Counts) {
        let line = self.text(counts);
        if self.context.terminal.writes_over() {
            self.line.show(line);
        } else if self.context.format == Format::Text {
            self.context.note(line);
        }
    }

    fn text(&mut self, counts: &Counts) -> String {
        let finished = counts.done + counts.failed;
        self.recent.push(finished);
        // Ten seconds of it.
        let kept = (10_000 / self.every.period().as_millis().max(1) as usize).max(1) + 1;
        if self.recent.len() > kept {
            self.recent.remove(0);
        }
        let span_ms = (self.recent.len() as u64 - 1) * self.every.period().as_millis() as u64;
        let tenths = (finished - self.recent[0]) * 10_000 / span_ms.max(1);
        let of = self.total.map_or(String::new(), |total| format!(" of {}", grouped(total)));
        let mut line = format!("{}{of} done", grouped(finished + counts.skipped));
        let parts = [
            (counts.failed, "failed"),
            (counts.in_flight, "under way"),
            (counts.rejected, "told to wait"),
            (counts.generations, "cooldowns"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            line.push_str(&format!(", {} {what}", grouped(count)));
        }
        line.push_str(&format!(", {}.{}/s", tenths / 10, tenths % 10));
        line
    }
}

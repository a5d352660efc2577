//! The live table: a row for each process.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// A process, and those that had its place before.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) pid: AtomicU32,
    calls: AtomicU64,
    kills: AtomicU64,
}

impl Row {
    pub(crate) fn called(&self) {
        self.calls.fetch_add(1, Relaxed);
    }

    pub(crate) fn killed(&self) {
        self.kills.fetch_add(1, Relaxed);
    }

    fn line(&self, index: usize) -> String {
        let (pid, calls, kills) =
            (self.pid.load(Relaxed), self.calls.load(Relaxed), self.kills.load(Relaxed));
        let bar = "#".repeat((calls / 8).min(36) as usize);
        format!(" {index:<8} {pid:>8} {kills:>7} {calls:>7}  {bar}")
    }
}

/// All of them.
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    /// How many lines were drawn before, or how many seconds were reported.
    drawn: AtomicUsize,
}

impl Table {
    pub(crate) fn new(rows: usize) -> Table {
        Table { rows: (0..rows).map(|_| Row::default()).collect(), drawn: AtomicUsize::new(0) }
    }

    /// Draws over what was drawn before; where the output is no terminal, prints a line each second.
    pub(crate) fn show(&self, elapsed: Duration, lasts: Duration) {
        if std::io::stdout().is_terminal() {
            return self.draw(elapsed, lasts);
        }
        if elapsed.as_secs() as usize >= self.drawn.load(Relaxed) {
            self.drawn.fetch_add(1, Relaxed);
            println!("{}", self.in_one_line(elapsed));
        }
    }

    /// Shows how it ended.
    pub(crate) fn finish(&self, lasts: Duration) {
        if std::io::stdout().is_terminal() {
            return self.draw(lasts, lasts);
        }
        println!("{}", self.in_one_line(lasts));
    }

    fn draw(&self, elapsed: Duration, lasts: Duration) {
        let clock = format!("{:.1} of {:.1} s", elapsed.as_secs_f64(), lasts.as_secs_f64());
        let mut lines = vec![format!(" workers in {} processes, one limit {clock:>36}", self.rows.len())];
        lines.push(format!(" {:<8} {:>8} {:>7} {:>7}", "process", "pid", "killed", "calls"));
        lines.extend(self.rows.iter().enumerate().map(|(index, row)| row.line(index)));
        let above = self.drawn.swap(lines.len(), Relaxed);
        let mut frame = if above > 0 { format!("\x1b[{above}A") } else { String::new() };
        lines.iter().for_each(|line| frame.push_str(&format!("{line}\x1b[K\n")));
        let mut out = std::io::stdout().lock();
        // The terminal may be gone: that is no reason to stop.
        let _ = out.write_all(frame.as_bytes()).and_then(|()| out.flush());
    }

    fn in_one_line(&self, elapsed: Duration) -> String {
        let sum = |of: fn(&Row) -> &AtomicU64| self.rows.iter().map(|row| of(row).load(Relaxed)).sum::<u64>();
        let (calls, kills) = (sum(|row| &row.calls), sum(|row| &row.kills));
        format!("{:4.1} s  {calls} calls, {kills} processes killed and started again", elapsed.as_secs_f64())
    }
}

//! How a gathering goes on, for people who look at it.

use std::io::{IsTerminal, Write};

/// How far a gathering has come.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tollgate::workers::{JobTally, WorkerPool};
///
/// let pool = WorkerPool::threads(2).build(|_, n: u64| Ok::<_, std::fmt::Error>(n))?;
/// let (last, seen) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(0)));
/// let (kept, count) = (Arc::clone(&last), Arc::clone(&seen));
/// pool.gather_with(0..3, move |tally: JobTally| {
///     *kept.lock().unwrap() = Some(tally);
///     *count.lock().unwrap() += 1;
/// }).wait();
/// assert_eq!(*last.lock().unwrap(), Some(JobTally { done: 3, failed: 0, total: Some(3) }));
/// assert_eq!(*seen.lock().unwrap(), 4, "at the beginning, and after every job");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTally {
    /// How many are done, whatever came of them.
    pub done: usize,
    /// How many of those have no result.
    pub failed: usize,
    /// How many there are, if that is known.
    pub total: Option<usize>,
}

/// Is notified of the progress of a gathering: at its beginning, and after every job.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tollgate::workers::{JobTally, WorkerPool};
///
/// let pool = WorkerPool::threads(2).build(|_, n: u64| Ok::<_, std::fmt::Error>(n))?;
/// let (last, seen) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(0)));
/// let (kept, count) = (Arc::clone(&last), Arc::clone(&seen));
/// pool.gather_with(0..3, move |tally: JobTally| {
///     *kept.lock().unwrap() = Some(tally);
///     *count.lock().unwrap() += 1;
/// }).wait();
/// assert_eq!(*last.lock().unwrap(), Some(JobTally { done: 3, failed: 0, total: Some(3) }));
/// assert_eq!(*seen.lock().unwrap(), 4, "at the beginning, and after every job");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ProgressObserver {
    /// So far it has come.
    fn observe(&mut self, tally: JobTally);
}

impl<F: FnMut(JobTally)> ProgressObserver for F {
    fn observe(&mut self, tally: JobTally) {
        self(tally);
    }
}

/// A bar on a terminal; without a terminal, nothing.
///
/// ```
/// use tollgate::workers::{Bar, WorkerPool};
///
/// let pool = WorkerPool::threads(2).build(|_, n: u64| Ok::<_, std::fmt::Error>(n))?;
/// assert_eq!(pool.gather_with(0..3, Bar::stderr()).wait().len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Bar<W> {
    out: Option<W>,
    drawn: String,
}

/// How many characters the bar is wide.
const WIDTH: usize = 30;

impl Bar<std::io::Stderr> {
    /// A bar on the terminal of standard error. Where standard error is no terminal, nothing is drawn.
    pub fn stderr() -> Self {
        let out = std::io::stderr();
        Bar { out: out.is_terminal().then_some(out), drawn: String::new() }
    }
}

impl<W: Write> Bar<W> {
    /// A bar on anything that is a terminal, whatever it looks like.
    pub fn on(out: W) -> Bar<W> {
        Bar { out: Some(out), drawn: String::new() }
    }
}

impl<W: Write> ProgressObserver for Bar<W> {
    fn observe(&mut self, tally: JobTally) {
        let Some(out) = &mut self.out else { return };
        let line = line(tally);
        // What looks the same need not be drawn again.
        if line == self.drawn {
            return;
        }
        let end = if tally.total == Some(tally.done) { "\n" } else { "" };
        // The terminal may be gone: that is no reason to stop.
        let _ = write!(out, "\r{line}{end}").and_then(|()| out.flush());
        self.drawn = line;
    }
}

fn line(JobTally { done, failed, total }: JobTally) -> String {
    let failures = if failed == 0 { String::new() } else { format!(", {failed} failed") };
    let Some(total) = total else { return format!("{done} done{failures}") };
    let filled = (done * WIDTH).checked_div(total).unwrap_or(WIDTH);
    format!("[{}{}] {done} of {total}{failures}", "#".repeat(filled), ".".repeat(WIDTH - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_up_and_says_what_failed() {
        let mut bar = Bar::on(Vec::new());
        for done in [0, 1, 1, 2] {
            bar.observe(JobTally { done, failed: usize::from(done == 2), total: Some(2) });
        }
        let drawn = String::from_utf8(bar.out.expect("it is drawn on")).expect("it is text");
        let full = "#".repeat(30);
        let expected = format!(
            "\r[{}] 0 of 2\r[{}{}] 1 of 2\r[{full}] 2 of 2, 1 failed\n",
            ".".repeat(30),
            "#".repeat(15),
            ".".repeat(15)
        );
        assert_eq!(drawn, expected);
        assert_eq!(line(JobTally { done: 3, failed: 0, total: None }), "3 done");
        assert_eq!(line(JobTally { done: 0, failed: 0, total: Some(0) }), format!("[{full}] 0 of 0"));
    }
}

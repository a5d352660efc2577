//! What all processes did together, and whether it kept to the limits.

use std::error::Error;

use tollgate::{Span, Tick};

use crate::{BURST, RATE, SLOTS};

/// By how much the clocks of two processes may differ.
const SLACK: Span = Span::from_millis(2);

/// One call: when it was asked for, when it was known to be admitted, and when it was over, with its slot still held.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) asked: Tick,
    pub(crate) begun: Tick,
    pub(crate) over: Tick,
}

impl Call {
    pub(crate) fn line(&self) -> String {
        let [asked, begun, over] = [self.asked, self.begun, self.over].map(Tick::as_micros);
        format!("{asked} {begun} {over}")
    }

    pub(crate) fn read(line: &str) -> Option<Call> {
        let mut ticks = line.split(' ').map(|word| word.parse().ok().map(Tick::from_micros));
        Some(Call { asked: ticks.next()??, begun: ticks.next()??, over: ticks.next()?? })
    }
}

/// The joint history.
#[derive(Default)]
pub(crate) struct History(Vec<Call>);

impl History {
    pub(crate) fn add(&mut self, call: Call) {
        self.0.push(call);
    }

    /// Says what was found, or what broke a limit.
    pub(crate) fn prove(&self) -> Result<String, Box<dyn Error>> {
        if self.0.is_empty() {
            return Err("nobody called, so nothing was shown".into());
        }
        let at_once = self.most_at_once();
        if at_once > SLOTS as usize {
            return Err(format!("{at_once} calls ran at once, and {SLOTS} may").into());
        }
        if let Some((from, until, count)) = self.too_many() {
            let micros = until.since(from).as_micros();
            return Err(format!("{count} calls were admitted within {micros} microseconds").into());
        }
        let calls = self.0.len();
        Ok(format!(
            "{calls} calls by all processes, {at_once} of {SLOTS} slots at once at most, never more than {BURST} and \
             {RATE} a second: the limit held"
        ))
    }

    /// The most that are known to have run at one instant.
    fn most_at_once(&self) -> usize {
        let sure = |call: &Call| (call.begun + SLACK, call.over - SLACK);
        let runs: Vec<(Tick, Tick)> = self.0.iter().map(sure).filter(|(from, until)| from < until).collect();
        let at =
            |instant: Tick| runs.iter().filter(|(from, until)| *from <= instant && instant < *until).count();
        runs.iter().map(|(from, _)| at(*from)).max().unwrap_or(0)
    }

    /// A stretch of time in which more were admitted than the burst and the rate allow, if there is one. All calls that lie
    /// within it were admitted in it.
    fn too_many(&self) -> Option<(Tick, Tick, u64)> {
        let mut by_end = self.0.clone();
        by_end.sort_by_key(|call| call.begun);
        for (first, Call { asked: from, .. }) in by_end.iter().enumerate() {
            let mut count = 0;
            for call in by_end[first..].iter().filter(|call| call.asked >= *from) {
                count += 1;
                let micros = (call.begun + SLACK).since(*from).as_micros();
                if count > BURST + micros * RATE / 1_000_000 {
                    return Some((*from, call.begun, count));
                }
            }
        }
        None
    }
}

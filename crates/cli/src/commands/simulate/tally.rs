//! Counts of the outcomes of calls.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use tollgate::{Span, Tick};

use super::replay::SimCall;

/// Microseconds of an hour.
const HOUR: u64 = 3_600_000_000;

/// The outcome of a call.
pub(super) enum SimOutcome {
    /// It was admitted, after this wait.
    Admitted(Span),
    /// A limit denied it, and would have admitted it after this wait without other calls.
    Denied { limit: String, wait: Option<Span> },
    /// It asks for more than the capacity of the limit.
    Impossible { limit: String },
    /// It timed out, waiting for this limit; `None` if other waiters were ahead.
    TimedOut { limit: Option<String> },
    /// It would wait forever.
    Never,
    /// It could not be decided.
    Failed { kind: &'static str, why: String },
}

/// The outcomes of all calls.
#[derive(Default)]
pub(super) struct SimTally {
    /// Of all calls.
    pub(super) all: SimCounts,
    /// By the number of the entity.
    pub(super) entities: Vec<SimCounts>,
    /// How many each limit denied.
    pub(super) limits: HashMap<String, u64>,
    /// By hour.
    pub(super) hours: BTreeMap<u64, SimCounts>,
    /// How many could not be decided, by reason, with the first of them.
    pub(super) failures: BTreeMap<&'static str, SimFailure>,
    /// The longest waits, at most `worst_max`.
    worst: BinaryHeap<Reverse<Wait>>,
    worst_max: usize,
    /// The waits of all that waited and were admitted, in microseconds.
    pub(super) waits: Vec<u64>,
    pub(super) first: Option<Tick>,
    pub(super) last: Option<Tick>,
    /// Calls with an earlier time than the line before.
    pub(super) out_of_order: u64,
    /// Calls that asked for more than the capacity of a limit.
    pub(super) impossible: u64,
    /// Calls that timed out, or would wait forever.
    pub(super) timed_out: u64,
    /// Calls whose usage could not be settled.
    pub(super) unsettled: u64,
}

/// Counts of calls by outcome.
#[derive(Clone, Copy, Default)]
pub(super) struct SimCounts {
    pub(super) calls: u64,
    pub(super) admitted: u64,
    pub(super) denied: u64,
    pub(super) failed: u64,
}

/// Calls that could not be decided for one reason.
pub(super) struct SimFailure {
    pub(super) count: u64,
    pub(super) line: u64,
    pub(super) why: String,
}

/// How long a call waited, or would have waited.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wait {
    pub(super) wait: Span,
    pub(super) line: Reverse<u64>,
    pub(super) entity: u32,
    pub(super) resource: u32,
    pub(super) limit: Option<String>,
    pub(super) at: Tick,
}

impl SimTally {
    /// Creates a tally that lists the `worst_max` longest waits.
    pub(super) fn new(worst_max: usize) -> SimTally {
        SimTally { worst_max, ..SimTally::default() }
    }

    /// Records the time of a call.
    pub(super) fn arrived(&mut self, call: &SimCall) {
        self.first.get_or_insert(call.at);
        self.last = Some(call.at);
    }

    /// Counts the outcome of a call.
    pub(super) fn came_of(&mut self, call: &SimCall, outcome: &SimOutcome) {
        self.count(call, outcome);
        match outcome {
            SimOutcome::Admitted(Span::ZERO) => {}
            SimOutcome::Admitted(wait) => {
                self.waits.push(wait.as_micros());
                self.note_wait(call, None, *wait);
            }
            SimOutcome::Denied { limit, wait } => {
                self.note_limit(limit);
                if let Some(wait) = wait {
                    self.note_wait(call, Some(limit), *wait);
                }
            }
            SimOutcome::Impossible { limit } => {
                self.note_limit(limit);
                self.impossible += 1;
            }
            SimOutcome::TimedOut { limit } => {
                if let Some(limit) = limit {
                    self.note_limit(limit);
                }
                self.timed_out += 1;
            }
            SimOutcome::Never => self.timed_out += 1,
            SimOutcome::Failed { kind, why } => {
                let new = || SimFailure { count: 0, line: call.line, why: why.clone() };
                self.failures.entry(kind).or_insert_with(new).count += 1;
            }
        }
    }

    /// Returns the longest waits, longest first.
    pub(super) fn worst(&self) -> Vec<&Wait> {
        let mut worst: Vec<&Wait> = self.worst.iter().map(|Reverse(wait)| wait).collect();
        worst.sort_by(|one, two| two.cmp(one));
        worst
    }

    fn count(&mut self, call: &SimCall, outcome: &SimOutcome) {
        let index = call.entity as usize;
        if self.entities.len() <= index {
            self.entities.resize(index + 1, SimCounts::default());
        }
        let entity = self.entities.get_mut(index);
        let hour = self.hours.entry(call.at.as_micros() / HOUR).or_default();
        for counts in [&mut self.all, hour].into_iter().chain(entity) {
            counts.calls += 1;
            match outcome {
                SimOutcome::Admitted(_) => counts.admitted += 1,
                SimOutcome::Failed { .. } => counts.failed += 1,
                _ => counts.denied += 1,
            }
        }
    }

    fn note_limit(&mut self, limit: &str) {
        match self.limits.get_mut(limit) {
            Some(count) => *count += 1,
            None => {
                self.limits.insert(limit.to_owned(), 1);
            }
        }
    }

    fn note_wait(&mut self, call: &SimCall, limit: Option<&String>, wait: Span) {
        let is_full = self.worst.len() >= self.worst_max;
        if is_full && self.worst.peek().is_none_or(|Reverse(least)| wait <= least.wait) {
            return;
        }
        self.worst.push(Reverse(Wait {
            wait,
            line: Reverse(call.line),
            entity: call.entity,
            resource: call.resource,
            limit: limit.cloned(),
            at: call.at,
        }));
        if is_full {
            self.worst.pop();
        }
    }
}

/// Returns the start of an hour of the tally.
pub(super) fn hour_start(hour: u64) -> Tick {
    Tick::from_micros(hour * HOUR)
}

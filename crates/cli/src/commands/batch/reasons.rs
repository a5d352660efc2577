//! Counts of the reasons why requests failed.

use std::collections::HashMap;

use serde::Serialize;
use tollgate_batch::{ItemError, Outcome, StopReason};

/// The maximum number of reasons that are counted separately. Some providers put an id into each message.
const REASONS_MAX: usize = 100;

/// The maximum number of reasons that are shown.
const SHOWN_MAX: usize = 5;

/// Counts reasons.
#[derive(Default)]
pub(crate) struct Reasons {
    counts: HashMap<String, u64>,
    others: u64,
}

/// A reason, and how many requests failed for it.
#[derive(Serialize)]
pub(crate) struct CountedReason {
    pub(crate) reason: String,
    pub(crate) requests: u64,
}

impl Reasons {
    /// Counts the reason of an outcome that has one. A shutdown of the batch is not counted.
    pub(crate) fn count<O>(&mut self, outcome: &Outcome<O>) {
        let Err(failed) = &outcome.result else { return };
        if matches!(failed, ItemError::Unfinished(StopReason::Shutdown)) {
            return;
        }
        let reason = failed.to_string();
        if self.counts.len() < REASONS_MAX || self.counts.contains_key(&reason) {
            *self.counts.entry(reason).or_default() += 1;
        } else {
            self.others += 1;
        }
    }

    /// Returns the most common reasons, and the sum of the rest.
    pub(crate) fn shown(self) -> Vec<CountedReason> {
        let mut all: Vec<(String, u64)> = self.counts.into_iter().collect();
        all.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
        let others = all.iter().skip(SHOWN_MAX).map(|(_, count)| count).sum::<u64>() + self.others;
        all.truncate(SHOWN_MAX);
        let mut shown: Vec<CountedReason> =
            all.into_iter().map(|(reason, requests)| CountedReason { reason, requests }).collect();
        if others > 0 {
            shown.push(CountedReason { reason: "other reasons; see the results".into(), requests: others });
        }
        shown
    }
}

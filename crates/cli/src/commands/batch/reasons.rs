//! Counts of the reasons why requests have no output.

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
    counts: HashMap<(NoOutput, String), u64>,
    /// Failures for reasons that are not counted separately.
    others: u64,
}

/// What became of a request that has no output, in the words of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoOutput {
    /// It failed, and only `--retry-failed` sends it again.
    Failed,
    /// The batch ended before it: `--resume` sends it.
    Unfinished,
}

/// A reason, and how many requests have no output for it.
#[derive(Serialize)]
pub(crate) struct CountedReason {
    pub(crate) status: NoOutput,
    pub(crate) reason: String,
    pub(crate) requests: u64,
}

impl NoOutput {
    /// Returns the word for it, which is that of the counts above the reasons.
    pub(crate) fn word(self) -> &'static str {
        match self {
            NoOutput::Failed => "failed",
            NoOutput::Unfinished => "unfinished",
        }
    }
}

impl Reasons {
    /// Counts the reason of an outcome that has one. A shutdown of the batch is not counted.
    pub(crate) fn count<O>(&mut self, outcome: &Outcome<O>) {
        let (status, reason) = match &outcome.result {
            Ok(_) | Err(ItemError::Unfinished(StopReason::Shutdown)) => return,
            Err(ItemError::Unfinished(stopped)) => (NoOutput::Unfinished, stopped.to_string()),
            Err(failed) => (NoOutput::Failed, failed.to_string()),
        };
        let reason = (status, reason);
        // There are few reasons to end a batch, so only those of failures have a bound.
        if self.counts.len() < REASONS_MAX
            || status == NoOutput::Unfinished
            || self.counts.contains_key(&reason)
        {
            *self.counts.entry(reason).or_default() += 1;
        } else {
            self.others += 1;
        }
    }

    /// Returns the most common reasons, and the sums of the rest.
    pub(crate) fn shown(self) -> Vec<CountedReason> {
        let counted = |((status, reason), requests)| CountedReason { status, reason, requests };
        let mut all: Vec<CountedReason> = self.counts.into_iter().map(counted).collect();
        all.sort_by(|a, b| {
            let key = |one: &CountedReason| (std::cmp::Reverse(one.requests), one.status);
            key(a).cmp(&key(b)).then_with(|| a.reason.cmp(&b.reason))
        });
        let rest = all.split_off(all.len().min(SHOWN_MAX));
        for status in [NoOutput::Failed, NoOutput::Unfinished] {
            let others = if status == NoOutput::Failed { self.others } else { 0 };
            let same = rest.iter().filter(|reason| reason.status == status);
            let requests = same.map(|reason| reason.requests).sum::<u64>() + others;
            if requests > 0 {
                let reason = "other reasons; see the results".into();
                all.push(CountedReason { status, reason, requests });
            }
        }
        all
    }
}

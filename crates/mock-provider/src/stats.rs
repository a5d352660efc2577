//! What came in, and what became of it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Serialize;

/// How many keys are distinguished. Calls with further ones are counted together.
const KEYS_MAX: usize = 1_000;

/// Keys up to this many characters are made up, and are shown. Of longer ones only the ends are: they may be real.
const KEY_SHOWN_MAX: usize = 12;

/// What came in, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Calls, whatever became of them.
    pub calls: u64,
    /// Calls that were answered.
    pub ok: u64,
    /// Calls that a limit refused.
    pub rejected: u64,
    /// Calls that were refused for good: wrong keys, bad requests, money that ran out.
    pub refused: u64,
    /// Calls that met an outage.
    pub failed: u64,
    /// Calls whose client left before the answer.
    pub abandoned: u64,
    /// Calls being answered now.
    pub concurrent: u64,
    /// The most that were being answered at once.
    pub concurrent_max: u64,
    /// Tokens that answered calls used.
    pub tokens: u64,
    /// The same for each key.
    pub keys: BTreeMap<String, KeyStats>,
}

/// What came in with one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeyStats {
    /// Calls, whatever became of them.
    pub calls: u64,
    /// Calls that were answered.
    pub ok: u64,
    /// Calls that a limit refused.
    pub rejected: u64,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    Ok { tokens: u64 },
    Rejected,
    Refused,
    Failed,
    Abandoned,
}

/// Counts calls.
#[derive(Debug, Default)]
pub(crate) struct CallCounter(Mutex<Stats>);

impl CallCounter {
    pub(crate) fn stats(&self) -> Stats {
        self.0.lock().clone()
    }

    /// Counts a call that comes in. It answers its number, counted from 1.
    pub(crate) fn begin(&self, key: &str) -> (u64, OpenCall<'_>) {
        let mut stats = self.0.lock();
        let key = label(key, &stats);
        stats.calls += 1;
        stats.keys.entry(key.clone()).or_default().calls += 1;
        (stats.calls, OpenCall { counter: self, key, answering: false, outcome: CallEnd::Abandoned })
    }
}

/// A call that is not over. Dropping it counts what became of it: that its client left, unless something else was said.
#[derive(Debug)]
pub(crate) struct OpenCall<'a> {
    counter: &'a CallCounter,
    key: String,
    answering: bool,
    outcome: CallEnd,
}

impl OpenCall<'_> {
    /// From now on it is being answered.
    pub(crate) fn answering(&mut self) {
        let mut stats = self.counter.0.lock();
        stats.concurrent += 1;
        stats.concurrent_max = stats.concurrent_max.max(stats.concurrent);
        self.answering = true;
    }

    /// This is what became of it.
    pub(crate) fn end(mut self, outcome: CallEnd) {
        self.outcome = outcome;
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let mut stats = self.counter.0.lock();
        let stats = &mut *stats;
        stats.concurrent -= u64::from(self.answering);
        let of_key = stats.keys.entry(std::mem::take(&mut self.key)).or_default();
        match self.outcome {
            CallEnd::Ok { tokens } => {
                stats.ok += 1;
                of_key.ok += 1;
                stats.tokens = stats.tokens.saturating_add(tokens);
            }
            CallEnd::Rejected => {
                stats.rejected += 1;
                of_key.rejected += 1;
            }
            CallEnd::Refused => stats.refused += 1,
            CallEnd::Failed => stats.failed += 1,
            CallEnd::Abandoned => stats.abandoned += 1,
        }
    }
}

/// What a key is called where people read.
fn label(key: &str, stats: &Stats) -> String {
    let shown = match key.chars().count() {
        0 => "(none)".to_owned(),
        count if count <= KEY_SHOWN_MAX => key.to_owned(),
        count => key.chars().take(3).chain(['…']).chain(key.chars().skip(count - 4)).collect(),
    };
    if stats.keys.len() < KEYS_MAX || stats.keys.contains_key(&shown) { shown } else { "(others)".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_not_shown_and_too_many_are_counted_together() {
        let counter = CallCounter::default();
        counter.begin("sk-abcdefghijklmnopqrstuvwxyz").1.end(CallEnd::Ok { tokens: 3 });
        counter.begin("").1.end(CallEnd::Rejected);
        for number in 0..2_000 {
            drop(counter.begin(&format!("key-{number}")));
        }
        let stats = counter.stats();
        assert_eq!((stats.calls, stats.ok, stats.rejected, stats.abandoned), (2_002, 1, 1, 2_000));
        assert_eq!(stats.keys["sk-…wxyz"].ok, 1);
        assert_eq!(stats.keys["(none)"].rejected, 1);
        assert_eq!(stats.keys.len(), KEYS_MAX + 1);
        assert_eq!(stats.keys["(others)"].calls, 1_002);
    }
}

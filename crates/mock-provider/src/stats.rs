//! Statistics of calls.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Serialize;

/// The maximum number of keys with counts of their own. Further keys share one entry.
const KEYS_MAX: usize = 1_000;

/// The maximum length of a key that is shown in full. Longer keys may be real, so only their ends
/// are shown.
const KEY_SHOWN_MAX: usize = 12;

/// Counts of all calls.
///
/// ```
/// use tollgate_mock_provider::{MockProvider, Stats};
///
/// let stats: Stats = MockProvider::builder().build()?.stats();
/// assert_eq!((stats.calls, stats.ok, stats.keys.len()), (0, 0, 0));
/// # Ok::<(), tollgate_mock_provider::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// All calls.
    pub calls: u64,
    /// Calls that were answered.
    pub ok: u64,
    /// Calls that a limit denied.
    pub rejected: u64,
    /// Calls that were refused permanently: unknown key, invalid request, exhausted account.
    pub refused: u64,
    /// Calls that failed in an outage.
    pub failed: u64,
    /// Calls whose client disconnected before the answer.
    pub abandoned: u64,
    /// Calls in progress.
    pub concurrent: u64,
    /// The maximum number of calls in progress.
    pub concurrent_max: u64,
    /// Tokens of answered calls.
    pub tokens: u64,
    /// The counts of each key.
    pub keys: BTreeMap<String, KeyStats>,
}

/// Counts of the calls with one key.
///
/// ```
/// use tollgate_mock_provider::KeyStats;
///
/// let counts = KeyStats::default();
/// assert_eq!((counts.calls, counts.ok, counts.rejected), (0, 0, 0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeyStats {
    /// All calls.
    pub calls: u64,
    /// Calls that were answered.
    pub ok: u64,
    /// Calls that a limit denied.
    pub rejected: u64,
}

/// How a call ended.
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

    /// Counts a call that arrives. Returns its number, counted from 1.
    pub(crate) fn begin(&self, key: &str) -> (u64, OpenCall<'_>) {
        let mut stats = self.0.lock();
        let key = label(key, &stats);
        stats.calls += 1;
        stats.keys.entry(key.clone()).or_default().calls += 1;
        (stats.calls, OpenCall { counter: self, key, answering: false, outcome: CallEnd::Abandoned })
    }
}

/// A call that has not ended. Dropping it counts its end: abandoned by the client, unless `end` set
/// another.
#[derive(Debug)]
pub(crate) struct OpenCall<'a> {
    counter: &'a CallCounter,
    key: String,
    answering: bool,
    outcome: CallEnd,
}

impl OpenCall<'_> {
    /// Marks the call as in progress.
    pub(crate) fn answering(&mut self) {
        let mut stats = self.counter.0.lock();
        stats.concurrent += 1;
        stats.concurrent_max = stats.concurrent_max.max(stats.concurrent);
        self.answering = true;
    }

    /// Sets how the call ended.
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

/// Returns the label of a key in the statistics.
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
    fn a_long_key_is_shortened_and_further_keys_share_one_entry() {
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

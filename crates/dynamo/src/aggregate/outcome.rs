use std::collections::BTreeMap;

/// The outcome of a batch of records.
///
/// ```
/// use tollgate_dynamo::aggregate::BatchOutcome;
///
/// let mut total = BatchOutcome::default();
/// total.add(BatchOutcome::default());
/// assert!(total.failed.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchOutcome {
    /// Records in the batch.
    pub records: usize,
    /// Items of buckets whose usage was written down.
    pub written: usize,
    /// Items of buckets that had expired, and whose remaining usage was written down.
    pub remains: usize,
    /// Audit events that were archived.
    pub archived: usize,
    /// Buckets that were hot, and are in twice as many items now.
    pub doubled: usize,
    /// Items of ours that cannot be read, and why. They could not be read the next time either, so they do not fail.
    pub unreadable: Vec<String>,
    /// Records that have to be delivered again.
    pub failed: Vec<FailedRecord>,
}

/// A record that has to be delivered again.
///
/// ```
/// use tollgate_dynamo::aggregate::{BatchOutcome, FailedRecord};
///
/// let numbers = |outcome: &BatchOutcome| -> Vec<String> {
///     outcome.failed.iter().map(|record: &FailedRecord| record.sequence.clone()).collect()
/// };
/// assert!(numbers(&BatchOutcome::default()).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedRecord {
    /// The sequence number of the record.
    pub sequence: String,
    /// Why it failed.
    pub why: String,
}

impl BatchOutcome {
    /// Adds another outcome, as if both were of one batch.
    pub fn add(&mut self, other: BatchOutcome) {
        self.records += other.records;
        self.written += other.written;
        self.remains += other.remains;
        self.archived += other.archived;
        self.doubled += other.doubled;
        self.unreadable.extend(other.unreadable);
        self.failed.extend(other.failed);
    }

    /// Notes that these records failed, in the order of the batch, each once.
    pub(super) fn fail(&mut self, failures: BTreeMap<usize, (String, String)>) {
        self.failed.extend(failures.into_values().map(|(sequence, why)| FailedRecord { sequence, why }));
    }
}

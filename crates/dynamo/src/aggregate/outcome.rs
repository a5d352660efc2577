use std::collections::BTreeMap;

/// What came of a batch of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchOutcome {
    /// Records that were looked at.
    pub records: usize,
    /// Items of buckets whose usage was written down.
    pub written: usize,
    /// Items of buckets that had expired, and whose remains were written down.
    pub remains: usize,
    /// Audit events that were archived.
    pub archived: usize,
    /// Buckets that were hot, and are in twice as many items now.
    pub doubled: usize,
    /// Items that say what no item of ours says, and why. They would not be understood the next time either, so they do
    /// not fail.
    pub unreadable: Vec<String>,
    /// What has to be delivered again.
    pub failed: Vec<FailedRecord>,
}

/// A record that has to be delivered again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedRecord {
    /// Its number.
    pub sequence: String,
    /// What went wrong.
    pub why: String,
}

impl BatchOutcome {
    /// This and another, as if they were of one batch.
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

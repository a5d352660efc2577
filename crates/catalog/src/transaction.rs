//! Transactions: the writes of one change, made together or not at all.

use std::fmt;

use tollgate_store::records::{Change, ItemKey, RecordsError, Test, Write};

use crate::{Catalog, CatalogError, Result, keys};

/// How often a change is attempted when others change the same records at the same time.
///
/// A transaction that fails was overtaken by one that committed, so a hundred concurrent ones
/// finish long before this.
pub(crate) const ATTEMPTS_MAX: usize = 1_000;

/// The writes of one change. The first one checks that the namespace is active, so that a purge
/// leaves nothing behind.
pub(crate) struct RecordTxn<'a> {
    catalog: &'a Catalog,
    writes: Vec<Write>,
}

/// The result of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// All writes were made.
    Done,
    /// The test of the write with this index failed, and no write was made.
    Failed(usize),
}

impl<'a> RecordTxn<'a> {
    pub(crate) fn new(catalog: &'a Catalog) -> RecordTxn<'a> {
        let active = Test::Is("status".into(), "active".into());
        let check = Write::Check(keys::namespace_by_id(catalog.namespace_id()), vec![active]);
        RecordTxn { catalog, writes: vec![check] }
    }

    pub(crate) fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    pub(crate) fn namespace_id(&self) -> &'a str {
        self.catalog.namespace_id()
    }

    /// Adds a write, each to another record, and returns its index.
    pub(crate) fn push(&mut self, write: Write) -> usize {
        self.writes.push(write);
        self.writes.len() - 1
    }

    /// Adds several writes.
    pub(crate) fn extend(&mut self, writes: impl IntoIterator<Item = Write>) {
        self.writes.extend(writes);
    }

    /// Counts a change of stored limits, so that limits which were resolved before have an earlier
    /// version.
    pub(crate) fn config_changed(&mut self) {
        let version = vec![Change::Add("version".into(), 1)];
        self.push(Write::Change(keys::config_version(self.namespace_id()), version, Vec::new()));
    }

    /// Returns the writes, for a store that makes them together with a transaction on buckets.
    pub(crate) fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Returns the writes by value.
    pub(crate) fn into_writes(self) -> Vec<Write> {
        self.writes
    }

    /// Makes the writes. The cache removes their records whatever the outcome, even if the caller
    /// does not wait for the end.
    pub(crate) async fn commit(self) -> Result<Commit> {
        let invalidation =
            CacheInvalidation { catalog: self.catalog, keys: self.writes.iter().map(Write::key).collect() };
        let written = self.catalog.backend().write(&self.writes).await;
        let outcome = self.outcome(written);
        drop(invalidation);
        if let Ok(Commit::Done) = outcome {
            // Waiters may be admitted under other limits.
            self.catalog.backend().wait_queues().notify_all();
        }
        outcome
    }

    /// Returns the result of the writes from the reply of the store.
    pub(crate) fn outcome(&self, written: std::result::Result<(), RecordsError>) -> Result<Commit> {
        match written {
            Ok(()) => Ok(Commit::Done),
            Err(RecordsError::Failed(0)) => Err(self.catalog.namespace_gone()),
            Err(RecordsError::Failed(write)) => Ok(Commit::Failed(write)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Commit {
    /// Returns an error if the commit failed: for a change that can only fail if another one was
    /// faster.
    pub(crate) fn expect_done(self, what: &dyn fmt::Display) -> Result<()> {
        match self {
            Commit::Done => Ok(()),
            Commit::Failed(_) => Err(CatalogError::Contended(what.to_string())),
        }
    }
}

struct CacheInvalidation<'a> {
    catalog: &'a Catalog,
    keys: Vec<&'a ItemKey>,
}

impl Drop for CacheInvalidation<'_> {
    fn drop(&mut self) {
        let keys = self.keys.iter().map(|key| (key.partition.as_str(), key.sort.as_str()));
        self.catalog.shared().cache.remove(keys);
    }
}

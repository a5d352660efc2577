//! Transactions: the writes of one change, made together or not at all.

use std::fmt;

use tollgate_store::records::{Change, ItemKey, RecordsError, Test, Write};

use crate::{Catalog, CatalogError, Result, keys};

/// How often a change is tried when others change the same records at the same time.
///
/// A transaction that fails was overtaken by one that committed, so a hundred at once are done long before this.
pub(crate) const ATTEMPTS_MAX: usize = 1_000;

/// The writes of one change. The first one checks that the namespace is there, so that nothing can be left behind by
/// a purge.
pub(crate) struct RecordTxn<'a> {
    catalog: &'a Catalog,
    writes: Vec<Write>,
}

/// What came of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// All writes were made.
    Done,
    /// The test of the write at this place failed, and none was made.
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

    /// Adds a write, each to another record, and answers its place.
    pub(crate) fn push(&mut self, write: Write) -> usize {
        self.writes.push(write);
        self.writes.len() - 1
    }

    /// Adds several writes, or one if there is one.
    pub(crate) fn extend(&mut self, writes: impl IntoIterator<Item = Write>) {
        self.writes.extend(writes);
    }

    /// Stored limits change, so what was worked out from earlier ones is of an earlier version.
    pub(crate) fn config_changed(&mut self) {
        let version = vec![Change::Add("version".into(), 1)];
        self.push(Write::Change(keys::config_version(self.namespace_id()), version, Vec::new()));
    }

    /// The writes, for a store that makes them together with something else.
    pub(crate) fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The same by value, for a caller that makes them together with something else.
    pub(crate) fn into_writes(self) -> Vec<Write> {
        self.writes
    }

    /// Makes the writes. Whatever the outcome, the cache forgets these records, even if the caller does not wait for
    /// the end.
    pub(crate) async fn commit(self) -> Result<Commit> {
        let forget = Forget { catalog: self.catalog, keys: self.writes.iter().map(Write::key).collect() };
        let written = self.catalog.backend().write(&self.writes).await;
        let outcome = self.outcome(written);
        drop(forget);
        if let Ok(Commit::Done) = outcome {
            // Under other limits waiters may pass.
            self.catalog.backend().wait_queues().notify_all();
        }
        outcome
    }

    /// What an answer of the store means for these writes.
    pub(crate) fn outcome(&self, written: std::result::Result<(), RecordsError>) -> Result<Commit> {
        match written {
            Ok(()) => Ok(Commit::Done),
            Err(RecordsError::Failed(0)) => Err(self.catalog.gone()),
            Err(RecordsError::Failed(place)) => Ok(Commit::Failed(place)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Commit {
    /// Returns an error if the commit failed: for a change that can only fail if another one was faster.
    pub(crate) fn expect_done(self, what: &dyn fmt::Display) -> Result<()> {
        match self {
            Commit::Done => Ok(()),
            Commit::Failed(_) => Err(CatalogError::Contended(what.to_string())),
        }
    }
}

struct Forget<'a> {
    catalog: &'a Catalog,
    keys: Vec<&'a ItemKey>,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.catalog.shared().cache.forget(&self.keys);
    }
}

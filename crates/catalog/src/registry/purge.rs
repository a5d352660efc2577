//! Purging: the permanent removal of all records and buckets of a deleted namespace.
//!
//! Nothing can be added meanwhile: every change checks that the namespace is active, and the store
//! creates no bucket in a namespace that was closed. So a pass finds everything that was written.
//! After an interruption the caller purges again: the record of the namespace is deleted last.

use tollgate_store::records::{Index, ItemKey, Query, WRITES_MAX, Write};
use tollgate_store::{FORGET_MAX, Reply, Scope};

use super::{Namespace, NamespaceStatus, Registry};
use crate::{CatalogError, Result, keys};

/// How often the records are searched for. Indexes may lag behind, so the last pass must find
/// nothing.
const PASSES_MAX: usize = 1_000;

/// The progress of a purge.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{PurgeProgress, Registry};
/// use tollgate_store::Memory;
///
/// let registry = Registry::new(Arc::new(Memory::default()));
/// registry.register("old").wait()?;
/// let namespace = registry.delete("old").wait()?;
/// let mut last = PurgeProgress::default();
/// registry.purge(&namespace.id, |progress| last = progress).wait()?;
/// assert!(last.records > 0 && last.buckets == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgeProgress {
    /// The number of buckets that were removed.
    pub buckets: u64,
    /// The number of records that were removed.
    pub records: u64,
}

/// The result of a purge.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{PurgeProgress, Registry};
/// use tollgate_store::Memory;
///
/// let registry = Registry::new(Arc::new(Memory::default()));
/// registry.register("old").wait()?;
/// let namespace = registry.delete("old").wait()?;
/// let report = |progress: PurgeProgress| println!("{} records", progress.records);
/// let purged = registry.purge(&namespace.id, report).wait()?;
/// assert_eq!((&*purged.namespace.name, purged.buckets), ("old", 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purged {
    /// The namespace that was purged.
    pub namespace: Namespace,
    /// The number of buckets that this call removed.
    pub buckets: u64,
    /// The number of records that this call removed.
    pub records: u64,
}

impl Registry {
    /// Removes everything of a deleted namespace permanently, and reports to `progress` in between.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, part of the namespace is removed; purge it again to continue.
    ///
    /// # Errors
    ///
    /// [`NamespaceNotFound`](CatalogError::NamespaceNotFound),
    /// [`NamespaceStatus`](CatalogError::NamespaceStatus) if it is in use, an invalid id, records
    /// of another schema version, or an error of the store.
    pub fn purge<'a>(
        &'a self,
        id: &'a str,
        mut progress: impl FnMut(PurgeProgress) + Send + 'a,
    ) -> Reply<'a, Result<Purged>> {
        Reply::later(async move {
            let namespace = self.begin_purge(id).await?;
            let mut gone = PurgeProgress::default();
            self.backend().close(id).await?;
            self.forget_buckets(id, &mut gone, &mut progress).await?;
            self.delete_records(id, &mut gone, &mut progress).await?;
            self.backend().write(&[Write::Delete(keys::namespace_by_id(id), Vec::new())]).await?;
            let PurgeProgress { buckets, records } = gone;
            Ok(Purged { namespace, buckets, records })
        })
    }

    /// Marks the namespace, which cannot be recovered from now on.
    async fn begin_purge(&self, id: &str) -> Result<Namespace> {
        let mut namespace = self.by_id(id).await?;
        if namespace.status == NamespaceStatus::Deleted {
            namespace.status = NamespaceStatus::Purging;
            if self.write(&[namespace.change_status(NamespaceStatus::Deleted)]).await?.is_err() {
                namespace = self.by_id(id).await?;
            }
        }
        match namespace.status {
            NamespaceStatus::Purging => Ok(namespace),
            _ => Err(namespace.refuse("deleted")),
        }
    }

    async fn forget_buckets(
        &self,
        id: &str,
        gone: &mut PurgeProgress,
        progress: &mut (dyn FnMut(PurgeProgress) + Send),
    ) -> Result<()> {
        loop {
            let forgotten = self.backend().forget(id, Scope::All).await?;
            gone.buckets += forgotten as u64;
            progress(*gone);
            if forgotten < FORGET_MAX {
                return Ok(());
            }
        }
    }

    async fn delete_records(
        &self,
        id: &str,
        gone: &mut PurgeProgress,
        progress: &mut (dyn FnMut(PurgeProgress) + Send),
    ) -> Result<()> {
        for _ in 0..PASSES_MAX {
            let mut query = Query::all(id);
            let mut found = 0;
            loop {
                let page = self.backend().find(Index::Namespace, &query).await?;
                found += page.items.len();
                for batch in page.items.chunks(WRITES_MAX) {
                    self.delete_batch(batch).await?;
                    gone.records += batch.len() as u64;
                    progress(*gone);
                }
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => break,
                }
            }
            if found == 0 {
                return Ok(());
            }
        }
        Err(CatalogError::Contended(format!("the records of namespace {id:?}")))
    }

    async fn delete_batch(&self, keys: &[ItemKey]) -> Result<()> {
        let writes: Vec<Write> = keys.iter().map(|key| Write::Delete(key.clone(), Vec::new())).collect();
        Ok(self.backend().write(&writes).await?)
    }
}

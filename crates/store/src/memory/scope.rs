//! Lists and forgets many buckets of a namespace.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate_core::Tick;

use super::Afters;
use super::namespace::{NamespaceTable, SHARDS, shard_of};
use crate::records::{Cursor, PAGE_MAX, Page};
use crate::{BucketCell, BucketStatus, Clock, FORGET_MAX, Key, Scope, StoreError, forgotten_write};

impl Scope<'_> {
    /// Returns whether the bucket of a key is in the scope. A key that is not a pair has no entity and no resource.
    pub(super) fn has_key(&self, key: &Key) -> bool {
        match key.pair() {
            Some((entity, resource)) => self.has(entity, resource),
            None => *self == Scope::All,
        }
    }
}

impl NamespaceTable {
    /// Closes the namespace: no cell is made any more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // A thread that had a shard locked before this may not have seen the flag, so this waits for it.
        self.shards().iter().for_each(|shard| drop(shard.lock()));
        self.records.wait_for_writer();
    }

    /// Returns whether no cell is made any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Forgets the buckets of a scope and what was counted of them, at most [`FORGET_MAX`], and returns how many.
    pub(super) fn forget(&self, scope: Scope<'_>, now: Tick, afters: &mut Afters) -> usize {
        // First, so that a caller that finds no cell finds the mark. In a closed namespace nothing is settled any more.
        self.records.write_unless(&self.closed, &[forgotten_write(&self.namespace, scope, now)]);
        let mut forgotten = 0;
        for index in self.shards_of(scope) {
            let mut table = self.shards()[index].lock();
            let most = FORGET_MAX - forgotten;
            let cells = table.remove(most, now, |key| scope.has_key(key), |key| self.hash(key));
            self.keys.fetch_sub(cells.len(), Ordering::Relaxed);
            forgotten += cells.len();
            for cell in cells {
                let after = cell.remove(now);
                afters.push((cell, after));
            }
        }
        forgotten
    }

    /// Returns the status of the buckets of a scope, in the order of their keys.
    pub(super) fn buckets(
        &self,
        clock: &Clock,
        scope: Scope<'_>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<BucketStatus>, StoreError> {
        let after = after.map(Cursor::parts::<2>).transpose()?;
        let limit = limit.clamp(1, PAGE_MAX);
        let mut found = self.first_cells(scope, after, limit + 1);
        let more = found.len() > limit;
        if more {
            found.pop_last();
        }
        let last = found.last_key_value().map(|((entity, resource), _)| Cursor::of(&[entity, resource]));
        let status = |((entity, resource), cell): ((String, String), Arc<BucketCell>)| BucketStatus {
            entity,
            resource,
            limits: cell.peek(clock),
        };
        Ok(Page { items: found.into_iter().map(status).collect(), next: last.filter(|_| more) })
    }

    /// Returns the shards that may have buckets of a scope.
    pub(super) fn shards_of(&self, scope: Scope<'_>) -> Range<usize> {
        match scope {
            Scope::Bucket(entity, resource) => {
                let shard = shard_of(self.hash(Key::new(&[entity, resource]).as_bytes()));
                shard..shard + 1
            }
            _ => 0..SHARDS,
        }
    }

    /// Returns the first `most` cells of a scope behind `after`. Visits all cells, and keeps no more than it returns.
    fn first_cells(
        &self,
        scope: Scope<'_>,
        after: Option<[&str; 2]>,
        most: usize,
    ) -> BTreeMap<(String, String), Arc<BucketCell>> {
        let mut found = BTreeMap::new();
        for shard in &self.shards()[self.shards_of(scope)] {
            for cell in shard.lock().iter() {
                let Some((entity, resource)) = cell.key().pair() else { continue };
                if !scope.has(entity, resource) || after.is_some_and(|after| [entity, resource] <= after) {
                    continue;
                }
                found.insert((entity.to_string(), resource.to_string()), Arc::clone(cell));
                if found.len() > most {
                    found.pop_last();
                }
            }
        }
        found
    }
}

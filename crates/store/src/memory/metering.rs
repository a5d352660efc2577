//! Usage in a namespace: how it is counted in cells, and how it gets into the records.

use std::sync::Arc;

use tollgate_core::{Limits, Tick};

use super::namespace::NamespaceTable;
use crate::records::{Cursor, Page, Write};
use crate::usage::{Caller, Sums, Used};
use crate::{Activity, BucketCell, Clock, Key, Scope, StoreError};

impl NamespaceTable {
    /// Counts usage of a cell at `at`. What is counted of a bucket that was forgotten belongs to no bucket.
    pub(crate) fn count(
        &self,
        cell: &BucketCell,
        at: Tick,
        limits: &Limits,
        caller: Caller,
        add: impl FnOnce(&mut Sums),
    ) {
        let mut inner = cell.lock();
        if !inner.is_removed() && !inner.open_sums(at, limits, caller) {
            drop(inner);
            // The sums before go to the records under both locks, records first: a caller that reads usage finds them in one
            // of the two.
            let mut records = self.records.lock_for_usage();
            inner = cell.lock();
            if let Some(before) = inner.roll_over_sums(at, limits, caller) {
                records.make_usage(&self.usage_writes(cell.key(), &before));
            }
        }
        if !inner.is_removed() {
            inner.count(at, limits, caller, add);
        }
    }

    /// Counts usage of a bucket that was dropped because it was full; nothing in a closed namespace.
    pub(super) fn count_without_cell(&self, key: &Key, at: Tick, limits: &Limits, used: &Used<'_>) {
        let mut sums = Sums::new(limits, at, used.caller());
        used.add(&mut sums);
        self.records.write_unless(&self.closed, &self.usage_writes(key, &sums));
    }

    /// Writes what was counted in a cell to the records.
    pub(super) fn flush(&self, cell: &BucketCell) {
        let mut records = self.records.lock_for_usage();
        if let Some(sums) = cell.lock().usage.take() {
            records.make_usage(&self.usage_writes(cell.key(), &sums));
        }
    }

    /// Writes all that was counted in a scope to the records.
    pub(super) fn write_usage(&self, scope: Scope<'_>) {
        for shard in &self.shards()[self.shards_of(scope)] {
            let table = shard.lock();
            let counted =
                table.iter().filter(|cell| scope.has_key(cell.key()) && cell.lock().unwritten().is_some());
            let counted: Vec<_> = counted.cloned().collect();
            drop(table);
            counted.iter().for_each(|cell| self.flush(cell));
        }
    }

    /// Returns what is in use in one shard of cells, and what was counted there that is in no record yet.
    pub(super) fn activity(
        &self,
        clock: &Clock,
        scope: Scope<'_>,
        after: Option<&Cursor>,
    ) -> Result<Page<Activity>, StoreError> {
        let shards = self.shards_of(scope);
        let shard = match after {
            None => shards.start,
            Some(after) => {
                let [number] = after.parts()?;
                let number: Option<usize> = number.parse().ok().filter(|number| shards.contains(number));
                number.ok_or_else(|| StoreError::BadCall("the cursor is none of this list's".into()))?
            }
        };
        let table = self.shards()[shard].lock();
        let found: Vec<_> = table.iter().filter(|cell| scope.has_key(cell.key())).cloned().collect();
        drop(table);
        let activity = |cell: &Arc<BucketCell>| {
            let (entity, resource) = cell.key().pair()?;
            // Before the status is read, which locks the cell again.
            let hour = cell.lock().unwritten();
            Some(Activity {
                entity: entity.into(),
                resource: resource.into(),
                hour,
                others: Vec::new(),
                in_use: Activity::in_use(&cell.peek(clock)),
            })
        };
        let next = Some(shard + 1).filter(|next| shards.contains(next));
        let next = next.map(|next| Cursor::of(&[&next.to_string()]));
        Ok(Page { items: found.iter().filter_map(activity).collect(), next })
    }

    /// Returns the writes that add sums to the records of usage; none for a bucket that has no entity and no resource.
    fn usage_writes(&self, key: &Key, sums: &Sums) -> Vec<Write> {
        match key.pair().filter(|_| !sums.is_empty()) {
            Some((entity, resource)) => sums.writes(&self.namespace, entity, resource, &self.usage_retention),
            None => Vec::new(),
        }
    }
}

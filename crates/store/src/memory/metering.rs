//! Usage in a namespace: which tally counts for a bucket, and how it gets into the records.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate_core::{Limits, Tick};

use super::namespace::{NamespaceTable, SHARDS, shard_of};
use super::tallies::{Tallies, TallySweep};
use super::tally::Tally;
use crate::records::{Cursor, Page};
use crate::sync::{Mutex, MutexGuard};
use crate::usage::Sums;
use crate::{Activity, BucketCell, Clock, Key, Scope, StoreError};

/// How many slots of the table are checked for each new tally. Two keep pace with any growth.
const SWEPT_PER_INSERT: usize = 2;

/// How many are checked once there are more tallies than the namespace may have keys.
const SWEPT_WHEN_FULL: usize = 16;

/// The cell and the tally of a key, if they exist.
type CellAndTally = (Option<Arc<BucketCell>>, Option<Arc<Tally>>);

impl NamespaceTable {
    /// Returns the tally of a cell, made if it does not exist; `None` if the bucket was forgotten.
    pub(super) fn tally(&self, cell: &BucketCell, limits: &Limits, at: Tick) -> Option<Arc<Tally>> {
        self.tally_if(cell.key(), limits, at, || !cell.is_removed())
    }

    /// Returns the tally of a bucket that may have been dropped because it was full; `None` in a closed namespace.
    pub(super) fn tally_without_cell(&self, key: &Key, limits: &Limits, at: Tick) -> Option<Arc<Tally>> {
        self.tally_if(key, limits, at, || !self.closed.load(Ordering::Relaxed))
    }

    /// Returns the tally of a key, if there is one.
    pub(super) fn find_tally(&self, key: &Key) -> Option<Arc<Tally>> {
        let hash = self.hash(key.as_bytes());
        self.tallies(hash).lock().find(hash, key.as_bytes()).cloned()
    }

    /// Returns the tally of a key, made if it does not exist; `None` if `is_wanted` returns false. That is called with
    /// the cells of the shard locked, so that the answer stays true until the tally exists: forgetting takes the cell
    /// and the tally together.
    fn tally_if(
        &self,
        key: &Key,
        limits: &Limits,
        at: Tick,
        is_wanted: impl FnOnce() -> bool,
    ) -> Option<Arc<Tally>> {
        let hash = self.hash(key.as_bytes());
        let cells = self.shard(hash).lock();
        if !is_wanted() {
            return None;
        }
        let mut tallies = self.tallies(hash).lock();
        if let Some(tally) = tallies.find(hash, key.as_bytes()) {
            return Some(Arc::clone(tally));
        }
        let unwritten = self.sweep_tallies(&mut tallies, at);
        let tally = Tally::new(key.clone(), limits, at);
        tallies.insert(hash, Arc::clone(&tally), |key| self.hash(key));
        drop((tallies, cells));
        unwritten.iter().for_each(|tally| tally.flush(self));
        Some(tally)
    }

    fn sweep_tallies(&self, tallies: &mut MutexGuard<'_, Tallies>, now: Tick) -> Vec<Arc<Tally>> {
        let is_full = tallies.len() >= self.keys_max.div_ceil(SHARDS);
        let (steps, which) =
            if is_full { (SWEPT_WHEN_FULL, TallySweep::Unused) } else { (SWEPT_PER_INSERT, TallySweep::Old) };
        tallies.sweep(steps, which, now, |key| self.hash(key))
    }

    /// Writes what was counted in earlier hours to the records, and drops the tallies that no caller has.
    pub(super) fn sweep_all_tallies(&self, now: Tick) {
        for shard in self.all_tallies() {
            let sweep = || {
                let mut tallies = shard.lock();
                let places = tallies.places();
                tallies.sweep(places, TallySweep::Old, now, |key| self.hash(key))
            };
            sweep().iter().for_each(|tally| tally.flush(self));
            sweep();
        }
    }

    /// Writes all that was counted in a scope to the records.
    pub(super) fn write_usage(&self, scope: Scope<'_>) {
        for shard in &self.all_tallies()[self.shards_of(scope)] {
            let found: Vec<_> =
                shard.lock().iter().filter(|tally| scope.has_key(tally.key())).cloned().collect();
            found.iter().for_each(|tally| tally.flush(self));
        }
    }

    /// Returns what is in use in one shard of cells and tallies, and what was counted there that is in no record yet.
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
        let mut found: HashMap<Key, CellAndTally> = HashMap::new();
        for cell in self.shards()[shard].lock().iter().filter(|cell| scope.has_key(cell.key())) {
            found.entry(cell.key().clone()).or_default().0 = Some(Arc::clone(cell));
        }
        for tally in self.all_tallies()[shard].lock().iter().filter(|tally| scope.has_key(tally.key())) {
            found.entry(tally.key().clone()).or_default().1 = Some(Arc::clone(tally));
        }
        let activity = |(key, (cell, tally)): (Key, CellAndTally)| {
            let (entity, resource) = key.pair()?;
            Some(Activity {
                entity: entity.into(),
                resource: resource.into(),
                hour: tally.and_then(|tally| tally.unwritten()),
                others: Vec::new(),
                in_use: cell.map_or(0, |cell| Activity::in_use(&cell.peek(clock))),
            })
        };
        let next = Some(shard + 1).filter(|next| shards.contains(next));
        let next = next.map(|next| Cursor::of(&[&next.to_string()]));
        Ok(Page { items: found.into_iter().filter_map(activity).collect(), next })
    }

    /// Adds sums to the records of usage.
    pub(super) fn write_sums(&self, key: &Key, sums: &Sums) {
        if let Some((entity, resource)) = key.pair().filter(|_| !sums.is_empty()) {
            let writes = sums.writes(&self.namespace, entity, resource, &self.usage_retention);
            self.records.write_usage(&writes);
        }
    }

    pub(super) fn tallies(&self, hash: u64) -> &Mutex<Tallies> {
        &self.all_tallies()[shard_of(hash)]
    }
}

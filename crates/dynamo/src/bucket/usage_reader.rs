//! Reading usage and activity, with nothing written.
//!
//! A record of usage and the counters of its bucket are in several items, and writing usage down moves both in one
//! transaction. So the items of the bucket are read before the record and after it: if the counters show both times that the
//! same was written down, the record has exactly that, and the rest is added in memory. A transaction of reads would
//! conflict with every write to a busy bucket.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tollgate_core::Tick;
use tollgate_store::records::{Cursor, GETS_MAX, Item, ItemKey, PAGE_MAX, Page};
use tollgate_store::usage::{Window, iso, usage_key};
use tollgate_store::{Activity, Scope, StoreError};

use super::address::Address;
use super::bucket_reader::{BucketReader, Items};
use super::index::{self, FoundItems};
use super::snapshot::ItemSnapshot;
use super::submit::Submitter;
use crate::attributes::{item_of, key_attributes};
use crate::records::read_items;
use crate::service::{Attempts, CallFailure, TableService};

/// Reads usage and activity.
pub(crate) struct UsageReader {
    submitter: Arc<Submitter>,
    reader: Arc<BucketReader>,
}

impl UsageReader {
    pub(super) fn new(submitter: Arc<Submitter>, reader: Arc<BucketReader>) -> UsageReader {
        UsageReader { submitter, reader }
    }

    fn service(&self) -> &TableService {
        self.submitter.items.service()
    }

    /// Returns what is in use of some buckets of a scope, and what was used of them that is in no record yet.
    ///
    /// Reads only, except that this process gives back what it has taken ahead and not used.
    pub(crate) async fn activity(
        &self,
        namespace: &str,
        scope: Scope<'_>,
        after: Option<Cursor>,
    ) -> Result<Page<Activity>, StoreError> {
        self.submitter.items.jobs.await_all_detached().await;
        let start = after.map(|after| index::start_of(namespace, scope, &after)).transpose()?;
        let found = index::find(self.service(), namespace, scope, start, PAGE_MAX).await?;
        let FoundItems { items, next } = found;
        let mut activities = Vec::new();
        let firsts: Vec<Address> =
            items.into_iter().filter(|(_, shard)| *shard == 0).map(|(address, _)| address).collect();
        for addresses in firsts.chunks(GETS_MAX) {
            activities.extend(self.activity_of(addresses).await?);
        }
        Ok(Page { items: activities, next: next.map(|next| index::cursor_of(namespace, scope, &next)) })
    }

    /// Returns the activity of these buckets, at most as many as are read at once.
    async fn activity_of(&self, addresses: &[Address]) -> Result<Vec<Activity>, StoreError> {
        for address in addresses {
            self.submitter.return_prefetched(address).await;
        }
        let buckets = self.reader.items_of(addresses).await?;
        let this_hour = Window::Hour.start(self.service().clock.now());
        let mut found = Vec::new();
        // A bucket that counts this hour may have written down some of it, so its record is read as well.
        let (mut counting, mut keys) = (Vec::new(), Vec::new());
        for (address, items) in addresses.iter().zip(&buckets) {
            let Some((entity, resource)) = address.key.pair().filter(|_| !items.is_empty()) else { continue };
            let mut hours = unwritten_hours(items);
            hours.remove(&this_hour);
            if items.iter().flatten().any(|snapshot| snapshot.counters.counts_for(this_hour)) {
                counting.push((found.len(), address.clone(), items.clone()));
                keys.push(usage_key(&address.space(), entity, resource, Window::Hour, &iso(this_hour)));
            }
            let limits = self.reader.merged_bucket(address, items);
            let now = self.service().clock.now();
            found.push(Activity {
                entity: entity.into(),
                resource: resource.into(),
                hour: None,
                others: hours.into_iter().collect(),
                in_use: limits.map_or(0, |snapshot| {
                    Activity::in_use(&snapshot.stored.bucket.peek(&snapshot.stored.limits, now))
                }),
            });
        }
        let places: Vec<usize> = counting.iter().map(|(place, ..)| *place).collect();
        let counted = counting.into_iter().map(|(_, address, items)| (address, items)).collect();
        for (place, record) in places.into_iter().zip(self.usage_with(&keys, counted).await?) {
            let calls = record.and_then(|record| record.int("total_events")).unwrap_or(0);
            found[place].hour = Some((this_hour, u64::try_from(calls).unwrap_or(0)));
        }
        Ok(found)
    }

    /// Returns the records of usage at these keys, each with what its bucket has counted since.
    pub(crate) async fn usage_at(&self, keys: &[ItemKey]) -> Result<Vec<Option<Item>>, StoreError> {
        self.submitter.items.jobs.await_all_detached().await;
        let mut addresses: Vec<Address> = Vec::new();
        for address in keys.iter().filter_map(Address::of_usage) {
            if !addresses.contains(&address) {
                self.submitter.return_prefetched(&address).await;
                addresses.push(address);
            }
        }
        let buckets = self.reader.items_of(&addresses).await?;
        self.usage_with(keys, addresses.into_iter().zip(buckets).collect()).await
    }

    /// Returns the records at these keys with what the buckets have counted since. The items of the buckets were read before.
    async fn usage_with(
        &self,
        keys: &[ItemKey],
        mut buckets: HashMap<Address, Items>,
    ) -> Result<Vec<Option<Item>>, StoreError> {
        let addresses: Vec<Address> = buckets.keys().cloned().collect();
        let mut attempts = Attempts::start();
        loop {
            let records = self.records_at(keys).await?;
            let after = self.reader.items_of(&addresses).await?;
            let is_same = |(address, after): (&Address, &Items)| is_written_alike(&buckets[address], after);
            let is_settled = addresses.iter().zip(&after).all(is_same);
            buckets = addresses.iter().cloned().zip(after).collect();
            if is_settled {
                let added = keys.iter().map(|key| {
                    let items = Address::of_usage(key).and_then(|address| buckets.get(&address));
                    self.with_unwritten(key, records.get(key).cloned(), items.map_or(&[], Vec::as_slice))
                });
                return Ok(added.collect());
            }
            self.service().pause_after_miss(&mut attempts).await?;
        }
    }

    /// Returns the records at these keys that have not expired, each as it is when it is read.
    async fn records_at(&self, keys: &[ItemKey]) -> Result<HashMap<ItemKey, Item>, StoreError> {
        let distinct: BTreeSet<&ItemKey> = keys.iter().collect();
        if distinct.is_empty() {
            return Ok(HashMap::new());
        }
        let wanted = distinct.into_iter().map(key_attributes).collect();
        let found = read_items(self.service(), wanted).await.map_err(CallFailure::store_error)?;
        let now = self.service().clock.now();
        let live = found.into_iter().filter_map(item_of).filter(|item| !item.has_expired(now));
        Ok(live.map(|item| (item.key.clone(), item)).collect())
    }

    /// Returns a record of usage as it would be if all usage of its bucket were written down.
    fn with_unwritten(
        &self,
        key: &ItemKey,
        record: Option<Item>,
        items: &[Option<ItemSnapshot>],
    ) -> Option<Item> {
        let retention = &self.submitter.items.writer.settings.usage_retention;
        let snapshots = items.iter().flatten();
        let unwritten = snapshots.flat_map(|snapshot| snapshot.counters.unwritten(&snapshot.stored.limits));
        let sums = unwritten.filter_map(|(hour, aside)| aside.sums(hour));
        sums.fold(record, |there, sums| sums.added_to(key, there, retention))
    }
}

/// Returns the hours with usage that is in no record yet.
fn unwritten_hours(items: &[Option<ItemSnapshot>]) -> BTreeSet<Tick> {
    let snapshots = items.iter().flatten();
    let hours = snapshots.flat_map(|snapshot| snapshot.counters.unwritten(&snapshot.stored.limits));
    hours.filter_map(|(hour, aside)| Some(aside.sums(hour)?.starts())).collect()
}

/// Returns whether nothing of a bucket was written down between two reads.
fn is_written_alike(before: &Items, after: &Items) -> bool {
    let is_same = |(one, two): (&Option<ItemSnapshot>, &Option<ItemSnapshot>)| match (one, two) {
        (None, None) => true,
        (Some(one), Some(two)) => one.counters.is_written_like(&two.counters),
        _ => false,
    };
    before.len() == after.len() && before.iter().zip(after).all(is_same)
}

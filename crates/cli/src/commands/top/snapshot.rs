//! The state of a namespace at one time.

use crate::commands::set::all_sets;
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tollgate::catalog::{UsageQuery, WaiterRecord, Window};
use tollgate::store::{Activity, Scope};
use tollgate::{Catalog, Status, StoredSet, StoredSets, Tick};

/// Microseconds of an hour.
const HOUR: u64 = 3_600_000_000;

/// The state of a namespace.
pub(super) struct NamespaceSnapshot {
    pub(super) at: Tick,
    pub(super) hour: Tick,
    /// How many buckets were used in this hour, or are not full.
    pub(super) in_use: usize,
    /// The busiest buckets: by calls since the last snapshot, then in this hour, then by how little is left.
    pub(super) rows: Vec<TopRow>,
    /// The waiter that waits longest comes first.
    pub(super) waiters: Vec<WaiterRecord>,
    /// The limit sets that are not idle. They have a namespace of their own.
    pub(super) sets: Vec<StoredSet>,
    /// The calls of each bucket in this hour, by a hash of its names, for the next snapshot.
    calls: HashMap<u64, u64>,
}

/// An entity and a resource.
pub(super) struct TopRow {
    pub(super) entity: String,
    pub(super) resource: String,
    /// Calls that were admitted in this hour.
    pub(super) calls: u64,
    /// How many more these are than in the last snapshot.
    pub(super) calls_change: Option<u64>,
    /// What was used in this hour.
    pub(super) used: BTreeMap<String, i64>,
    /// The status of each limit; empty if the bucket was evicted because it is full.
    pub(super) limits: Vec<Status>,
}

/// The sort key of a bucket: the busiest is the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Busyness {
    change: Option<u64>,
    calls: u64,
    /// In millionths.
    in_use: u32,
    names: Reverse<(String, String)>,
}

impl NamespaceSnapshot {
    /// Takes a snapshot with the `most` busiest buckets.
    pub(super) fn at(
        catalog: &Catalog,
        sets_in: &str,
        last: Option<&NamespaceSnapshot>,
        most: usize,
    ) -> Result<NamespaceSnapshot> {
        let at = catalog.backend().clock().now();
        let hour = Tick::from_micros(at.as_micros() / HOUR * HOUR);
        let waiters = catalog.waiters().wait()?;
        let mut sets = all_sets(&StoredSets::new(Arc::clone(catalog.backend())).namespace(sets_in))?;
        sets.retain(|set| !set.is_idle());
        let mut snapshot =
            NamespaceSnapshot { at, hour, in_use: 0, rows: Vec::new(), waiters, sets, calls: HashMap::new() };
        let last = last.filter(|last| last.hour == hour);
        snapshot.add_active(catalog, last, most)?;
        Ok(snapshot)
    }

    /// Reads all buckets once and collects the busiest.
    fn add_active(&mut self, catalog: &Catalog, last: Option<&NamespaceSnapshot>, most: usize) -> Result<()> {
        let mut busiest = BinaryHeap::new();
        let mut after = None;
        loop {
            let page = catalog.backend().activity(catalog.namespace_id(), Scope::All, after).wait()?;
            for Activity { entity, resource, hour, in_use, .. } in page.items {
                let calls = hour.filter(|(hour, _)| *hour == self.hour).map_or(0, |(_, calls)| calls);
                if calls == 0 && in_use == 0 {
                    continue;
                }
                self.in_use += 1;
                let change = self.note(last, (&entity, &resource), calls);
                busiest.push(Reverse(Busyness { change, calls, in_use, names: Reverse((entity, resource)) }));
                if busiest.len() > most {
                    busiest.pop();
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for Reverse(busy) in busiest.into_sorted_vec() {
            self.rows.push(TopRow::read(catalog, self.hour, busy)?);
        }
        Ok(())
    }

    /// Records the calls of a bucket in this hour, and returns how many more these are than in the last snapshot.
    fn note(&mut self, last: Option<&NamespaceSnapshot>, names: (&str, &str), calls: u64) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        let hash = hasher.finish();
        self.calls.insert(hash, calls);
        last.map(|last| calls.saturating_sub(last.calls.get(&hash).copied().unwrap_or(0)))
    }
}

impl TopRow {
    /// Reads the details of a bucket that is shown.
    fn read(catalog: &Catalog, hour: Tick, busy: Busyness) -> Result<TopRow> {
        let Busyness { change, calls, names: Reverse((entity, resource)), .. } = busy;
        let scope = Scope::Bucket(&entity, &resource);
        let bucket = catalog.backend().buckets(catalog.namespace_id(), scope, None, 1).wait()?;
        let limits = bucket.items.into_iter().next().map_or(Vec::new(), |bucket| bucket.limits);
        let query = UsageQuery::of_entity(&entity, Window::Hour).resource(&resource).from(hour);
        let used = catalog.usage(query).wait()?.items.into_iter().next();
        let used = used.map_or_else(BTreeMap::new, |usage| usage.amounts);
        Ok(TopRow { calls, calls_change: change, used, limits, entity, resource })
    }

    /// Returns the limit of which the smallest share is left, and how much of it is in use, from 0 to 1.
    pub(super) fn tightest(&self) -> Option<(&Status, f64)> {
        tightest(&self.limits)
    }

    /// Returns what is held of concurrency limits: the limit, how many, and the capacity.
    pub(super) fn held(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let resources = self.limits.iter().filter(|status| status.limit().is_resource());
        resources.filter_map(|status| {
            let capacity = status.limit().capacity();
            let free = u64::try_from(status.available()).unwrap_or(0);
            let held = capacity.saturating_sub(free);
            (held > 0 && !status.limit().is_unbounded())
                .then(|| (status.limit().name().as_str(), held, capacity))
        })
    }
}

/// Returns the limit of which the smallest share is left, and how much of it is in use, from 0 to 1.
pub(super) fn tightest(limits: &[Status]) -> Option<(&Status, f64)> {
    let bounded = limits.iter().filter(|status| !status.limit().is_unbounded());
    let shares = bounded.map(|status| (status, share_used(status)));
    shares.max_by(|(_, one), (_, two)| one.total_cmp(two))
}

/// Returns the share that is in use. The subtraction is exact, so that a fifth is 0.2 and not slightly less.
fn share_used(status: &Status) -> f64 {
    let capacity = status.limit().capacity().max(1);
    let used = i128::from(capacity) - i128::from(status.available());
    (used as f64 / capacity as f64).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_no_rounding_error() {
        for (used, share) in [(0, "0.0"), (1, "0.1"), (2, "0.2"), (3, "0.3"), (7, "0.7"), (10, "1.0")] {
            let limit = tollgate::Limit::per_minute("rpm", 10);
            let set = tollgate::LimitSet::new([limit]).unwrap();
            drop(set.try_acquire(tollgate::demand! { rpm: used }).wait().unwrap());
            let status = set.peek().wait().unwrap().limits.remove(0);
            assert_eq!(serde_json::to_string(&share_used(&status)).unwrap(), share);
        }
    }
}

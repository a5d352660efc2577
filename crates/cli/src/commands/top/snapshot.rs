//! The state of a namespace at one time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use anyhow::Result;
use tollgate::catalog::{UsageQuery, WaiterRecord, Window};
use tollgate::store::{Activity, Scope};
use tollgate::{Catalog, Status, StoredSet, StoredSets, Tick};

use crate::args::SortBy;
use crate::commands::set::all_sets;

/// Microseconds of an hour.
const HOUR: u64 = 3_600_000_000;

/// The page size of reading buckets.
const PAGE: usize = 1_000;

/// What a snapshot is of.
pub(super) struct SnapshotQuery<'a> {
    /// The namespace of the limit sets.
    pub(super) sets_in: &'a str,
    pub(super) sort: SortBy,
    /// A part of the names of what is shown; empty for all.
    pub(super) filter: &'a str,
    /// The maximum number of rows.
    pub(super) most: usize,
}

/// The state of a namespace.
pub(super) struct NamespaceSnapshot {
    pub(super) at: Tick,
    pub(super) hour: Tick,
    /// How many buckets that the filter selects were used in this hour, or are not full.
    pub(super) in_use: usize,
    /// The first buckets in the order of the query, and then by calls since the last snapshot and in this hour.
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
    /// How many more these are in each second.
    pub(super) calls_per_second: Option<f64>,
    /// What was used in this hour.
    pub(super) used: BTreeMap<String, i64>,
    /// How much of the limit is in use of which the smallest share is left, in millionths.
    in_use: u32,
    /// The status of each limit; empty if the bucket was evicted because it is full.
    pub(super) limits: Vec<Status>,
}

/// The sort key of a bucket: the first row is the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Busyness {
    /// By the column that rows are sorted by; 0 if that is calls.
    weight: i128,
    change: Option<u64>,
    calls: u64,
    /// In millionths.
    in_use: u32,
    names: Reverse<(String, String)>,
}

impl NamespaceSnapshot {
    /// Takes a snapshot. Calls are counted from `last` on.
    pub(super) fn at(
        catalog: &Catalog,
        query: &SnapshotQuery<'_>,
        last: Option<&NamespaceSnapshot>,
    ) -> Result<NamespaceSnapshot> {
        let at = catalog.backend().clock().now();
        let hour = Tick::from_micros(at.as_micros() / HOUR * HOUR);
        let mut waiters = catalog.waiters().wait()?;
        waiters.retain(|waiter| selects(query.filter, [&waiter.entity, &waiter.resource]));
        let mut sets = all_sets(&StoredSets::new(Arc::clone(catalog.backend())).namespace(query.sets_in))?;
        sets.retain(|set| !set.is_idle() && selects(query.filter, [&set.name]));
        let mut snapshot =
            NamespaceSnapshot { at, hour, in_use: 0, rows: Vec::new(), waiters, sets, calls: HashMap::new() };
        snapshot.add_active(catalog, query, last)?;
        Ok(snapshot)
    }

    /// Reads all buckets once and collects the first rows.
    fn add_active(
        &mut self,
        catalog: &Catalog,
        query: &SnapshotQuery<'_>,
        last: Option<&NamespaceSnapshot>,
    ) -> Result<()> {
        let weights = weights(catalog, query.sort)?;
        let mut busiest = BinaryHeap::new();
        let mut after = None;
        loop {
            let page = catalog.backend().activity(catalog.namespace_id(), Scope::All, after).wait()?;
            for Activity { entity, resource, hour, in_use, .. } in page.items {
                let calls = hour.filter(|(hour, _)| *hour == self.hour).map_or(0, |(_, calls)| calls);
                if (calls == 0 && in_use == 0) || !selects(query.filter, [&entity, &resource]) {
                    continue;
                }
                self.in_use += 1;
                let hash = hash_of(&entity, &resource);
                let change = self.note(last, hash, calls);
                let weight = match query.sort {
                    SortBy::Used => i128::from(in_use),
                    // An evicted bucket is full.
                    sort => weights.get(&hash).copied().unwrap_or_else(|| weight(sort, &[])),
                };
                let names = Reverse((entity, resource));
                busiest.push(Reverse(Busyness { weight, change, calls, in_use, names }));
                if busiest.len() > query.most {
                    busiest.pop();
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for Reverse(busy) in busiest.into_sorted_vec() {
            self.rows.push(TopRow::read(catalog, self.hour, self.seconds_since(last), busy)?);
        }
        Ok(())
    }

    /// Records the calls of a bucket in this hour, and returns how many more these are than in the last snapshot. Of the hour
    /// of the last snapshot nothing more is known if it is over.
    fn note(&mut self, last: Option<&NamespaceSnapshot>, hash: u64, calls: u64) -> Option<u64> {
        self.calls.insert(hash, calls);
        let before = |last: &NamespaceSnapshot| match last.hour == self.hour {
            true => last.calls.get(&hash).copied().unwrap_or(0),
            false => 0,
        };
        last.map(|last| calls.saturating_sub(before(last)))
    }

    /// Returns the seconds in which calls were counted: since the last snapshot, and at most since the hour began.
    fn seconds_since(&self, last: Option<&NamespaceSnapshot>) -> Option<f64> {
        let from = last?.at.max(self.hour);
        Some(self.at.since(from).as_micros() as f64 / 1e6).filter(|seconds| *seconds > 0.0)
    }

    /// Sorts the rows that were read in another order.
    pub(super) fn sort(&mut self, sort: SortBy) {
        self.rows.sort_by_cached_key(|row| Reverse(row.busyness(sort)));
    }
}

impl TopRow {
    /// Reads the details of a bucket that is shown.
    fn read(catalog: &Catalog, hour: Tick, seconds: Option<f64>, busy: Busyness) -> Result<TopRow> {
        let Busyness { change, calls, in_use, names: Reverse((entity, resource)), .. } = busy;
        let scope = Scope::Bucket(&entity, &resource);
        let bucket = catalog.backend().buckets(catalog.namespace_id(), scope, None, 1).wait()?;
        let limits = bucket.items.into_iter().next().map_or(Vec::new(), |bucket| bucket.limits);
        let query = UsageQuery::of_entity(&entity, Window::Hour).resource(&resource).from(hour);
        let used = catalog.usage(query).wait()?.items.into_iter().next();
        let used = used.map_or_else(BTreeMap::new, |usage| usage.amounts);
        let calls_per_second = change.zip(seconds).map(|(change, seconds)| change as f64 / seconds);
        Ok(TopRow { calls, calls_change: change, calls_per_second, used, in_use, limits, entity, resource })
    }

    fn busyness(&self, sort: SortBy) -> Busyness {
        Busyness {
            weight: if sort == SortBy::Used { self.in_use.into() } else { weight(sort, &self.limits) },
            change: self.calls_change,
            calls: self.calls,
            in_use: self.in_use,
            names: Reverse((self.entity.clone(), self.resource.clone())),
        }
    }

    /// Returns the limit of which the smallest share is left, and how much of it is in use, from 0 to 1.
    pub(super) fn tightest(&self) -> Option<(&Status, f64)> {
        tightest(&self.limits)
    }

    /// Returns what is held of concurrency limits: the limit, how many, and the capacity.
    pub(super) fn held(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        held(&self.limits)
    }
}

/// Returns the sort keys of all buckets that are not full, for orders that need their limits.
fn weights(catalog: &Catalog, sort: SortBy) -> Result<HashMap<u64, i128>> {
    let mut weights = HashMap::new();
    if !matches!(sort, SortBy::Left | SortBy::Held) {
        return Ok(weights);
    }
    let mut after = None;
    loop {
        let page = catalog.backend().buckets(catalog.namespace_id(), Scope::All, after, PAGE).wait()?;
        for bucket in page.items {
            weights.insert(hash_of(&bucket.entity, &bucket.resource), weight(sort, &bucket.limits));
        }
        after = page.next;
        if after.is_none() {
            return Ok(weights);
        }
    }
}

/// Returns the sort key of a bucket in an order that needs its limits.
fn weight(sort: SortBy, limits: &[Status]) -> i128 {
    match sort {
        SortBy::Calls | SortBy::Used => 0,
        SortBy::Left => {
            let left = tightest(limits).map(|(status, _)| status.available());
            left.map_or(i128::MIN, |left| -i128::from(left))
        }
        SortBy::Held => held(limits).map(|(_, held, _)| i128::from(held)).sum(),
    }
}

fn hash_of(entity: &str, resource: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (entity, resource).hash(&mut hasher);
    hasher.finish()
}

/// Returns whether a filter is a part of a name, in whatever case.
fn selects<const N: usize>(filter: &str, names: [&str; N]) -> bool {
    let filter = filter.to_lowercase();
    names.iter().any(|name| name.to_lowercase().contains(&filter))
}

fn held(limits: &[Status]) -> impl Iterator<Item = (&str, u64, u64)> {
    let resources = limits.iter().filter(|status| status.limit().is_resource());
    resources.filter_map(|status| {
        let capacity = status.limit().capacity();
        let free = u64::try_from(status.available()).unwrap_or(0);
        let held = capacity.saturating_sub(free);
        (held > 0 && !status.limit().is_unbounded()).then(|| (status.limit().name().as_str(), held, capacity))
    })
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
    use tollgate::{Level, Limit, Limiter, Limits, demand};

    use super::*;

    /// Three buckets, each of which is the first in one order: of three tokens, of a thousand, and with a slot.
    fn limiter() -> Limiter {
        let limiter = Limiter::in_memory().unwrap();
        let amounts = [("calls", 1_000), ("small", 10), ("large", 100)];
        for (entity, tokens) in amounts {
            let limits = Limits::new([Limit::per_hour("tpm", tokens), Limit::resource("slots", 4)]).unwrap();
            limiter.catalog().set_limits(Level::Entity(entity), &limits).wait().unwrap();
        }
        for (entity, tokens, calls) in [("calls", 1, 5), ("small", 7, 1), ("large", 80, 1)] {
            for _ in 0..calls {
                let demand = demand! { tpm: tokens, slots: 1 };
                let lease = limiter.acquire(entity, "Model", demand).wait().unwrap();
                lease.commit().wait().unwrap();
            }
        }
        limiter
    }

    fn snapshot(limiter: &Limiter, sort: SortBy, filter: &str, most: usize) -> NamespaceSnapshot {
        let query = SnapshotQuery { sets_in: "sets", sort, filter, most };
        NamespaceSnapshot::at(limiter.catalog(), &query, None).unwrap()
    }

    fn first(snapshot: &NamespaceSnapshot) -> &str {
        &snapshot.rows[0].entity
    }

    #[test]
    fn rows_are_sorted_by_a_column_before_and_after_they_are_read() {
        let limiter = limiter();
        let holder = limiter.acquire("small", "other", demand! { tpm: 1, slots: 2 }).wait().unwrap();
        for (sort, entity) in [
            (SortBy::Calls, "calls"),
            (SortBy::Used, "large"),
            (SortBy::Left, "small"),
            (SortBy::Held, "small"),
        ] {
            assert_eq!(first(&snapshot(&limiter, sort, "", 1)), entity, "{sort:?}");
            let mut all = snapshot(&limiter, SortBy::Calls, "", 9);
            all.sort(sort);
            assert_eq!(first(&all), entity, "{sort:?}");
        }
        drop(holder);
    }

    #[test]
    fn a_filter_selects_by_a_part_of_either_name_in_any_case() {
        let limiter = limiter();
        assert_eq!(snapshot(&limiter, SortBy::Calls, "AR", 9).in_use, 1);
        assert_eq!(snapshot(&limiter, SortBy::Calls, "model", 9).in_use, 3);
        assert_eq!(snapshot(&limiter, SortBy::Calls, "absent", 9).rows.len(), 0);
    }

    #[test]
    fn rates_are_counted_since_the_last_snapshot_also_over_the_hour() {
        let limiter = limiter();
        let mut last = snapshot(&limiter, SortBy::Calls, "", 9);
        last.at = last.at - tollgate::Span::from_secs(2);
        let hash = hash_of("calls", "Model");
        last.calls.insert(hash, 1);
        let mut now = snapshot(&limiter, SortBy::Calls, "", 9);
        now.hour = last.hour;
        assert_eq!(now.note(Some(&last), hash, 5), Some(4));
        last.hour = last.hour - tollgate::Span::from_secs(3_600);
        assert_eq!(now.note(Some(&last), hash, 5), Some(5), "those of the last hour are not subtracted");
        now.hour = now.at - tollgate::Span::from_secs(1);
        assert_eq!(now.seconds_since(Some(&last)), Some(1.0), "the hour began a second ago");
        assert_eq!(now.seconds_since(None), None);
    }

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

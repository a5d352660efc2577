//! Buckets in several items: put together, and shared out again.

use tollgate_core::{Bucket, Limits, MILLIS, Part, Tick};
use tollgate_store::StoredBucket;
use tollgate_store::usage::Caller;

use super::counters::UsageCounters;
use super::draft::ItemDraft;
use super::snapshot::ItemSnapshot;

/// Returns the whole of a bucket, as if it were one item of which nothing was counted yet. Items that are missing are full.
pub(super) fn merged(snapshots: &[Option<ItemSnapshot>], last: Tick, now: Tick) -> Option<ItemSnapshot> {
    let first = snapshots.iter().flatten().next()?;
    let (whole, shards) = (first.whole.clone(), snapshots.len() as u32);
    let version = snapshots.iter().flatten().map(|snapshot| snapshot.stored.version).max().unwrap_or(0);
    let time = snapshots
        .iter()
        .flatten()
        .map(|snapshot| snapshot.stored.bucket.stamp())
        .fold(now.max(last), Tick::max);
    let fresh = |shard: usize| ItemSnapshot::fresh(&whole, shard as u32, shards);
    let mut sums: Vec<Part> = Vec::new();
    for (shard, snapshot) in snapshots.iter().enumerate() {
        let mut snapshot = snapshot.clone().or_else(|| fresh(shard))?;
        snapshot.stored.bucket.adopt(&snapshot.stored.limits, &whole, time);
        let parts = snapshot.stored.bucket.parts(&whole);
        if sums.is_empty() {
            sums = parts;
        } else {
            sums.iter_mut().zip(parts).zip(whole.iter()).for_each(|((sum, part), limit)| {
                let unit = limit.meter().map_or(1, |rate| rate.unit);
                add(sum, &part, unit);
            });
        }
    }
    let bucket = Bucket::of_parts(&whole, time, &sums).ok()?;
    let snapshot = ItemSnapshot::fresh(&whole, 0, 1)?;
    Some(ItemSnapshot {
        stored: StoredBucket { limits: whole.clone(), version, bucket },
        counters: UsageCounters::of(&whole),
        generation: first.generation,
        ..snapshot
    })
}

fn add(sum: &mut Part, part: &Part, unit: u64) {
    if let (Part::Credit { millis, rest }, Part::Credit { millis: more, rest: beyond }) = (sum, part) {
        let left_over = u128::from(*rest) + u128::from(*beyond);
        *millis += more + (left_over / u128::from(unit)) as i128;
        *rest = (left_over % u128::from(unit)) as u64;
    }
}

/// Returns the states of the items that a bucket is shared out to, by how much each may have. `None` if it cannot be.
pub(super) fn shared_out(stored: &StoredBucket, whole: &Limits, shards: u32) -> Option<Vec<StoredBucket>> {
    if shards == 1 {
        return Some(vec![stored.clone()]);
    }
    let shares: Vec<Limits> =
        (0..shards).map(|shard| whole.part(shard.into(), shards.into())).collect::<Option<_>>()?;
    let parts = stored.bucket.parts(whole);
    let mut columns: Vec<Vec<Part>> = vec![Vec::new(); shares.len()];
    for (place, part) in parts.iter().enumerate() {
        let Part::Credit { millis, .. } = part else { return None };
        let amounts = amounts(*millis, &shares, place);
        columns
            .iter_mut()
            .zip(amounts)
            .for_each(|(column, millis)| column.push(Part::Credit { millis, rest: 0 }));
    }
    let stamp = stored.bucket.stamp();
    let stored = |(share, column): (&Limits, Vec<Part>)| {
        let bucket = Bucket::of_parts(share, stamp, &column).ok()?;
        Some(StoredBucket { limits: share.clone(), version: stored.version, bucket })
    };
    shares.iter().zip(columns).map(stored).collect()
}

/// Returns the thousandths of each share, in proportion to its capacity; their sum is `millis`.
fn amounts(millis: i128, shares: &[Limits], place: usize) -> Vec<i128> {
    let capacities: Vec<i128> =
        shares.iter().map(|share| i128::from(share[place].capacity()) * MILLIS).collect();
    let capacity: i128 = capacities.iter().sum();
    let mut amounts: Vec<i128> =
        capacities.iter().map(|share| (millis * share).div_euclid(capacity)).collect();
    let mut left = millis - amounts.iter().sum::<i128>();
    for (amount, share) in amounts.iter_mut().zip(&capacities) {
        let more = left.min(share - *amount).max(0);
        *amount += more;
        left -= more;
    }
    amounts
}

/// Returns what becomes of each item when the whole becomes what the draft has it to be, shared out to `wanted` items.
pub(super) fn drafts_of(
    snapshots: &[Option<ItemSnapshot>],
    draft: &ItemDraft,
    wanted: u32,
) -> Vec<ItemDraft> {
    let Some(after) = &draft.after else { return Vec::new() };
    let shares = shards_for(&after.whole, wanted);
    let stored =
        shared_out(&after.stored, &after.whole, shares).unwrap_or_else(|| vec![after.stored.clone()]);
    let shards = stored.len() as u32;
    let mut drafts = Vec::new();
    for (shard, stored) in stored.into_iter().enumerate() {
        let before = snapshots.get(shard).cloned().flatten();
        let mut snapshot = ItemSnapshot {
            whole: after.whole.clone(),
            shard: shard as u32,
            shards,
            ttl: None,
            ..after.clone()
        };
        snapshot.revision = before.as_ref().map_or(0, |before| before.revision);
        snapshot.generation = before.as_ref().map_or(0, |before| before.generation) + 1;
        snapshot.writers = before.as_ref().map(|before| before.writers.clone()).unwrap_or_default();
        if let Some(before) = &before {
            snapshot.counters = before.counters.clone();
            snapshot.counters.adopt(&before.stored.limits, &stored.limits);
        }
        snapshot.stored = stored;
        if shard == 0 {
            snapshot.ttl = if shards == 1 { after.ttl } else { None };
            if before.is_some() {
                count(&mut snapshot, after);
                absorb(&mut snapshot, snapshots.get(shards as usize..).unwrap_or_default());
            }
        } else if before.is_none() {
            // What the whole counts is counted at its first item.
            snapshot.counters = UsageCounters::of(&snapshot.stored.limits);
        }
        drafts.push(draft_of(before, Some(snapshot), draft));
    }
    for gone in snapshots.get(shards as usize..).unwrap_or_default().iter().flatten() {
        drafts.push(draft_of(Some(gone.clone()), None, draft));
    }
    drafts
}

/// Returns the draft of one item that becomes `after`, or is deleted.
fn draft_of(before: Option<ItemSnapshot>, after: Option<ItemSnapshot>, whole: &ItemDraft) -> ItemDraft {
    ItemDraft {
        before,
        after,
        moves: None,
        is_changed: true,
        corrections: Vec::new(),
        corrections_of: Caller::Own,
        now: whole.now,
        time: whole.time,
    }
}

/// Adds what was counted of the whole.
fn count(snapshot: &mut ItemSnapshot, whole: &ItemSnapshot) {
    let limits = snapshot.stored.limits.clone();
    for (hour, aside) in whole.counters.unwritten(&whole.stored.limits) {
        snapshot.counters.open_hour(&limits, hour);
        snapshot.counters.events.total += i128::from(aside.events);
        aside.amounts.iter().for_each(|(name, amount)| snapshot.counters.add(&limits, name, *amount));
    }
}

/// Takes over what items that are deleted have counted.
fn absorb(snapshot: &mut ItemSnapshot, gone: &[Option<ItemSnapshot>]) {
    for other in gone.iter().flatten() {
        for (hour, aside) in other.counters.unwritten(&other.stored.limits) {
            let sum = snapshot.counters.aside.entry(hour).or_default();
            sum.events += aside.events;
            for (name, amount) in aside.amounts {
                *sum.amounts.entry(name).or_default() += amount;
            }
        }
    }
}

/// Returns as many shares as are wanted, or one if the limits cannot be shared out.
fn shards_for(limits: &Limits, wanted: u32) -> u32 {
    if wanted > 1 && limits.part(u64::from(wanted) - 1, wanted.into()).is_none() { 1 } else { wanted.max(1) }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Limit, Take, demand};

    use super::*;

    #[test]
    fn what_is_shared_out_is_put_together_again() {
        let limits = Limits::new([Limit::per_minute("rpm", 1_000), Limit::per_second("tpm", 77).burst(333)]);
        let limits = limits.expect("they are valid");
        let now = Tick::from_secs(1_000);
        for (rpm, tpm) in [(0, 0), (1, 1), (999, 332), (1_000, 333)] {
            let mut stored = StoredBucket::fresh(&limits);
            let costs = limits.costs(&demand! { rpm: rpm, tpm: tpm }).expect("it fits");
            stored.bucket.take(&limits, now, &Take::of(&costs)).expect("it fits");
            for shards in [1, 2, 4, 8, 16, 32] {
                let parts = shared_out(&stored, &limits, shards).expect("they are meters");
                let snapshot = |(shard, stored): (usize, StoredBucket)| {
                    let snapshot = ItemSnapshot::fresh(&limits, shard as u32, shards).expect("it is a part");
                    Some(ItemSnapshot { stored, ..snapshot })
                };
                let snapshots: Vec<Option<ItemSnapshot>> =
                    parts.into_iter().enumerate().map(snapshot).collect();
                let whole = merged(&snapshots, now, now).expect("there are some");
                let left = |stored: &StoredBucket| {
                    let statuses = stored.bucket.peek(&stored.limits, now);
                    statuses.iter().map(tollgate_core::Status::available).collect::<Vec<_>>()
                };
                assert_eq!(left(&whole.stored), left(&stored), "{shards} shards, {rpm} and {tpm} taken");
            }
        }
    }

    #[test]
    fn items_that_are_missing_are_full() {
        let limits = Limits::new([Limit::per_minute("rpm", 1_000)]).expect("it is valid");
        let snapshots = vec![ItemSnapshot::fresh(&limits, 0, 4), None, None, None];
        let whole = merged(&snapshots, Tick::ZERO, Tick::from_secs(5)).expect("there is one");
        assert_eq!(whole.stored.bucket.peek(&limits, Tick::from_secs(5))[0].available(), 1_000);
    }
}

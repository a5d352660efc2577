//! Snapshot of one item of a bucket.
//!
//! | attribute | meaning |
//! |---|---|
//! | `rf`, `ru` | the time of the states: milliseconds, and microseconds beyond if any |
//! | `b_{limit}_tk`, `_rm` | credit of a meter: thousandths, and what is left over of the next one if anything |
//! | `b_{limit}_st` | state of any other limit |
//! | `b_{limit}_tc`, `_tw` | thousandths used, net; and how many of them were written down as usage |
//! | `b_{limit}_cp`, `_ra`, `_rp`, or `lt` | the limits |
//! | `en`, `ew` | takes, and how many of them were written down |
//! | `uh`, `pu` | the hour that is counted, and the unwritten usage of others |
//! | `shard_count` | how many items the bucket is in |
//! | `cv`, `lg` | the version of the limits, and how often they were changed |
//! | `rv` | how often the item was written |
//! | `w_{writer}` | the last write of each writer, so that none counts twice |
//! | `b_wcu_*` | how many writes a second the item still bears |
//! | `ttl` | when it expires, in seconds |

use std::collections::BTreeMap;

use tollgate_core::{Bucket, Limits, Part, Ready, Span, Tick};
use tollgate_store::StoredBucket;

use super::BadItem;
use super::address::{Address, STATE};
use super::counters::UsageCounters;
use super::limits::{self, WCU};
use super::values::{bytes, number, read_bytes, read_number, read_unsigned, text};
use crate::service::Attributes;

/// A bucket of default limits expires after so many times the time that it takes to fill.
const LASTS_FILLS: u64 = 7;

/// Writes that a partition bears in a second, in thousandths.
pub(crate) const WCU_FULL: i64 = 1_000_000;

/// One item of a bucket: all of it, unless the bucket is in several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ItemSnapshot {
    /// The limits of the whole bucket.
    pub(crate) whole: Limits,
    /// The states, under the item's part of the limits.
    pub(crate) stored: StoredBucket,
    /// The thousandths of each meter as the item has them. `stored` may have less: the core counts whole units, and never
    /// more than is full.
    pub(crate) credits: Vec<i128>,
    pub(crate) shard: u32,
    pub(crate) shards: u32,
    /// The attribute `shard_count`. If the limits cannot be shared out to so many, the item is all of the bucket.
    pub(crate) shard_count: u32,
    pub(crate) revision: u64,
    pub(crate) generation: u64,
    pub(crate) counters: UsageCounters,
    /// By the name of their attribute.
    pub(crate) writers: BTreeMap<String, u64>,
    pub(crate) ttl: Option<u64>,
    pub(crate) wcu: i64,
}

impl ItemSnapshot {
    /// Returns a bucket of which nothing was used, or one of `shards` parts of it; `None` if the limits cannot be shared out.
    pub(crate) fn fresh(whole: &Limits, shard: u32, shards: u32) -> Option<ItemSnapshot> {
        let part = whole.part(shard.into(), shards.into())?;
        let stored = StoredBucket::fresh(&part);
        Some(ItemSnapshot {
            whole: whole.clone(),
            credits: credits(&stored.bucket.parts(&part)),
            stored,
            shard,
            shards,
            shard_count: shards,
            revision: 0,
            generation: 0,
            counters: UsageCounters::of(&part),
            writers: BTreeMap::new(),
            ttl: None,
            wcu: WCU_FULL,
        })
    }

    /// Returns one of `shards` parts of a bucket, with nothing in it yet.
    pub(crate) fn empty(of: &ItemSnapshot, shard: u32, shards: u32, now: Tick) -> Option<ItemSnapshot> {
        let mut snapshot = ItemSnapshot::fresh(&of.whole, shard, shards)?;
        let parts = snapshot.stored.limits.iter().map(|_| Part::Credit { millis: 0, rest: 0 });
        let parts: Vec<Part> = parts.collect();
        snapshot.stored.bucket = Bucket::of_parts(&snapshot.stored.limits, now, &parts).ok()?;
        snapshot.stored.version = of.stored.version;
        Some(snapshot)
    }

    pub(crate) fn read(attributes: &Attributes) -> Result<ItemSnapshot, BadItem> {
        let get = |name: &str| read_unsigned(attributes.get(name));
        let shard_count =
            get("shard_count").and_then(|shards| u32::try_from(shards).ok()).unwrap_or(1).max(1);
        let shard = shard_of(attributes).unwrap_or(0);
        let version = get("cv").unwrap_or(0);
        let whole = limits::read(attributes, version)?;
        let part = whole.part(shard.into(), shard_count.into());
        let shards = if part.is_some() { shard_count } else { 1 };
        let part = part.unwrap_or_else(|| whole.clone());
        let stamp = get("rf").ok_or_else(|| BadItem("it has no number rf".into()))?;
        let stamp = Tick::from_micros(stamp.saturating_mul(1_000).saturating_add(get("ru").unwrap_or(0)));
        let parts = part.iter().map(|limit| {
            let name = |suffix: &str| format!("b_{}_{suffix}", limit.name());
            if limit.meter().is_some() {
                let millis = read_number(attributes.get(&name("tk")));
                let millis = millis.ok_or_else(|| BadItem(format!("it has no number {}", name("tk"))))?;
                let rest = read_unsigned(attributes.get(&name("rm"))).unwrap_or(0);
                return Ok(Part::Credit { millis, rest });
            }
            let state = read_bytes(attributes.get(&name("st")));
            state
                .map(|state| Part::Other(state.to_vec()))
                .ok_or_else(|| BadItem(format!("it has no {}", name("st"))))
        });
        let parts = parts.collect::<Result<Vec<_>, BadItem>>()?;
        let bucket = Bucket::of_parts(&part, stamp, &parts).map_err(|why| BadItem(why.to_string()))?;
        let credits = credits(&parts);
        let counters = UsageCounters::read(&part, attributes);
        let writers = attributes.iter().filter(|(name, _)| name.starts_with("w_"));
        Ok(ItemSnapshot {
            stored: StoredBucket { limits: part, version, bucket },
            credits,
            whole,
            shard,
            shards,
            shard_count,
            revision: get("rv").unwrap_or(0),
            generation: get("lg").unwrap_or(0),
            counters,
            writers: writers
                .filter_map(|(name, seq)| Some((name.clone(), read_unsigned(Some(seq))?)))
                .collect(),
            ttl: get("ttl"),
            wcu: read_number(attributes.get("b_wcu_tk"))
                .and_then(|wcu| i64::try_from(wcu).ok())
                .unwrap_or(WCU_FULL),
        })
    }

    /// Encodes everything but its keys and its writers.
    pub(crate) fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::new();
        let stamp = self.stored.bucket.stamp().as_micros();
        let mut put = |name: String, value| attributes.insert(name, value);
        put("rf".into(), number(stamp / 1_000));
        if !stamp.is_multiple_of(1_000) {
            put("ru".into(), number(stamp % 1_000));
        }
        for (limit, part) in self.stored.limits.iter().zip(self.stored.bucket.parts(&self.stored.limits)) {
            let name = |suffix: &str| format!("b_{}_{suffix}", limit.name());
            match part {
                Part::Credit { millis, rest } => {
                    put(name("tk"), number(millis));
                    if rest != 0 {
                        put(name("rm"), number(rest));
                    }
                }
                Part::Other(state) => {
                    put(name("st"), bytes(state));
                }
            }
        }
        put("shard_count".into(), number(self.shards));
        put("rv".into(), number(self.revision));
        let named = [("lg", self.generation), ("cv", self.stored.version), ("ttl", self.ttl.unwrap_or(0))];
        for (name, value) in named.into_iter().filter(|(_, value)| *value != 0) {
            put(name.into(), number(value));
        }
        put(format!("b_{WCU}_tk"), number(self.wcu));
        limits::write(&self.whole, &mut attributes);
        self.counters.write(&self.stored.limits, &mut attributes);
        attributes
    }

    /// Returns the attributes that never change: keys, entity and resource.
    pub(crate) fn keys(address: &Address, shard: u32) -> Attributes {
        let mut keys = key(address, shard);
        keys.extend(address.index_keys(shard).into_iter().map(|(name, key)| (name.to_owned(), text(key))));
        if let Some((entity, resource)) = address.key.pair() {
            keys.insert("entity_id".into(), text(entity));
            keys.insert("resource".into(), text(resource));
        }
        let wcu = [("cp", WCU_FULL), ("ra", WCU_FULL), ("rp", 1_000)];
        keys.extend(wcu.map(|(suffix, value)| (format!("b_{WCU}_{suffix}"), number(value))));
        keys
    }

    /// Returns the item once it was written: with the credit that the core has.
    pub(crate) fn written(mut self) -> ItemSnapshot {
        self.credits = credits(&self.stored.bucket.parts(&self.stored.limits));
        self.shard_count = self.shards;
        self
    }

    /// Returns whether it has expired at `now`, and counts as full.
    pub(crate) fn has_expired(&self, now: Tick) -> bool {
        self.ttl.is_some_and(|ttl| ttl <= now.as_micros() / 1_000_000)
    }

    /// Returns the item at `now`, if something was applied to it at `last`; `None` if it has expired.
    pub(crate) fn live(self, last: Tick, now: Tick) -> Option<ItemSnapshot> {
        (!self.has_expired(now.max(last))).then(|| self.advanced(last))
    }

    /// Returns the item at `last`, if that is later.
    pub(crate) fn advanced(mut self, last: Tick) -> ItemSnapshot {
        self.stored.bucket.advance(&self.stored.limits, last);
        self
    }

    /// Returns an expired item as it counts: full, but with usage that may not be written down yet.
    pub(crate) fn revived(mut self) -> ItemSnapshot {
        self.stored.bucket = Bucket::fresh(&self.stored.limits, Tick::ZERO);
        self.generation += 1;
        self
    }

    /// Returns when it expires, if its limits are defaults: some time after it is full, and not while its state differs from a
    /// new one. A bucket in several items does not expire: they must be forgotten together or not at all.
    pub(crate) fn lasts_until(&self, are_defaults: bool, now: Tick) -> Option<u64> {
        if !are_defaults || self.shards > 1 {
            return None;
        }
        let fill = |limit: &tollgate_core::Limit| {
            let period = limit.period().map_or(0, Span::as_micros);
            let micros =
                u128::from(period) * u128::from(limit.capacity()) / u128::from(limit.amount().max(1));
            if limit.is_unbounded() { 0 } else { u64::try_from(micros).unwrap_or(u64::MAX) }
        };
        let fill = self.stored.limits.iter().map(fill).max().unwrap_or(0);
        let mut lasts = fill.saturating_mul(LASTS_FILLS);
        for status in self.stored.bucket.peek(&self.stored.limits, now) {
            match status.full() {
                Ready::Now => {}
                Ready::At(full) => lasts = lasts.max(full.since(now).as_micros().saturating_add(fill)),
                _ => return None,
            }
        }
        let until = now.as_micros().saturating_add(lasts);
        (until < u64::MAX).then_some(until / 1_000_000)
    }
}

/// Returns the key of an item.
pub(crate) fn key(address: &Address, shard: u32) -> Attributes {
    [("PK", address.partition(shard)), ("SK", STATE.to_owned())]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), text(value)))
        .collect()
}

/// Returns the thousandths of each meter; 0 for a part that is no meter.
fn credits(parts: &[Part]) -> Vec<i128> {
    let credit = |part: &Part| if let Part::Credit { millis, .. } = part { *millis } else { 0 };
    parts.iter().map(credit).collect()
}

fn shard_of(attributes: &Attributes) -> Option<u32> {
    let partition = super::values::read_text(attributes.get("PK"))?;
    partition.rsplit_once('#')?.1.parse().ok()
}

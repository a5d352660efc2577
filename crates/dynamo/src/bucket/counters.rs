//! What was used of a bucket, counted beside it.
//!
//! The counters of an item only grow; what was written down as usage is remembered beside them, so that each writer of
//! usage adds the difference, once. They count for one hour. With the first write of another hour the difference is put
//! aside under the old one, until a process writes it down.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_core::{Limits, MILLIS, Tick};
use tollgate_store::usage::{Caller, Sums, marked_hour};

use super::values::{number, read_number};
use crate::service::Attributes;

/// What is counted of one bucket, or of one part of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UsageCounters {
    /// The hour that is being counted, with a mark if it is for calls of children; `None` if the item was never counted by us.
    pub(crate) hour: Option<u32>,
    pub(crate) events: WrittenCount,
    /// One for each limit, in thousandths.
    pub(crate) used: Vec<WrittenCount>,
    /// What was used in other hours, or of limits that are no longer there, and is not yet written down.
    pub(crate) aside: BTreeMap<u32, UnwrittenHour>,
}

/// A number that grows, and up to where it was written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenCount {
    pub(crate) total: i128,
    pub(crate) written: i128,
}

impl WrittenCount {
    fn open(self) -> i128 {
        self.total - self.written
    }
}

/// What was used in one hour, in whole amounts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UnwrittenHour {
    pub(crate) events: i64,
    pub(crate) amounts: BTreeMap<String, i64>,
}

impl UsageCounters {
    pub(crate) fn of(limits: &Limits) -> UsageCounters {
        UsageCounters { used: vec![WrittenCount::default(); limits.len()], ..UsageCounters::default() }
    }

    /// Begins to count the hour of `at` for such callers, and puts aside what was counted before.
    pub(crate) fn open(&mut self, limits: &Limits, at: Tick, caller: Caller) {
        self.open_hour(limits, marked_hour(at, caller));
    }

    /// Begins to count an hour with its mark.
    pub(crate) fn open_hour(&mut self, limits: &Limits, hour: u32) {
        if self.hour != Some(hour) {
            self.put_aside(limits);
            self.hour = Some(hour);
        }
    }

    /// Puts aside what was counted. What other programs counted is theirs to write down.
    fn put_aside(&mut self, limits: &Limits) {
        if let Some(hour) = self.hour {
            let events = self.events.open() as i64;
            let used =
                limits.iter().zip(&self.used).map(|(limit, count)| (limit.name().as_str(), tokens(*count)));
            let used: Vec<(&str, i64)> = used.filter(|(_, amount)| *amount != 0).collect();
            if events != 0 || !used.is_empty() {
                let aside = self.aside.entry(hour).or_default();
                aside.events += events;
                used.into_iter().for_each(|(name, amount)| aside.add(name, amount));
            }
        }
        self.events.written = self.events.total;
        self.used.iter_mut().for_each(|count| count.written = count.total);
    }

    /// Goes on under other limits: what was counted of those that stay stays counted.
    pub(crate) fn adopt(&mut self, old: &Limits, new: &Limits) {
        self.put_aside(old);
        let count = |name: &str| old.index(name).and_then(|index| self.used.get(index)).copied();
        self.used = new.iter().map(|limit| count(limit.name()).unwrap_or_default()).collect();
    }

    /// Counts what was used of a limit, by its name, in the hour that is being counted.
    pub(crate) fn add(&mut self, limits: &Limits, name: &str, amount: i64) {
        match limits.index(name).and_then(|index| self.used.get_mut(index)) {
            Some(count) => count.total += i128::from(amount) * MILLIS,
            None => {
                let hour = self.hour.unwrap_or_default();
                self.aside.entry(hour).or_default().add(name, amount);
            }
        }
    }

    /// Returns what is not yet written down, by hour.
    pub(crate) fn unwritten(&self, limits: &Limits) -> BTreeMap<u32, UnwrittenHour> {
        let mut all = self.clone();
        all.put_aside(limits);
        all.aside
    }

    /// Returns whether these count the same hour as the others, with the same written down and put aside.
    pub(crate) fn is_written_like(&self, other: &UsageCounters) -> bool {
        let written = |counters: &UsageCounters| -> Vec<i128> {
            let counts = std::iter::once(&counters.events).chain(&counters.used);
            counts.map(|count| count.written).collect()
        };
        self.hour == other.hour && self.aside == other.aside && written(self) == written(other)
    }

    /// Returns whether something was counted in an hour, by its beginning: written down or not, by the entity or its children.
    pub(crate) fn counts_for(&self, hour: Tick) -> bool {
        let marked = [Caller::Own, Caller::Child].map(|caller| marked_hour(hour, caller));
        let hours = self.hour.iter().chain(self.aside.keys());
        hours.into_iter().any(|hour| marked.contains(hour))
    }

    pub(crate) fn write(&self, limits: &Limits, attributes: &mut Attributes) {
        if let Some(hour) = self.hour {
            attributes.insert("uh".into(), number(hour));
            attributes.insert("en".into(), number(self.events.total));
            attributes.insert("ew".into(), number(self.events.written));
        }
        for (limit, count) in limits.iter().zip(&self.used) {
            if !limit.is_resource() {
                attributes.insert(format!("b_{}_tc", limit.name()), number(count.total));
                if self.hour.is_some() {
                    attributes.insert(format!("b_{}_tw", limit.name()), number(count.written));
                }
            }
        }
        if !self.aside.is_empty() {
            let hours = self.aside.iter().map(|(hour, aside)| (hour.to_string(), aside.value()));
            attributes.insert("pu".into(), AttributeValue::M(hours.collect()));
        }
    }

    pub(crate) fn read(limits: &Limits, attributes: &Attributes) -> UsageCounters {
        let get = |name: &str| read_number(attributes.get(name));
        let hour = get("uh").and_then(|hour| u32::try_from(hour).ok());
        let count = |total: Option<i128>, written: Option<i128>| {
            let total = total.unwrap_or(0);
            WrittenCount { total, written: written.unwrap_or(total) }
        };
        let used = |name: &str| count(get(&format!("b_{name}_tc")), get(&format!("b_{name}_tw")));
        let aside = match attributes.get("pu") {
            Some(AttributeValue::M(hours)) => hours
                .iter()
                .filter_map(|(hour, aside)| Some((hour.parse().ok()?, UnwrittenHour::of(aside)?)))
                .collect(),
            _ => BTreeMap::new(),
        };
        UsageCounters {
            hour,
            events: count(get("en"), get("ew")),
            used: limits.iter().map(|limit| used(limit.name())).collect(),
            aside,
        }
    }
}

/// Returns the whole amounts that are not yet written down: only whole amounts are counted.
fn tokens(count: WrittenCount) -> i64 {
    i64::try_from(count.open() / MILLIS).unwrap_or(i64::MAX)
}

impl UnwrittenHour {
    fn add(&mut self, name: &str, amount: i64) {
        let sum = self.amounts.entry(name.into()).or_default();
        *sum = sum.saturating_add(amount);
    }

    fn value(&self) -> AttributeValue {
        let amounts = self.amounts.iter().map(|(name, amount)| (name.clone(), number(amount)));
        let parts = [("n", number(self.events)), ("l", AttributeValue::M(amounts.collect()))];
        AttributeValue::M(parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn of(value: &AttributeValue) -> Option<UnwrittenHour> {
        let AttributeValue::M(parts) = value else { return None };
        let AttributeValue::M(amounts) = parts.get("l")? else { return None };
        let amount =
            |value: &AttributeValue| read_number(Some(value)).and_then(|amount| i64::try_from(amount).ok());
        let amounts = amounts.iter().filter_map(|(name, value)| Some((name.clone(), amount(value)?)));
        Some(UnwrittenHour { events: amount(parts.get("n")?)?, amounts: amounts.collect() })
    }

    /// Returns the sums of an hour.
    pub(crate) fn sums(&self, hour: u32) -> Option<Sums> {
        let names = self.amounts.keys().map(|name| tollgate_core::Limit::per_minute(name.as_str(), 1));
        let limits = Limits::new(names).ok()?;
        let amounts: Vec<i64> = limits.iter().map(|limit| self.amounts[limit.name().as_str()]).collect();
        Sums::restored(limits, hour, u32::try_from(self.events.max(0)).unwrap_or(u32::MAX), &amounts)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::Limit;

    use super::*;

    fn limits(names: &[&str]) -> Limits {
        Limits::new(names.iter().map(|name| Limit::per_minute(*name, 10))).expect("they are valid")
    }

    fn at(hour: u64) -> Tick {
        Tick::from_micros(hour * 3_600_000_000 + 5)
    }

    #[test]
    fn each_hour_is_put_aside_under_its_own_name() {
        let limits = limits(&["rpm", "tpm"]);
        let mut counters = UsageCounters::of(&limits);
        for hour in [7, 7, 9] {
            counters.open(&limits, at(hour), Caller::Own);
            counters.events.total += 1;
            counters.add(&limits, "tpm", 50);
        }
        let unwritten = counters.unwritten(&limits);
        let said: Vec<_> =
            unwritten.iter().map(|(hour, aside)| (*hour, aside.events, aside.amounts["tpm"])).collect();
        assert_eq!(said, [(7, 2, 100), (9, 1, 50)]);
        assert_eq!(counters.used[1].total, 150_000);
    }

    #[test]
    fn what_children_used_is_put_aside_under_a_mark_of_its_own() {
        let limits = limits(&["tpm"]);
        let mut counters = UsageCounters::of(&limits);
        for (caller, amount) in [(Caller::Own, 5), (Caller::Child, 70), (Caller::Own, 1), (Caller::Child, 2)]
        {
            counters.open(&limits, at(7), caller);
            counters.events.total += 1;
            counters.add(&limits, "tpm", amount);
        }
        let sums: Vec<Sums> =
            counters.unwritten(&limits).iter().filter_map(|(hour, aside)| aside.sums(*hour)).collect();
        let said: Vec<_> =
            sums.iter().map(|sums| (sums.caller(), sums.events(), sums.amounts()[0])).collect();
        assert_eq!(said, [(Caller::Own, 2, 6), (Caller::Child, 2, 72)]);
        assert!(sums.iter().all(|sums| sums.is_of_hour(at(7))));
    }

    #[test]
    fn limits_that_go_leave_what_was_used_of_them() {
        let (old, new) = (limits(&["rpm", "tpm"]), limits(&["tpm"]));
        let mut counters = UsageCounters::of(&old);
        counters.open(&old, at(3), Caller::Own);
        counters.add(&old, "rpm", 1);
        counters.add(&old, "tpm", 20);
        counters.adopt(&old, &new);
        counters.add(&new, "tpm", 4);
        counters.add(&new, "rpm", 2);
        let amounts = &counters.unwritten(&new)[&3].amounts;
        assert_eq!((amounts["rpm"], amounts["tpm"]), (3, 24));
    }

    #[test]
    fn counters_are_read_as_they_were_written() {
        let limits = limits(&["rpm", "tpm"]);
        let mut counters = UsageCounters::of(&limits);
        counters.open(&limits, at(3), Caller::Own);
        counters.add(&limits, "rpm", 1);
        counters.open(&limits, at(4), Caller::Own);
        counters.events.total = 3;
        let mut attributes = Attributes::new();
        counters.write(&limits, &mut attributes);
        assert_eq!(UsageCounters::read(&limits, &attributes), counters);
    }

    #[test]
    fn what_the_original_counted_is_not_counted_again() {
        let limits = limits(&["rpm"]);
        let attributes = Attributes::from([("b_rpm_tc".to_owned(), number(5_000))]);
        let mut counters = UsageCounters::read(&limits, &attributes);
        assert!(counters.unwritten(&limits).is_empty());
        counters.open(&limits, at(1), Caller::Own);
        counters.add(&limits, "rpm", 2);
        assert_eq!(counters.unwritten(&limits)[&1].amounts["rpm"], 2);
    }
}

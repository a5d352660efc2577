//! Writing a draft: one update of one item.
//!
//! There are two kinds. An exact update sets what the item will be, on condition that it is as it was read. A relative
//! update adds what each meter gains and loses, on condition that this is right for the credit that the item has then:
//! enough for what is taken, and not so much that it would have been full in between. So clients that take from one
//! bucket at once do not conflict, and nothing is admitted that the core would not admit.
//!
//! A relative update leaves the time of the item as it is, and each reader adds the credit for the time since. Only if a
//! meter has become full meanwhile the time is moved, because what it would have gained beyond is lost.

use tollgate_core::{Limit, MILLIS, Part, Rate};

use super::address::Address;
use super::draft::{ItemDraft, LimitDelta};
use super::expression::Expression;
use super::limits::WCU;
use super::snapshot::ItemSnapshot;
use super::values::number;

/// How many other writers an item remembers before those that have not written for long are dropped.
const WRITERS_MAX: usize = 4;

/// After how long a writer may be dropped: longer than any call is retried. In microseconds, as their numbers are.
const WRITER_KEPT: u64 = 300_000_000;

/// The stamp of a write: the writer, and the number of the write.
#[derive(Clone, Debug)]
pub(crate) struct WriteStamp<'a> {
    /// The attribute of this writer.
    pub(crate) writer: &'a str,
    /// Larger with every write, and never below the time.
    pub(crate) seq: u64,
}

impl WriteStamp<'_> {
    /// Returns whether this is the last write of its writer to the item.
    pub(crate) fn is_of(&self, snapshot: &ItemSnapshot) -> bool {
        snapshot.writers.get(self.writer) == Some(&self.seq)
    }
}

/// Returns the update that makes the item what the draft has it to be.
pub(crate) fn expression(
    draft: &ItemDraft,
    address: &Address,
    stamp: &WriteStamp<'_>,
    may_be_relative: bool,
) -> Expression {
    let relative =
        || draft.before.as_ref().filter(|_| may_be_relative).and_then(|before| relative(draft, before));
    let mut expression = match (&draft.before, &draft.after) {
        (None, Some(after)) => create(after, address),
        _ => relative().unwrap_or_else(|| exact(draft)),
    };
    add_stamp(&mut expression, draft.before.as_ref(), stamp);
    expression
}

/// Adds the stamp of the write, on condition that the item has no later one of the same writer.
pub(crate) fn add_stamp(expression: &mut Expression, before: Option<&ItemSnapshot>, stamp: &WriteStamp<'_>) {
    expression.set(stamp.writer, number(stamp.seq));
    expression.require_below(stamp.writer, number(stamp.seq));
    let Some(before) = before.filter(|before| before.writers.len() > WRITERS_MAX) else { return };
    let is_idle = |(name, seq): &(&String, &u64)| **seq + WRITER_KEPT < stamp.seq && *name != stamp.writer;
    before.writers.iter().filter(is_idle).for_each(|(name, _)| expression.remove(name));
}

/// Returns the update that creates an item.
pub(super) fn create(after: &ItemSnapshot, address: &Address) -> Expression {
    let mut expression = Expression::default();
    expression.require_absent("PK");
    let mut all = after.attributes();
    all.extend(ItemSnapshot::keys(address, after.shard));
    all.remove("PK");
    all.remove("SK");
    all.insert("rv".into(), number(after.revision + 1));
    all.insert(format!("b_{WCU}_tc"), number(MILLIS));
    all.into_iter().for_each(|(name, value)| expression.set(&name, value));
    expression
}

/// Requires that the item is as it was read.
///
/// Our writers increment `rv`. Clients of the original do not, and their usual write does not move `rf` either: it adds to the
/// credit and to the count of each limit. So these are compared as well.
pub(crate) fn require_seen(expression: &mut Expression, before: &ItemSnapshot) {
    let stamp = before.stored.bucket.stamp().as_micros();
    let revision = (before.revision > 0).then(|| number(before.revision));
    expression.require_is("rv", revision);
    expression.require("rf", "=", number(stamp / 1_000));
    let counts = before.credits.iter().zip(&before.counters.used);
    for (limit, (credit, used)) in before.stored.limits.iter().zip(counts) {
        if limit.meter().is_some() {
            expression.require_floor(&format!("b_{}_tk", limit.name()), *credit);
        }
        if !limit.is_resource() {
            expression.require_count(&format!("b_{}_tc", limit.name()), used.total);
        }
    }
}

fn exact(draft: &ItemDraft) -> Expression {
    let mut expression = Expression::default();
    let (Some(before), Some(after)) = (&draft.before, &draft.after) else { return expression };
    require_seen(&mut expression, before);
    let mut after = ItemSnapshot { revision: before.revision + 1, ..after.clone() };
    after.wcu = after.wcu.saturating_sub(MILLIS as i64);
    let (mut was, is) = (before.attributes(), after.attributes());
    was.insert("shard_count".into(), number(before.shard_count));
    for (limit, credit) in
        before.stored.limits.iter().zip(&before.credits).filter(|(it, _)| it.meter().is_some())
    {
        was.insert(format!("b_{}_tk", limit.name()), number(credit));
    }
    was.keys().filter(|name| !is.contains_key(*name)).for_each(|name| expression.remove(name));
    for (name, value) in is {
        // An item of the original may lack attributes that have the default value: these are written as well.
        if was.get(&name) != Some(&value) || before.revision == 0 {
            expression.set(&name, value);
        }
    }
    expression.add(&format!("b_{WCU}_tc"), number(MILLIS));
    expression
}

/// A meter as it was read, and its change.
struct MeterDelta<'a> {
    limit: &'a Limit,
    rate: Rate,
    millis: i128,
    rest: i128,
    /// What it has gained since, in units of a thousandth.
    gained: i128,
    delta: LimitDelta,
    /// Whether it may not go into debt, because the other items would not know.
    is_part: bool,
}

impl MeterDelta<'_> {
    fn unit(&self) -> i128 {
        self.rate.unit.into()
    }

    /// Returns the full credit, in units of a thousandth.
    fn full(&self) -> i128 {
        self.rate.full.saturating_mul(MILLIS)
    }

    fn is_full(&self) -> bool {
        self.millis.saturating_mul(self.unit()).saturating_add(self.rest).saturating_add(self.gained)
            > self.full()
    }

    fn price(&self, tokens: u64) -> i128 {
        i128::from(tokens) * MILLIS * self.unit()
    }

    /// Returns the least and the most thousandths for which the relative update is right.
    fn bounds(&self) -> (Option<i128>, i128) {
        let owed = self.rest + self.gained;
        let lost = self.delta.taken.saturating_add(self.delta.charged);
        let is_bound =
            (self.delta.taken > 0 || self.is_part && self.delta.charged > 0) && !self.limit.is_shadow();
        let least = is_bound.then(|| div_ceil(self.price(lost) - owed, self.unit()));
        let most = (self.full() - owed - self.price(self.delta.given_back)).div_euclid(self.unit());
        (least, most)
    }

    /// Returns the thousandths from which on it is full by now.
    fn full_from(&self) -> i128 {
        div_ceil(self.full() - self.rest - self.gained, self.unit())
    }

    fn change(&self) -> i128 {
        let sum = |tokens: u64| i128::from(tokens) * MILLIS;
        sum(self.delta.given_back) - sum(self.delta.taken) - sum(self.delta.charged)
    }
}

fn div_ceil(number: i128, by: i128) -> i128 {
    -(-number).div_euclid(by)
}

/// Returns the relative update; `None` if only an exact one is right, or if its condition does not hold for what was read.
fn relative(draft: &ItemDraft, before: &ItemSnapshot) -> Option<Expression> {
    let (after, moves) = (draft.after.as_ref()?, draft.moves.as_ref()?);
    if before.revision == 0
        || before.shards != before.shard_count
        || !before.counters.is_written_like(&after.counters)
    {
        return None;
    }
    let (stored, now) = (&before.stored, draft.time.max(before.stored.bucket.stamp()));
    let elapsed = i128::from(now.since(stored.bucket.stamp()).as_micros());
    let parts = stored.bucket.parts(&stored.limits);
    let mut gauges = Vec::new();
    let (mut has_others, is_part) = (false, before.shards > 1);
    for ((limit, part), delta) in stored.limits.iter().zip(parts).zip(moves) {
        match (limit.meter(), part) {
            (Some(rate), Part::Credit { millis, rest }) => {
                let gained = elapsed.checked_mul(rate.gain.into())?.checked_mul(MILLIS)?;
                gauges.push(MeterDelta {
                    limit,
                    rate,
                    millis,
                    rest: rest.into(),
                    gained,
                    delta: *delta,
                    is_part,
                });
            }
            _ => has_others |= !limit.is_unbounded(),
        }
    }
    let moves_time = gauges.iter().any(|gauge| gauge.delta.is_any() && gauge.is_full());
    if moves_time && has_others {
        return None;
    }
    let mut expression = Expression::default();
    for gauge in &gauges {
        if moves_time || gauge.delta.is_any() {
            gauge.write(&mut expression, moves_time)?;
        }
    }
    let stamp = |micros: u64| {
        (number(micros / 1_000), (!micros.is_multiple_of(1_000)).then(|| number(micros % 1_000)))
    };
    let (rf, ru) = stamp(stored.bucket.stamp().as_micros());
    expression.require("rf", "=", rf);
    expression.require_is("ru", ru.clone());
    expression.require_is("lg", (before.generation > 0).then(|| number(before.generation)));
    expression.require("shard_count", "=", number(before.shards));
    if moves_time {
        let (rf, moved) = stamp(now.as_micros());
        expression.set("rf", rf);
        match (moved, ru) {
            (Some(moved), _) => expression.set("ru", moved),
            (None, Some(_)) => expression.remove("ru"),
            (None, None) => {}
        }
    }
    count(&mut expression, before, after);
    Some(expression)
}

impl MeterDelta<'_> {
    /// Adds the change of the meter; returns `None` if its condition does not hold for what was read.
    fn write(&self, expression: &mut Expression, moves_time: bool) -> Option<()> {
        let name = |suffix: &str| format!("b_{}_{suffix}", self.limit.name());
        let credit = name("tk");
        if moves_time && self.is_full() {
            // What is given back to a full meter is lost, but when it became full in between is unknown.
            if self.delta.given_back > 0 {
                return None;
            }
            expression.require(&credit, ">=", number(self.full_from()));
            expression.set(&credit, number(self.full().div_euclid(self.unit()) + self.change()));
            if self.rest != 0 {
                expression.remove(&name("rm"));
            }
            return Some(());
        }
        let (least, most) = self.bounds();
        if self.millis > most || least.is_some_and(|least| self.millis < least) {
            return None;
        }
        expression.require(&credit, "<=", number(most));
        if let Some(least) = least {
            expression.require(&credit, ">=", number(least));
        }
        if !moves_time {
            expression.add(&credit, number(self.change()));
            return Some(());
        }
        let owed = self.rest + self.gained;
        expression.add(&credit, number(owed.div_euclid(self.unit()) + self.change()));
        match owed.rem_euclid(self.unit()) {
            0 if self.rest == 0 => {}
            0 => expression.remove(&name("rm")),
            rest => expression.set(&name("rm"), number(rest)),
        }
        Some(())
    }
}

fn count(expression: &mut Expression, before: &ItemSnapshot, after: &ItemSnapshot) {
    expression.add("rv", number(1));
    expression.add(&format!("b_{WCU}_tc"), number(MILLIS));
    expression.set(&format!("b_{WCU}_tk"), number(after.wcu.saturating_sub(MILLIS as i64)));
    if before.stored.version != after.stored.version {
        expression.set("cv", number(after.stored.version));
    }
    match (before.ttl, after.ttl) {
        (was, Some(is)) if was != Some(is) => expression.set("ttl", number(is)),
        (Some(_), None) => expression.remove("ttl"),
        _ => {}
    }
    let (was, is) = (&before.counters, &after.counters);
    let events = is.events.total - was.events.total;
    let mut is_any = events != 0;
    if events != 0 {
        expression.add("en", number(events));
    }
    for ((limit, was), is) in after.stored.limits.iter().zip(&was.used).zip(&is.used) {
        let used = is.total - was.total;
        if used != 0 {
            expression.add(&format!("b_{}_tc", limit.name()), number(used));
            is_any = true;
        }
    }
    // The write that begins another hour puts aside what was counted by then; nothing may be counted to the old one
    // after that.
    if let Some(hour) = is.hour.filter(|_| is_any) {
        expression.require("uh", "=", number(hour));
    }
}

/// Returns the update that raises the number of items of a bucket.
pub(super) fn share_count(before: u32, after: u32) -> Expression {
    let mut expression = Expression::default();
    expression.require("shard_count", "=", number(before));
    expression.set("shard_count", number(after));
    expression.add("lg", number(1));
    expression.add("rv", number(1));
    expression.remove("ttl");
    expression
}

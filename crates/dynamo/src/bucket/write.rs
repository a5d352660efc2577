//! How a draft is written: one update of one item.
//!
//! Two kinds. An exact one says what the item will be, on condition that it is what was seen. A relative one says what
//! each meter gains and loses, on condition that this is the same whatever the credit is just now: enough for what is
//! taken, and not so much that it would have been full in between. So those who take from one bucket at once do not
//! get in each other's way, and nothing is admitted that the core would not admit.
//!
//! Time: a relative write leaves the item as of when it was, and each reader counts the credit that is owed for the
//! time since. Only where a meter has become full meanwhile must the time be moved, because what it would have gained
//! beyond is lost.

use tollgate_core::{Limit, MILLIS, Part, Rate};

use super::address::Address;
use super::draft::{ItemDraft, LimitDelta};
use super::expression::Expression;
use super::limits::WCU;
use super::snapshot::ItemSnapshot;
use super::values::number;

/// How many other writers an item remembers before those are dropped that have not written for long.
const WRITERS_MAX: usize = 4;

/// After how long a writer may be dropped: longer than any call is tried. In microseconds, as their numbers are.
const WRITER_KEPT: u64 = 300_000_000;

/// Who writes, and how often it has.
#[derive(Clone, Debug)]
pub(crate) struct WriteStamp<'a> {
    /// The attribute of this writer.
    pub(crate) writer: &'a str,
    /// Larger with every write, and never below the time.
    pub(crate) seq: u64,
}

impl WriteStamp<'_> {
    /// Whether this is the last that its writer wrote to the item.
    pub(crate) fn is_of(&self, image: &ItemSnapshot) -> bool {
        image.writers.get(self.writer) == Some(&self.seq)
    }
}

/// The update that makes of the item what the draft says.
pub(crate) fn expression(
    draft: &ItemDraft,
    address: &Address,
    stroke: &WriteStamp<'_>,
    may_be_relative: bool,
) -> Expression {
    let relative =
        || draft.before.as_ref().filter(|_| may_be_relative).and_then(|before| relative(draft, before));
    let mut expression = match (&draft.before, &draft.after) {
        (None, Some(after)) => create(after, address),
        _ => relative().unwrap_or_else(|| exact(draft)),
    };
    stamp(&mut expression, draft.before.as_ref(), stroke);
    expression
}

/// Leaves the mark of the writer, on condition that no later one of its own is there.
pub(crate) fn stamp(expression: &mut Expression, before: Option<&ItemSnapshot>, stroke: &WriteStamp<'_>) {
    expression.set(stroke.writer, number(stroke.seq));
    expression.require_below(stroke.writer, number(stroke.seq));
    let Some(before) = before.filter(|before| before.writers.len() > WRITERS_MAX) else { return };
    let is_idle = |(name, seq): &(&String, &u64)| **seq + WRITER_KEPT < stroke.seq && *name != stroke.writer;
    before.writers.iter().filter(is_idle).for_each(|(name, _)| expression.remove(name));
}

/// The update that makes an item.
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

/// The item is what was seen.
///
/// Writers of ours count `rv` up. Clients of the original do not, and their usual write moves `rf` neither: it adds to the
/// credit and to the count of each limit. So these are compared as well.
pub(crate) fn require_seen(expression: &mut Expression, before: &ItemSnapshot) {
    let stamp = before.kept.bucket.stamp().as_micros();
    let revision = (before.revision > 0).then(|| number(before.revision));
    expression.require_is("rv", revision);
    expression.require("rf", "=", number(stamp / 1_000));
    let counts = before.credits.iter().zip(&before.counters.used);
    for (limit, (credit, used)) in before.kept.limits.iter().zip(counts) {
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
    was.insert("shard_count".into(), number(before.said_shards));
    for (limit, credit) in
        before.kept.limits.iter().zip(&before.credits).filter(|(it, _)| it.meter().is_some())
    {
        was.insert(format!("b_{}_tk", limit.name()), number(credit));
    }
    was.keys().filter(|name| !is.contains_key(*name)).for_each(|name| expression.remove(name));
    for (name, value) in is {
        // Written also where it is as before, if that is because it was not there before: then it has to be made.
        if was.get(&name) != Some(&value) || before.revision == 0 {
            expression.set(&name, value);
        }
    }
    expression.add(&format!("b_{WCU}_tc"), number(MILLIS));
    expression
}

/// A meter as it was seen, and what is known of it now.
struct MeterDelta<'a> {
    limit: &'a Limit,
    rate: Rate,
    millis: i128,
    rest: i128,
    /// What it has gained since, in units of a thousandth.
    gained: i128,
    says: LimitDelta,
    /// Whether it may not owe anything: others would not know.
    is_part: bool,
}

impl MeterDelta<'_> {
    fn unit(&self) -> i128 {
        self.rate.unit.into()
    }

    /// What is full, in units of a thousandth.
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

    /// The least and the most thousandths that it may have for what is said to be right.
    fn bounds(&self) -> (Option<i128>, i128) {
        let owed = self.rest + self.gained;
        let lost = self.says.taken.saturating_add(self.says.charged);
        let is_bound =
            (self.says.taken > 0 || self.is_part && self.says.charged > 0) && !self.limit.is_shadow();
        let least = is_bound.then(|| div_ceil(self.price(lost) - owed, self.unit()));
        let most = (self.full() - owed - self.price(self.says.given_back)).div_euclid(self.unit());
        (least, most)
    }

    /// The thousandths from which on it is full by now.
    fn full_from(&self) -> i128 {
        div_ceil(self.full() - self.rest - self.gained, self.unit())
    }

    fn change(&self) -> i128 {
        let sum = |tokens: u64| i128::from(tokens) * MILLIS;
        sum(self.says.given_back) - sum(self.says.taken) - sum(self.says.charged)
    }
}

fn div_ceil(number: i128, by: i128) -> i128 {
    -(-number).div_euclid(by)
}

/// `None` if only an exact write can say it, or if it would not hold of what was seen.
fn relative(draft: &ItemDraft, before: &ItemSnapshot) -> Option<Expression> {
    let (after, moves) = (draft.after.as_ref()?, draft.moves.as_ref()?);
    if before.revision == 0
        || before.shards != before.said_shards
        || !before.counters.is_written_like(&after.counters)
    {
        return None;
    }
    let (kept, now) = (&before.kept, draft.time.max(before.kept.bucket.stamp()));
    let elapsed = i128::from(now.since(kept.bucket.stamp()).as_micros());
    let parts = kept.bucket.parts(&kept.limits);
    let mut gauges = Vec::new();
    let (mut has_others, is_part) = (false, before.shards > 1);
    for ((limit, part), says) in kept.limits.iter().zip(parts).zip(moves) {
        match (limit.meter(), part) {
            (Some(rate), Part::Credit { millis, rest }) => {
                let gained = elapsed.checked_mul(rate.gain.into())?.checked_mul(MILLIS)?;
                gauges.push(MeterDelta {
                    limit,
                    rate,
                    millis,
                    rest: rest.into(),
                    gained,
                    says: *says,
                    is_part,
                });
            }
            _ => has_others |= !limit.is_unbounded(),
        }
    }
    let moves_time = gauges.iter().any(|gauge| gauge.says.is_any() && gauge.is_full());
    if moves_time && has_others {
        return None;
    }
    let mut expression = Expression::default();
    for gauge in &gauges {
        if moves_time || gauge.says.is_any() {
            gauge.write(&mut expression, moves_time)?;
        }
    }
    let stamp = |micros: u64| {
        (number(micros / 1_000), (!micros.is_multiple_of(1_000)).then(|| number(micros % 1_000)))
    };
    let (rf, ru) = stamp(kept.bucket.stamp().as_micros());
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
    /// `None` if it does not hold of what was seen.
    fn write(&self, expression: &mut Expression, moves_time: bool) -> Option<()> {
        let name = |suffix: &str| format!("b_{}_{suffix}", self.limit.name());
        let credit = name("tk");
        if moves_time && self.is_full() {
            // What is given back to a full one is lost, but when in between it was full is unknown.
            if self.says.given_back > 0 {
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
    if before.kept.version != after.kept.version {
        expression.set("cv", number(after.kept.version));
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
    for ((limit, was), is) in after.kept.limits.iter().zip(&was.used).zip(&is.used) {
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

/// The update that says that a bucket is in more items than before.
pub(super) fn share_count(before: u32, after: u32) -> Expression {
    let mut expression = Expression::default();
    expression.require("shard_count", "=", number(before));
    expression.set("shard_count", number(after));
    expression.add("lg", number(1));
    expression.add("rv", number(1));
    expression.remove("ttl");
    expression
}

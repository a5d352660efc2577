//! Arguments of scripts: a step as numbers, if all of them are small enough.

use tollgate_core::{Limit, MachineView, Span, Tick};
use tollgate_store::prefetch::UsageDelta;
use tollgate_store::usage::{Caller, marked_hour};
use tollgate_store::{Op, Step};

use crate::codec::{NARROW_MAX, head_of, text_of};

const TAKE: f64 = 1.0;
const SETTLE: f64 = 2.0;

const UNBOUNDED: f64 = 0.0;
const METER: f64 = 1.0;
const FIXED: f64 = 2.0;
const GAUGE: f64 = 3.0;
const SESSION: f64 = 4.0;
const CALENDAR: f64 = 5.0;
const SLIDING: f64 = 6.0;
const COOLDOWN: f64 = 7.0;

/// Added to the metering of a step if a child made the call.
const OF_CHILD: f64 = 2.0;

const SHADOW: f64 = 1.0;
const RESOURCE: f64 = 2.0;

/// Usage is counted by the hour.
const HOUR: u64 = 3_600_000_000;

/// By how much the server's time may be behind the estimate of this host.
const EARLY: Span = Span::from_secs(10);

/// Below which nothing is ever left.
const NEVER: f64 = -1e300;

/// How many limits `meters.lua` handles at most.
const METERS_MAX: usize = 8;

/// How the usage of a step is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepMetering<'a> {
    /// Not at all.
    Off,
    /// As what it takes, and what its settlement changes.
    On,
    /// As this, because what is taken is not what is used.
    Override(&'a UsageDelta),
}

impl<'a> StepMetering<'a> {
    /// Returns the metering of a step of a call that is metered or not. `used` overrides what was used.
    pub(crate) fn of(is_metered: bool, used: Option<&'a UsageDelta>) -> StepMetering<'a> {
        match (is_metered, used) {
            (false, _) => StepMetering::Off,
            (true, None) => StepMetering::On,
            (true, Some(counted)) => StepMetering::Override(counted),
        }
    }
}

/// Returns the arguments of `meters.lua` for a step, if it takes from meters only, none of which is a shadow or has a soft
/// level. `now` is an estimate.
pub(crate) fn of_meters(step: &Step<'_>, metered: bool, now: Tick) -> Option<Vec<u8>> {
    let (limits, costs) = (step.place.limits, step.takes()?);
    if limits.len() > METERS_MAX || limits.may_warn() {
        return None;
    }
    let hour = metered.then(|| marked_hour(now, Caller::of(costs)));
    let mut out = head_of(&text_of(limits), small(limits.version())?, hour);
    let from = if metered { (now.as_micros() / HOUR * HOUR) as f64 } else { -1.0 };
    out.extend(from.to_le_bytes());
    for (limit, cost) in limits.iter().zip(costs.amounts()) {
        let rate = limit.meter()?;
        let price = small(cost.checked_mul(rate.unit)?)?;
        let full = small(u64::try_from(rate.full).ok()?)?;
        let numbers = [small(rate.gain)?, full, price, small(*cost)?];
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
    }
    Some(out)
}

/// Returns the arguments of `apply.lua` for a step: six numbers and the holder, then eight numbers for each limit, then
/// what was used if that is given. `None` if no script can apply it. `now` is an estimate.
pub(crate) fn of_step(step: &Step<'_>, metering: StepMetering<'_>, now: Tick) -> Option<Vec<u8>> {
    let limits = step.place.limits;
    let (op, given, holder) = match &step.op {
        Op::Take { term, .. } => {
            (TAKE, term.map_or(0, |term| term.ttl.as_micros()), term.map(|term| term.holder))
        }
        Op::Settle(usage) | Op::SettleExisting(usage) if usage.used.len() == limits.len() => {
            (SETTLE, usage.at.as_micros(), usage.holder)
        }
        _ => return None,
    };
    let mut out = Vec::with_capacity(64 + 64 * limits.len());
    let held = if holder.is_some() { 1.0 } else { 0.0 };
    let caller = match (&step.op, metering) {
        (_, StepMetering::Override(counted)) => counted.caller,
        (Op::Take { costs, .. }, _) => Caller::of(costs),
        (Op::Settle(usage) | Op::SettleExisting(usage), _) => Caller::of(usage.reserved),
        _ => Caller::Own,
    };
    let metered = match metering {
        StepMetering::Off => 0.0,
        StepMetering::On => 1.0,
        StepMetering::Override(_) => 2.0,
    };
    let metered = if caller == Caller::Child && metered > 0.0 { metered + OF_CHILD } else { metered };
    let head = [op, metered, small(limits.version())?, small(given)?, limits.len() as f64, held];
    head.iter().for_each(|number| out.extend(number.to_le_bytes()));
    out.extend(holder.unwrap_or(0).to_be_bytes());
    for (index, limit) in limits.iter().enumerate() {
        let (first, second) = match &step.op {
            Op::Take { costs, .. } => (costs.amount(index), 0),
            Op::Settle(usage) | Op::SettleExisting(usage) => {
                (usage.reserved.amount(index), usage.used[index])
            }
            _ => return None,
        };
        let numbers = of_limit(limit, first.max(second), now)?;
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out.extend((first as f64).to_le_bytes());
        out.extend((second as f64).to_le_bytes());
    }
    if let StepMetering::Override(counted) = metering {
        out.extend(signed(counted.events)?.to_le_bytes());
        for index in 0..limits.len() {
            let amount = counted.amounts.get(index).copied().unwrap_or(0);
            out.extend(signed(amount)?.to_le_bytes());
        }
    }
    Some(out)
}

/// Returns the kind of a limit, three numbers of its own, the level below which there is a warning, and how it is enforced.
fn of_limit(limit: &Limit, amount: u64, now: Tick) -> Option<[f64; 6]> {
    small(amount)?;
    let [kind, a, b, c] = match limit.machine_view() {
        MachineView::Meter(rate) => {
            small(amount.checked_mul(rate.unit)?)?;
            let full = small(u64::try_from(rate.full).ok()?)?;
            [METER, small(rate.gain)?, small(rate.unit)?, full]
        }
        MachineView::FixedWindow { amount, period } => {
            [FIXED, small(amount)?, small(period.as_micros())?, 0.0]
        }
        MachineView::SlidingWindow { amount, period, step } => {
            [SLIDING, small(amount)?, small(period.as_micros())?, small(step.as_micros())?]
        }
        MachineView::Gauge { capacity } => [GAUGE, small(capacity)?, 0.0, 0.0],
        MachineView::Session { amount, span } => [SESSION, small(amount)?, small(span.as_micros())?, 0.0],
        MachineView::Calendar { amount, calendar } => {
            // From here up to the next edge, that is the next edge. Clocks differ a little.
            let (edge, early) = (calendar.next_edge(now), now - EARLY);
            let from = if calendar.next_edge(early) == edge { early } else { now };
            [CALENDAR, small(amount)?, small(from.as_micros())?, small(edge.as_micros())?]
        }
        MachineView::Cooldown => [COOLDOWN, 0.0, 0.0, 0.0],
        MachineView::Unbounded => [UNBOUNDED, 0.0, 0.0, 0.0],
        _ => return None,
    };
    let below = match limit.warns_below() {
        None => NEVER,
        Some(below) => small(u64::try_from(below).ok()?)?,
    };
    let shadow = if limit.is_shadow() { SHADOW } else { 0.0 };
    let resource = if limit.is_resource() { RESOURCE } else { 0.0 };
    Some([kind, a, b, c, below, shadow + resource])
}

fn signed(number: i64) -> Option<f64> {
    (number.unsigned_abs() <= NARROW_MAX).then_some(number as f64)
}

fn small(number: u64) -> Option<f64> {
    (number <= NARROW_MAX).then_some(number as f64)
}

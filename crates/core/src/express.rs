//! The express lane: ordinary meters and gauges, which is nearly all there is, in one pass of 64-bit arithmetic.
//!
//! Nothing is decided here that the machines would decide otherwise. The lane takes what it can work out without
//! a chance of overflow, and leaves everything else (debt, huge limits, windows, quotas, expiring holders, and
//! whatever does not fit) to them.

use crate::machine::{Credit, Machine};
use crate::row::INLINE;
use crate::state::Inner;
use crate::{Limit, State};

/// A meter or a gauge: what a tick adds, what one unit costs, and how much there is when it is full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rule {
    gain: u64,
    unit: u64,
    full: u64,
}

/// Amounts up to this can be added without a thought of overflow.
const PLAIN_MAX: u64 = 1 << 61;

/// What is left of each limit once a demand is paid.
pub(crate) type Left = [u64; INLINE];

/// The rules of limits that may all use the lane, in places of fixed size: most of the work here would otherwise
/// be the comparing of lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    rules: [Rule; INLINE],
    len: usize,
}

impl Rules {
    /// `None` if any of the limits may not use the lane.
    pub(crate) fn of(limits: &[Limit]) -> Option<Rules> {
        if limits.len() > INLINE {
            return None;
        }
        let mut rules = [Rule::default(); INLINE];
        for (place, limit) in rules.iter_mut().zip(limits) {
            *place = rule(limit)?;
        }
        Some(Rules { rules, len: limits.len() })
    }
}

fn rule(limit: &Limit) -> Option<Rule> {
    let rule = match limit.machine() {
        Machine::Meter(meter) => {
            let (gain, unit) = meter.rate();
            Rule { gain, unit, full: u64::try_from(meter.full()).ok()? }
        }
        Machine::Gauge => Rule { gain: 0, unit: 1, full: limit.capacity() },
        _ => return None,
    };
    (rule.full <= PLAIN_MAX).then_some(rule)
}

/// Whether all of `costs` fits and nothing about it is out of the ordinary; `left` then says what would be left.
///
/// It is written to a place of the caller's and never moved: copying what was just written costs more than
/// working it out.
#[inline(always)]
pub(crate) fn quote(
    rules: &Rules,
    states: &[State],
    elapsed: u64,
    costs: &Left,
    left: &mut Left,
) -> Option<()> {
    let states = states.get(..rules.len)?;
    for (((rule, cost), left), state) in rules.rules.iter().zip(costs).zip(left).zip(states) {
        let credit = match &state.0 {
            Inner::Meter(Credit::Narrow(credit)) => u64::try_from(*credit).ok()?,
            Inner::Gauge(in_use) => rule.full.checked_sub(*in_use)?,
            _ => return None,
        };
        let gained = elapsed.saturating_mul(rule.gain).min(PLAIN_MAX);
        *left = (credit + gained).min(rule.full).checked_sub(cost.checked_mul(rule.unit)?)?;
    }
    Some(())
}

/// Puts what a [`quote`] said into force.
#[inline(always)]
pub(crate) fn pay(rules: &Rules, states: &mut [State], left: &Left) {
    for ((rule, left), state) in rules.rules.iter().zip(left).zip(states) {
        put(state, |in_use| *in_use = rule.full - *left, *left);
    }
}

/// Changes a gauge by `gauge`, or sets the credit of a meter; a quote has found it to be one of the two.
#[inline(always)]
fn put(state: &mut State, gauge: impl FnOnce(&mut u64), credit: u64) {
    match &mut state.0 {
        Inner::Gauge(in_use) => gauge(in_use),
        Inner::Meter(Credit::Narrow(place)) => *place = credit as i64,
        _ => {}
    }
}

/// Gives back what was reserved and not used. `false`, with nothing changed, if that is not ordinary.
#[inline(always)]
pub(crate) fn refund(rules: &Rules, states: &mut [State], reserved: &Left, used: &[u64]) -> bool {
    let mut after = [0; INLINE];
    let (Some(used), Some(states)) = (used.get(..rules.len), states.get_mut(..rules.len)) else {
        return false;
    };
    let rows = rules.rules.iter().zip(reserved).zip(&mut after).zip(used.iter().zip(&*states));
    for (((rule, reserved), after), (used, state)) in rows {
        let Some(amount) = refunded(rule, state, *reserved, *used) else { return false };
        *after = amount;
    }
    for (state, after) in states.iter_mut().zip(&after) {
        put(state, |in_use| *in_use = *after, *after);
    }
    true
}

/// The credit of a meter or the use of a gauge after a refund.
#[inline(always)]
fn refunded(rule: &Rule, state: &State, reserved: u64, used: u64) -> Option<u64> {
    match &state.0 {
        Inner::Meter(Credit::Narrow(credit)) => {
            let refund = reserved.checked_sub(used)?.checked_mul(rule.unit).filter(|it| *it <= rule.full)?;
            Some((u64::try_from(*credit).ok()? + refund).min(rule.full))
        }
        // A resource is given back whatever was used of it.
        Inner::Gauge(in_use) => Some(in_use.saturating_sub(reserved)),
        _ => None,
    }
}

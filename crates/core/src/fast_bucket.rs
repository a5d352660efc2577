//! Plain buckets: ordinary meters and gauges, which is nearly all there is, as one 64-bit number each.
//!
//! A gauge is a meter that gains nothing: its credit is what is not in use. A cooldown is one that costs nothing: its
//! credit is what is left of it, below zero, and full is 0. So all limits of a plain bucket are
//! worked out by the same few instructions, with no case to tell apart. The bounds below leave room for every sum
//! that occurs; whatever could leave them, and every other kind of state, is left to the machines. Nothing is
//! decided here that they would decide otherwise.

use crate::costs::FEW;
use crate::inline_vec::INLINE;
use crate::machine::{Credit, Machine};
use crate::state::StateInner;
use crate::{Limit, State};

/// No credit, full or owed, is larger than this: two of them can be added, and twice this to one of them.
const CREDIT_MAX: i64 = 1 << 61;

/// What fills every bucket, whatever it owed. A tick more than it takes to gain that much is no more than a credit.
const GAIN_MAX: u64 = 1 << 62;
const _: () = assert!(crate::AMOUNT_MAX <= CREDIT_MAX as u64);

/// The credit of each limit, in the order of the limits; places past the last limit hold nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Credits {
    Two([i64; 2]),
    Eight(Box<[i64; INLINE]>),
}

/// A limit as a plain bucket sees it.
#[derive(Clone, Copy, Debug, Default)]
struct PlainRule {
    gain: u64,
    /// After so many ticks it is full whatever it owed. None beyond are counted, so that no product overflows.
    fills_in: u64,
    unit: u64,
    full: i64,
    capacity: u64,
    is_gauge: bool,
}

/// The rules of limits that may all be plain, in places of fixed size: most of the work here would otherwise be
/// the comparing of lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRules {
    rules: [PlainRule; INLINE],
    len: usize,
}

impl PlainRules {
    /// `None` if any of the limits may not be plain.
    pub(crate) fn of(limits: &[Limit]) -> Option<PlainRules> {
        if limits.len() > INLINE {
            return None;
        }
        let mut rules = [PlainRule::default(); INLINE];
        for (place, limit) in rules.iter_mut().zip(limits) {
            *place = PlainRule::of(limit)?;
        }
        Some(PlainRules { rules, len: limits.len() })
    }

    pub(crate) fn fresh(&self) -> Credits {
        self.collect(|rule, _| Some(rule.full)).expect("every limit has a full credit")
    }

    /// The credits that say what these states say, if plain credits can.
    pub(crate) fn credits_of(&self, states: &[State]) -> Option<Credits> {
        self.collect(|rule, index| rule.credit_of(&states[index]))
    }

    /// These credits, if each is one that its limit can have; places past the last limit are empty.
    pub(crate) fn credits(&self, credits: [i64; INLINE]) -> Option<Credits> {
        let is_valid = |rule: &PlainRule, credit: i64| (-CREDIT_MAX..=rule.full).contains(&credit);
        self.collect(|rule, index| Some(credits[index]).filter(|credit| is_valid(rule, *credit)))
    }

    fn collect(&self, credit: impl Fn(&PlainRule, usize) -> Option<i64>) -> Option<Credits> {
        let mut credits = [0; INLINE];
        for (index, place) in credits[..self.len].iter_mut().enumerate() {
            *place = credit(&self.rules[index], index)?;
        }
        Some(match credits {
            [one, two, ..] if self.len <= 2 => Credits::Two([one, two]),
            _ => Credits::Eight(Box::new(credits)),
        })
    }

    /// The state that says what the credit at `index` says.
    pub(crate) fn state(&self, credits: &Credits, index: usize) -> State {
        let (rule, credit) = (&self.rules[index], credits.as_slice()[index]);
        State(match rule.is_gauge {
            true => StateInner::Gauge((rule.full - credit) as u64),
            false if rule.is_cooldown() => StateInner::Cooldown(credit.unsigned_abs()),
            false => StateInner::Meter(Credit::Narrow(credit)),
        })
    }

    /// Takes `costs` after `elapsed` if they fit; `false`, with nothing changed, if they do not, or if there are more limits.
    #[inline(always)]
    pub(crate) fn take_few(&self, credits: &mut Credits, elapsed: u64, costs: &[u64; FEW]) -> bool {
        match credits {
            Credits::Two([credit, _]) if self.len == 1 => {
                self.take_side_by_side(std::array::from_mut(credit), elapsed, costs)
            }
            Credits::Two(credits) => self.take_side_by_side(credits, elapsed, costs),
            Credits::Eight(credits) => match credits.first_chunk_mut::<FEW>() {
                Some(credits) if self.len <= FEW => self.take_side_by_side(credits, elapsed, costs),
                _ => false,
            },
        }
    }

    /// Returns whether `costs` fit after `elapsed`; `false` also if there are more limits.
    #[inline(always)]
    pub(crate) fn fits_few(&self, credits: &Credits, elapsed: u64, costs: &[u64; FEW]) -> bool {
        let credits = credits.as_slice();
        self.len <= FEW
            && (0..self.len.min(FEW).min(credits.len())).all(|index| {
                let rule = &self.rules[index];
                rule.is_enough(rule.after(credits[index], elapsed, costs[index]), costs[index])
            })
    }

    /// With no loop and nothing written down before all is known. Also the empty places past the last limit are worked out:
    /// they cost nothing and hold nothing.
    #[inline(always)]
    fn take_side_by_side<const N: usize>(
        &self,
        credits: &mut [i64; N],
        elapsed: u64,
        costs: &[u64; FEW],
    ) -> bool {
        // Plain loops, which are unrolled without fail.
        let mut left = [0; N];
        for index in 0..N {
            left[index] = self.rules[index].after(credits[index], elapsed, costs[index]);
        }
        for index in 0..N {
            if !self.rules[index].is_enough(left[index], costs[index]) {
                return false;
            }
        }
        *credits = left;
        true
    }

    /// Gives back what was not used; of each limit, `reserved` says what was taken. `false`, with nothing changed, if more
    /// was used of any, or more was taken than it can have given.
    #[inline(always)]
    pub(crate) fn refund(&self, credits: &mut Credits, reserved: &[u64; FEW], used: &[u64; FEW]) -> bool {
        match credits {
            Credits::Two(credits) => self.refund_side_by_side(credits, reserved, used),
            Credits::Eight(credits) => match credits.first_chunk_mut::<FEW>() {
                Some(credits) if self.len <= FEW => self.refund_side_by_side(credits, reserved, used),
                _ => false,
            },
        }
    }

    #[inline(always)]
    fn refund_side_by_side<const N: usize>(
        &self,
        credits: &mut [i64; N],
        reserved: &[u64; FEW],
        used: &[u64; FEW],
    ) -> bool {
        // What was used beyond comes out as more than anything can give.
        let mut unused = [0; N];
        for index in 0..N {
            unused[index] = reserved[index].wrapping_sub(self.rules[index].counted(used[index]));
            if unused[index] > self.rules[index].capacity {
                return false;
            }
        }
        for index in 0..N {
            let rule = &self.rules[index];
            credits[index] = rule.full.min(credits[index] + (unused[index] * rule.unit) as i64);
        }
        true
    }

    /// Whether all of `costs` fits after `elapsed`.
    #[inline(always)]
    pub(crate) fn fits(&self, credits: &Credits, elapsed: u64, costs: &[u64; INLINE]) -> bool {
        let credits = credits.as_slice();
        // By index, and bounded once: zipping rows would compare their lengths over and over.
        (0..self.len.min(INLINE).min(credits.len())).all(|index| {
            let (rule, cost) = (&self.rules[index], costs[index]);
            rule.is_enough(rule.after(credits[index], elapsed, cost), cost)
        })
    }

    /// Takes `costs` after `elapsed`, which were found to fit. Working the same out again is quicker than
    /// writing it down in between: a thread that releases a lock waits for everything that was written.
    #[inline(always)]
    pub(crate) fn take(&self, credits: &mut Credits, elapsed: u64, costs: &[u64; INLINE]) {
        let credits = credits.as_mut_slice();
        for index in 0..self.len.min(INLINE).min(credits.len()) {
            credits[index] = self.rules[index].after(credits[index], elapsed, costs[index]);
        }
    }

    /// Gives back what was not used and takes what was used beyond, after `elapsed`; of each limit, `reserved` says
    /// what was taken. `false`, with nothing changed, if that could leave the bounds.
    #[inline(always)]
    pub(crate) fn settle(
        &self,
        credits: &mut Credits,
        elapsed: u64,
        reserved: impl Fn(usize) -> u64,
        used: &[u64],
    ) -> bool {
        let credits = credits.as_mut_slice();
        let places = 0..self.len.min(INLINE).min(credits.len()).min(used.len());
        let settled = |index: usize, credit: i64| {
            let rule = &self.rules[index];
            rule.settle(rule.have(credit, elapsed), reserved(index), used[index])
        };
        if !places.clone().all(|index| settled(index, credits[index]).is_some()) {
            return false;
        }
        for index in places {
            credits[index] = settled(index, credits[index]).unwrap_or(credits[index]);
        }
        true
    }
}

impl PlainRule {
    fn of(limit: &Limit) -> Option<PlainRule> {
        if limit.has_remarks() {
            return None;
        }
        let capacity = limit.capacity();
        let (gain, unit, full) = match limit.machine() {
            Machine::Meter(meter) => (meter.rate().0, meter.rate().1, i64::try_from(meter.full()).ok()?),
            Machine::Gauge => (0, 1, i64::try_from(capacity).ok()?),
            Machine::Cooldown => (1, 0, 0),
            _ => return None,
        };
        let is_gauge = limit.is_resource();
        let fills_in = GAIN_MAX.div_ceil(gain.max(1));
        (full <= CREDIT_MAX).then_some(PlainRule { gain, fills_in, unit, full, capacity, is_gauge })
    }

    /// Nothing else is free.
    fn is_cooldown(&self) -> bool {
        self.unit == 0
    }

    fn credit_of(&self, state: &State) -> Option<i64> {
        let credit = match &state.0 {
            StateInner::Meter(credit) => i64::try_from(credit.get()).ok()?,
            StateInner::Gauge(in_use) => self.full.checked_sub_unsigned(*in_use)?,
            StateInner::Cooldown(left) => 0i64.checked_sub_unsigned(*left)?,
            StateInner::Held(held) => self.full.checked_sub_unsigned(held.only_anonymous()?)?,
            _ => return None,
        };
        (credit >= -CREDIT_MAX).then_some(credit)
    }

    /// The credit after `elapsed`.
    #[inline(always)]
    fn have(&self, credit: i64, elapsed: u64) -> i64 {
        (credit + (elapsed.min(self.fills_in) * self.gain) as i64).min(self.full)
    }

    /// The credit after `elapsed` less the price of `cost`. It says nothing if that is beyond the capacity.
    #[inline(always)]
    fn after(&self, credit: i64, elapsed: u64, cost: u64) -> i64 {
        self.have(credit, elapsed).wrapping_sub(cost.wrapping_mul(self.unit) as i64)
    }

    /// Whether `cost` fits, if so much is left [after](PlainRule::after) it. Nothing always fits, also into a debt.
    #[inline(always)]
    fn is_enough(&self, left: i64, cost: u64) -> bool {
        cost == 0 || (cost <= self.capacity && left >= 0)
    }

    /// What counts of what was `used`: a resource is given back whatever was used of it.
    #[inline(always)]
    fn counted(&self, used: u64) -> u64 {
        if self.is_gauge { 0 } else { used }
    }

    /// The credit when of what was `reserved` so much was `used`; `None` if it could leave the bounds.
    #[inline(always)]
    fn settle(&self, have: i64, reserved: u64, used: u64) -> Option<i64> {
        let used = self.counted(used);
        let price =
            reserved.abs_diff(used).checked_mul(self.unit).filter(|price| *price <= CREDIT_MAX as u64)?;
        if used <= reserved {
            return Some((have + price as i64).min(self.full));
        }
        // What begins a cooldown is no price.
        Some(have - price as i64).filter(|credit| *credit >= -CREDIT_MAX && !self.is_cooldown())
    }
}

impl Credits {
    /// All of them but empty places at the end, which say nothing that is not said by leaving them out.
    pub(crate) fn without_tail(&self) -> &[i64] {
        let credits = self.as_slice();
        let len = credits.iter().rposition(|credit| *credit != 0).map_or(0, |last| last + 1);
        &credits[..len]
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[i64] {
        match self {
            Credits::Two(credits) => credits,
            Credits::Eight(credits) => &**credits,
        }
    }

    #[inline(always)]
    fn as_mut_slice(&mut self) -> &mut [i64] {
        match self {
            Credits::Two(credits) => credits,
            Credits::Eight(credits) => &mut **credits,
        }
    }
}

//! Plain buckets: meters, gauges and cooldowns with one 64-bit credit each, which nearly every
//! bucket is.
//!
//! A gauge is a meter that gains nothing: its credit is what is not in use. A cooldown is a meter
//! whose tokens cost nothing: its credit is the negative remaining time, and full is 0. So the same
//! few instructions decide all limits of a plain bucket, without branching on their kind. The
//! bounds below make every sum that occurs fit into 64 bits; states that could exceed them, and all
//! other kinds of state, are left to the machines. Every verdict here equals that of the machines.

use crate::costs::SMALL;
use crate::inline_vec::INLINE;
use crate::machine::{Credit, Machine};
use crate::state::StateInner;
use crate::{Limit, State};

/// The maximum of a credit, whether full or owed. An `i64` holds the sum of two of them, and one of
/// them plus [`GAIN_MAX`].
const CREDIT_MAX: i64 = 1 << 61;

/// A gain that fills every bucket from the largest debt: 2 * [`CREDIT_MAX`]. Rounding the time up
/// to a whole tick adds at most one more `gain`, which is at most
/// [`AMOUNT_MAX`](crate::AMOUNT_MAX).
const GAIN_MAX: u64 = 1 << 62;
const _: () = assert!(crate::AMOUNT_MAX <= CREDIT_MAX as u64);

/// The credit of each limit, in the order of the limits. Elements past the last limit are 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Credits {
    Two([i64; 2]),
    Eight(Box<[i64; INLINE]>),
}

/// The constants of one limit in a plain bucket.
#[derive(Clone, Copy, Debug, Default)]
struct PlainRule {
    gain: u64,
    /// The number of ticks after which the limit is full, even from the largest debt. Elapsed time
    /// is capped at it, so that `elapsed * gain` cannot overflow.
    fills_in: u64,
    unit: u64,
    full: i64,
    capacity: u64,
    is_gauge: bool,
}

/// The rules of limits that can be in a plain bucket. An array of fixed size, because length checks
/// would take most of the time otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRules {
    rules: [PlainRule; INLINE],
    len: usize,
}

impl PlainRules {
    /// Returns the rules, or `None` if any of the limits cannot be in a plain bucket.
    pub(crate) fn of(limits: &[Limit]) -> Option<PlainRules> {
        if limits.len() > INLINE {
            return None;
        }
        let mut rules = [PlainRule::default(); INLINE];
        for (rule, limit) in rules.iter_mut().zip(limits) {
            *rule = PlainRule::of(limit)?;
        }
        Some(PlainRules { rules, len: limits.len() })
    }

    pub(crate) fn fresh(&self) -> Credits {
        self.collect(|rule, _| Some(rule.full)).expect("every limit has a full credit")
    }

    /// Converts the states to credits, if plain credits can represent them.
    pub(crate) fn credits_of(&self, states: &[State]) -> Option<Credits> {
        self.collect(|rule, index| rule.credit_of(&states[index]))
    }

    /// Returns the credits if each of them is valid for its limit.
    pub(crate) fn credits(&self, credits: [i64; INLINE]) -> Option<Credits> {
        self.collect(|rule, index| Some(credits[index]).filter(|credit| rule.may_have(*credit)))
    }

    /// Replaces credits of as many limits by others, one for each limit. Returns false, with nothing changed, if they
    /// are of another form or not valid.
    #[inline]
    pub(crate) fn replace(&self, credits: &mut Credits, by: &[i64]) -> bool {
        let (is_short, credits) = (matches!(credits, Credits::Two(_)), credits.as_mut_slice());
        let rules = &self.rules[..self.len.min(INLINE)];
        if by.len() != rules.len() || is_short != (rules.len() <= 2) {
            return false;
        }
        if !rules.iter().zip(by).all(|(rule, credit)| rule.may_have(*credit)) {
            return false;
        }
        let (used, rest) = credits.split_at_mut(by.len().min(credits.len()));
        used.iter_mut().zip(by).for_each(|(credit, by)| *credit = *by);
        rest.fill(0);
        true
    }

    fn collect(&self, credit: impl Fn(&PlainRule, usize) -> Option<i64>) -> Option<Credits> {
        let mut credits = [0; INLINE];
        for (index, slot) in credits[..self.len].iter_mut().enumerate() {
            *slot = credit(&self.rules[index], index)?;
        }
        Some(match credits {
            [one, two, ..] if self.len <= 2 => Credits::Two([one, two]),
            _ => Credits::Eight(Box::new(credits)),
        })
    }

    /// Converts the credit at `index` to a state.
    pub(crate) fn state(&self, credits: &Credits, index: usize) -> State {
        let (rule, credit) = (&self.rules[index], credits.as_slice()[index]);
        State(match rule.is_gauge {
            true => StateInner::Gauge((rule.full - credit) as u64),
            false if rule.is_cooldown() => StateInner::Cooldown(credit.unsigned_abs()),
            false => StateInner::Meter(Credit::Narrow(credit)),
        })
    }

    /// Takes `costs` after `elapsed` and returns true if they fit. Otherwise, or if there are more
    /// than [`SMALL`] limits, returns false and changes nothing.
    #[inline(always)]
    pub(crate) fn take_small(&self, credits: &mut Credits, elapsed: u64, costs: &[u64; SMALL]) -> bool {
        match credits {
            Credits::Two([credit, _]) if self.len == 1 => {
                self.take_unrolled(std::array::from_mut(credit), elapsed, costs)
            }
            Credits::Two(credits) => self.take_unrolled(credits, elapsed, costs),
            Credits::Eight(credits) => match credits.first_chunk_mut::<SMALL>() {
                Some(credits) if self.len <= SMALL => self.take_unrolled(credits, elapsed, costs),
                _ => false,
            },
        }
    }

    /// Returns true if `costs` fit after `elapsed`; false also if there are more than [`SMALL`]
    /// limits.
    #[inline(always)]
    pub(crate) fn fits_small(&self, credits: &Credits, elapsed: u64, costs: &[u64; SMALL]) -> bool {
        let credits = credits.as_slice();
        self.len <= SMALL
            && (0..self.len.min(SMALL).min(credits.len())).all(|index| {
                let rule = &self.rules[index];
                rule.is_enough(rule.after(credits[index], elapsed, costs[index]), costs[index])
            })
    }

    /// Computes all credits before it writes any, so that the unrolled loops have no branch in
    /// between. It also computes the unused elements past the last limit, which cost nothing and
    /// hold 0.
    #[inline(always)]
    fn take_unrolled<const N: usize>(
        &self,
        credits: &mut [i64; N],
        elapsed: u64,
        costs: &[u64; SMALL],
    ) -> bool {
        // Index loops over a constant length, which the compiler is sure to unroll.
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

    /// Refunds the difference of `reserved` and `used` for each limit. Returns false and changes
    /// nothing if more was used than reserved, or more was reserved than the capacity.
    #[inline(always)]
    pub(crate) fn refund(&self, credits: &mut Credits, reserved: &[u64; SMALL], used: &[u64; SMALL]) -> bool {
        match credits {
            Credits::Two(credits) => self.refund_unrolled(credits, reserved, used),
            Credits::Eight(credits) => match credits.first_chunk_mut::<SMALL>() {
                Some(credits) if self.len <= SMALL => self.refund_unrolled(credits, reserved, used),
                _ => false,
            },
        }
    }

    #[inline(always)]
    fn refund_unrolled<const N: usize>(
        &self,
        credits: &mut [i64; N],
        reserved: &[u64; SMALL],
        used: &[u64; SMALL],
    ) -> bool {
        // The subtraction wraps if more was used than reserved; the result is then above any
        // capacity.
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

    /// Returns true if all of `costs` fit after `elapsed`.
    #[inline(always)]
    pub(crate) fn fits(&self, credits: &Credits, elapsed: u64, costs: &[u64; INLINE]) -> bool {
        let credits = credits.as_slice();
        // Loops by index with one bound: zipped iterators would compare lengths at every step.
        (0..self.len.min(INLINE).min(credits.len())).all(|index| {
            let (rule, cost) = (&self.rules[index], costs[index]);
            rule.is_enough(rule.after(credits[index], elapsed, cost), cost)
        })
    }

    /// Takes `costs` after `elapsed`, which were found to fit. Computing the credits again is
    /// faster than storing them in between, because a thread that releases a lock waits for all its
    /// stores.
    #[inline(always)]
    pub(crate) fn take(&self, credits: &mut Credits, elapsed: u64, costs: &[u64; INLINE]) {
        let credits = credits.as_mut_slice();
        for index in 0..self.len.min(INLINE).min(credits.len()) {
            credits[index] = self.rules[index].after(credits[index], elapsed, costs[index]);
        }
    }

    /// Corrects reservations after `elapsed` to what was used: refunds the rest, charges the
    /// excess. Returns false and changes nothing if a credit could exceed the bounds.
    #[inline(always)]
    pub(crate) fn settle(
        &self,
        credits: &mut Credits,
        elapsed: u64,
        reserved: impl Fn(usize) -> u64,
        used: &[u64],
    ) -> bool {
        let credits = credits.as_mut_slice();
        let len = self.len.min(INLINE).min(credits.len()).min(used.len());
        let mut settled = [0; INLINE];
        for index in 0..len {
            let rule = &self.rules[index];
            match rule.settle(rule.have(credits[index], elapsed), reserved(index), used[index]) {
                Some(credit) => settled[index] = credit,
                None => return false,
            }
        }
        credits[..len].copy_from_slice(&settled[..len]);
        true
    }
}

impl PlainRule {
    fn of(limit: &Limit) -> Option<PlainRule> {
        if limit.may_warn() {
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

    /// Returns true for a cooldown: only its tokens cost nothing.
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

    /// Returns true if this is a valid credit of the limit.
    #[inline(always)]
    fn may_have(&self, credit: i64) -> bool {
        (-CREDIT_MAX..=self.full).contains(&credit)
    }

    /// Returns the credit after `elapsed`.
    #[inline(always)]
    fn have(&self, credit: i64, elapsed: u64) -> i64 {
        (credit + (elapsed.min(self.fills_in) * self.gain) as i64).min(self.full)
    }

    /// Returns the credit after `elapsed` minus the price of `cost`. The price wraps if `cost` is
    /// above the capacity, and the result is meaningless then; [`is_enough`](PlainRule::is_enough)
    /// checks for that.
    #[inline(always)]
    fn after(&self, credit: i64, elapsed: u64, cost: u64) -> i64 {
        self.have(credit, elapsed).wrapping_sub(cost.wrapping_mul(self.unit) as i64)
    }

    /// Returns true if `cost` fits, given the credit `left` [after](PlainRule::after) it. A cost of
    /// 0 always fits, even in debt.
    #[inline(always)]
    fn is_enough(&self, left: i64, cost: u64) -> bool {
        cost == 0 || (cost <= self.capacity && left >= 0)
    }

    /// Returns the part of `used` that counts: 0 for a resource, which is released whatever was
    /// used of it.
    #[inline(always)]
    fn counted(&self, used: u64) -> u64 {
        if self.is_gauge { 0 } else { used }
    }

    /// Returns the credit after `used` of `reserved` was used; `None` if it could exceed the
    /// bounds.
    #[inline(always)]
    fn settle(&self, have: i64, reserved: u64, used: u64) -> Option<i64> {
        let used = self.counted(used);
        let price =
            reserved.abs_diff(used).checked_mul(self.unit).filter(|price| *price <= CREDIT_MAX as u64)?;
        if used <= reserved {
            return Some((have + price as i64).min(self.full));
        }
        // A charge starts a cooldown instead of costing credit, which only the machine implements.
        Some(have - price as i64).filter(|credit| *credit >= -CREDIT_MAX && !self.is_cooldown())
    }
}

impl Credits {
    /// Returns the credits without zeros at the end, for a shorter encoding.
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

//! The state of one limit, and the operations on it.
//!
//! A state is as of an instant that its bucket stores. Functions that read take that instant as
//! `then` and compute the result for `now` without changing the state; functions that write require
//! that [`State::advance`] has brought the state to `now`.

use crate::machine::{Credit, CustomState, Holders, Machine, Period, WindowLog, cooldown};
use crate::verdict::LimitStatus;
use crate::{Holder, Limit, Ready, Tick};

/// The state of one limit. It takes 16 bytes, so that ten million idle keys stay small.
// Hidden: opaque, and only the codecs of this crate look inside.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct State(pub(crate) StateInner);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StateInner {
    Meter(Credit),
    Fixed(i64),
    Sliding(Box<WindowLog>),
    Gauge(u64),
    Held(Box<Holders>),
    /// The number of ticks until the cooldown ends.
    Cooldown(u64),
    Quota(Box<Period>),
    Custom(Box<CustomState>),
    Unbounded,
}

impl State {
    /// Returns the state of an unused limit.
    pub(crate) fn fresh(limit: &Limit) -> State {
        State(match limit.machine() {
            Machine::Meter(meter) => StateInner::Meter(Credit::new(meter.full())),
            Machine::Fixed(_) => StateInner::Fixed(0),
            Machine::Sliding(_) => StateInner::Sliding(Box::default()),
            Machine::Gauge => StateInner::Gauge(0),
            Machine::Cooldown => StateInner::Cooldown(0),
            Machine::Quota(_) => StateInner::Quota(Box::default()),
            Machine::Custom(rule) => StateInner::Custom(Box::new(rule.fresh())),
            Machine::Unbounded => StateInner::Unbounded,
        })
    }

    /// Returns true if `cost` fits at `now`, or if the limit is a shadow limit, which admits
    /// everything.
    #[inline]
    pub(crate) fn fits(&self, limit: &Limit, then: Tick, now: Tick, cost: u64) -> bool {
        limit.is_shadow() || self.has_room(limit, then, now, cost)
    }

    #[inline]
    fn has_room(&self, limit: &Limit, then: Tick, now: Tick, cost: u64) -> bool {
        match (limit.machine(), &self.0) {
            (Machine::Meter(meter), StateInner::Meter(credit)) => {
                meter.refill(credit.get(), now.since(then)) >= meter.price(cost)
            }
            (Machine::Gauge, StateInner::Gauge(in_use)) => in_use.saturating_add(cost) <= limit.capacity(),
            (Machine::Cooldown, StateInner::Cooldown(left)) => {
                cost == 0 || cooldown::left(*left, now.since(then)) == 0
            }
            (Machine::Custom(rule), StateInner::Custom(state)) => {
                rule.fits(state, now, cost, limit.capacity())
            }
            _ => cost == 0 || self.left(limit, then, now) >= i128::from(cost),
        }
    }

    /// Returns how much is left at `now`; a negative number is debt.
    fn left(&self, limit: &Limit, then: Tick, now: Tick) -> i128 {
        match (limit.machine(), &self.0) {
            _ if limit.is_unbounded() => i128::from(i64::MAX),
            (Machine::Meter(meter), StateInner::Meter(credit)) => {
                meter.tokens(meter.refill(credit.get(), now.since(then)))
            }
            (Machine::Fixed(window), StateInner::Fixed(count)) => window.left(window.roll(*count, then, now)),
            (Machine::Sliding(window), StateInner::Sliding(log)) => window.left(log, now),
            (Machine::Gauge, StateInner::Gauge(in_use)) => i128::from(limit.capacity()) - i128::from(*in_use),
            (Machine::Gauge, StateInner::Held(held)) => {
                i128::from(limit.capacity()) - i128::from(held.in_use(now))
            }
            (Machine::Quota(quota), StateInner::Quota(period)) => quota.left(&quota.roll(**period, now)),
            (Machine::Cooldown, StateInner::Cooldown(left)) => {
                i128::from(cooldown::left(*left, now.since(then)) == 0)
            }
            (Machine::Custom(rule), StateInner::Custom(state)) => rule.available(state, now).into(),
            _ => i128::from(i64::MAX),
        }
    }

    /// Returns true if the limit has a warning at `now`: a shadow limit is in debt, or more than
    /// the soft level is in use.
    pub(crate) fn has_warning(&self, limit: &Limit, then: Tick, now: Tick) -> bool {
        let left = self.left(limit, then, now);
        let is_past = |level: u64| i128::from(limit.capacity()) - left > i128::from(level);
        limit.is_shadow() && left < 0 || limit.soft_level().is_some_and(is_past)
    }

    /// Returns when `cost` will fit. It may exceed the capacity, as the sum over a queue does: then
    /// the result is when the last of the queue could pass, one after the other.
    pub(crate) fn ready(&self, limit: &Limit, then: Tick, now: Tick, cost: u64) -> Ready {
        if limit.is_shadow() { Ready::Now } else { self.room_for(limit, then, now, cost) }
    }

    /// Returns when there will be room for `cost`, also for a shadow limit, whose callers never
    /// wait.
    fn room_for(&self, limit: &Limit, then: Tick, now: Tick, cost: u64) -> Ready {
        match (limit.machine(), &self.0) {
            (_, _) if cost == 0 => Ready::Now,
            (Machine::Meter(meter), StateInner::Meter(credit)) => {
                meter.ready(meter.refill(credit.get(), now.since(then)), now, cost)
            }
            (Machine::Fixed(window), StateInner::Fixed(count)) => {
                window.ready(window.roll(*count, then, now), now, cost)
            }
            (Machine::Sliding(window), StateInner::Sliding(log)) => window.ready(log, now, cost),
            (Machine::Gauge, StateInner::Held(held)) => held.ready(limit.capacity(), now, cost),
            (Machine::Quota(quota), StateInner::Quota(period)) => {
                quota.ready(&quota.roll(**period, now), now, cost)
            }
            (Machine::Cooldown, StateInner::Cooldown(left)) => {
                cooldown::ready(cooldown::left(*left, now.since(then)), now)
            }
            (Machine::Custom(rule), StateInner::Custom(state)) => {
                rule.ready(state, now, cost, limit.capacity())
            }
            _ if self.has_room(limit, then, now, cost) => Ready::Now,
            _ => Ready::Unknown,
        }
    }

    /// Returns the status of the limit at `now` for a demand of `cost`.
    pub(crate) fn status(&self, limit: &Limit, then: Tick, now: Tick, cost: u64) -> LimitStatus {
        let left = self.left(limit, then, now);
        let available = i64::try_from(left).unwrap_or(if left < 0 { i64::MIN } else { i64::MAX });
        let ready = self.ready(limit, then, now, cost);
        let full = if limit.is_unbounded() { Ready::Now } else { self.full(limit, then, now) };
        LimitStatus { available, requested: cost, ready, full }
    }

    fn full(&self, limit: &Limit, then: Tick, now: Tick) -> Ready {
        self.room_for(limit, then, now, limit.capacity())
    }

    /// Brings the state to `now`.
    #[inline]
    pub(crate) fn advance(&mut self, limit: &Limit, then: Tick, now: Tick) {
        match (limit.machine(), &mut self.0) {
            (Machine::Meter(meter), StateInner::Meter(credit)) => {
                credit.set(meter.refill(credit.get(), now.since(then)));
            }
            (Machine::Fixed(window), StateInner::Fixed(count)) => *count = window.roll(*count, then, now),
            (Machine::Sliding(window), StateInner::Sliding(log)) => window.advance(log, now),
            (Machine::Quota(quota), StateInner::Quota(period)) => **period = quota.roll(**period, now),
            (Machine::Gauge, StateInner::Held(held)) => {
                held.expire(now);
            }
            (Machine::Cooldown, StateInner::Cooldown(left)) => *left = cooldown::left(*left, now.since(then)),
            _ => {}
        }
    }

    /// Takes `cost` at `now`, whether it fits or not. The state must be as of `now`.
    #[inline]
    pub(crate) fn charge(&mut self, limit: &Limit, now: Tick, cost: u64, holder: Option<Holder>) {
        match (limit.machine(), &mut self.0) {
            (Machine::Meter(meter), StateInner::Meter(credit)) => {
                credit.set(credit.get().saturating_sub(meter.price(cost)));
            }
            (Machine::Fixed(_), StateInner::Fixed(count)) => *count = count.saturating_add_unsigned(cost),
            (Machine::Sliding(window), StateInner::Sliding(log)) => window.charge(log, now, cost),
            (Machine::Quota(quota), StateInner::Quota(period)) => {
                **period = quota.charge(**period, now, cost)
            }
            (Machine::Gauge, StateInner::Gauge(in_use)) => match holder {
                None => *in_use = in_use.saturating_add(cost),
                Some(_) if cost == 0 => {}
                Some(_) => {
                    let mut held = Holders::with_anonymous(*in_use);
                    held.hold(holder, cost);
                    self.0 = StateInner::Held(Box::new(held));
                }
            },
            (Machine::Gauge, StateInner::Held(held)) if cost > 0 => held.hold(holder, cost),
            (Machine::Cooldown, StateInner::Cooldown(left)) => *left = cooldown::charge(*left, cost),
            (Machine::Custom(rule), StateInner::Custom(state)) => rule.charge(state, now, cost),
            _ => {}
        }
    }

    /// Returns `amount` of what was taken at `at`.
    pub(crate) fn refund(&mut self, limit: &Limit, at: Tick, now: Tick, amount: u64, holder: Option<u128>) {
        match (limit.machine(), &mut self.0) {
            (Machine::Meter(meter), StateInner::Meter(credit)) => {
                credit.set(meter.refund(credit.get(), amount))
            }
            (Machine::Fixed(window), StateInner::Fixed(count)) => {
                *count = window.refund(*count, at, now, amount)
            }
            (Machine::Sliding(window), StateInner::Sliding(log)) => window.refund(log, at, now, amount),
            (Machine::Quota(quota), StateInner::Quota(period)) => {
                **period = quota.refund(**period, at, amount)
            }
            // The holder has expired, so its share was released before.
            (Machine::Gauge, StateInner::Gauge(in_use)) if holder.is_none() => {
                *in_use = in_use.saturating_sub(amount)
            }
            (Machine::Gauge, StateInner::Held(held)) => held.release(holder, amount),
            (Machine::Custom(rule), StateInner::Custom(state)) => rule.refund(state, at, now, amount),
            _ => {}
        }
    }

    /// Adds `amount` that no call had taken, up to full. Leaves resources unchanged, and ends a
    /// cooldown.
    pub(crate) fn top_up(&mut self, limit: &Limit, now: Tick, amount: u64) {
        match (limit.machine(), &mut self.0) {
            (Machine::Meter(meter), StateInner::Meter(credit)) => {
                credit.set(meter.refund(credit.get(), amount))
            }
            (Machine::Fixed(_), StateInner::Fixed(count)) => {
                *count = count.saturating_sub_unsigned(amount).max(0);
            }
            (Machine::Sliding(window), StateInner::Sliding(log)) => window.top_up(log, now, amount),
            (Machine::Quota(_), StateInner::Quota(period)) => period.top_up(amount),
            (Machine::Cooldown, StateInner::Cooldown(left)) if amount > 0 => *left = 0,
            (Machine::Custom(rule), StateInner::Custom(state)) => rule.refund(state, now, now, amount),
            _ => {}
        }
    }

    /// Returns true if the state, which is as of `then`, equals a fresh one at `now`.
    pub(crate) fn is_fresh(&self, limit: &Limit, then: Tick, now: Tick) -> bool {
        match (limit.machine(), &self.0) {
            (Machine::Meter(meter), StateInner::Meter(credit)) => {
                meter.refill(credit.get(), now.since(then)) == meter.full()
            }
            (Machine::Fixed(window), StateInner::Fixed(count)) => window.roll(*count, then, now) == 0,
            (Machine::Sliding(window), StateInner::Sliding(log)) => {
                log.is_empty() || window.left(log, now) == i128::from(limit.amount())
            }
            (Machine::Gauge, StateInner::Gauge(in_use)) => *in_use == 0,
            (Machine::Gauge, StateInner::Held(held)) => held.in_use(now) == 0,
            (Machine::Quota(quota), StateInner::Quota(period)) => quota.is_fresh(&quota.roll(**period, now)),
            (Machine::Cooldown, StateInner::Cooldown(left)) => cooldown::left(*left, now.since(then)) == 0,
            (Machine::Custom(rule), StateInner::Custom(state)) => rule.is_fresh(state),
            _ => true,
        }
    }

    /// Converts this state of `old`, which is as of `now`, to a state of `new`.
    ///
    /// Lowering a limit clamps what is left, raising one adds nothing. If the machine changes, what
    /// is left is carried over; between a resource and a rate nothing is, because what is in use
    /// and what was used do not convert.
    pub(crate) fn adopt(mut self, old: &Limit, new: &Limit, now: Tick) -> State {
        match (old.machine(), new.machine(), &mut self.0) {
            (Machine::Meter(old), Machine::Meter(new), StateInner::Meter(credit)) => {
                State(StateInner::Meter(Credit::new(new.adopt(old, credit.get()))))
            }
            (Machine::Fixed(old), Machine::Fixed(new), StateInner::Fixed(count)) => {
                State(StateInner::Fixed(new.adopt(old, *count)))
            }
            (Machine::Quota(old), Machine::Quota(new), StateInner::Quota(period)) => {
                State(StateInner::Quota(Box::new(new.adopt(old, **period, now))))
            }
            (Machine::Sliding(_), Machine::Sliding(new), StateInner::Sliding(log)) => {
                new.adopt(log, now);
                self
            }
            (Machine::Custom(old_rule), Machine::Custom(rule), StateInner::Custom(state)) => {
                match rule.adopt(old_rule, state, now) {
                    Some(state) => State(StateInner::Custom(Box::new(state))),
                    None => self.converted(old, new, now),
                }
            }
            (Machine::Gauge, Machine::Gauge, _) | (Machine::Cooldown, Machine::Cooldown, _) => self,
            _ => self.converted(old, new, now),
        }
    }

    fn converted(self, old: &Limit, new: &Limit, now: Tick) -> State {
        let mut state = State::fresh(new);
        let has_no_amount = |limit: &Limit| limit.is_unbounded() || limit.is_cooldown();
        if has_no_amount(old) || has_no_amount(new) || old.is_resource() != new.is_resource() {
            return state;
        }
        let used = i128::from(new.capacity()) - self.left(old, now, now).min(i128::from(new.capacity()));
        state.charge(new, now, u64::try_from(used).unwrap_or(u64::MAX), None);
        state
    }

    pub(crate) fn renew(&mut self, holder: Holder) -> bool {
        match &mut self.0 {
            StateInner::Held(held) => held.renew(holder),
            _ => false,
        }
    }

    pub(crate) fn has_expired_holders(&self, now: Tick) -> bool {
        matches!(&self.0, StateInner::Held(held) if held.has_expired(now))
    }

    pub(crate) fn revive_holders(&mut self, now: Tick, until: Tick, is_alive: impl FnMut(u128) -> bool) {
        if let StateInner::Held(held) = &mut self.0 {
            held.revive(now, until, is_alive);
        }
    }

    pub(crate) fn retain_holders(&mut self, keep: impl FnMut(u128) -> bool) -> usize {
        match &mut self.0 {
            StateInner::Held(held) => held.retain(keep),
            _ => 0,
        }
    }

    pub(crate) fn expire(&mut self, now: Tick) -> usize {
        match &mut self.0 {
            StateInner::Held(held) => held.expire(now),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_two_words() {
        assert_eq!(size_of::<State>(), 16);
    }
}

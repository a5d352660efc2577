//! Views: limits and buckets as numbers, for a store whose service computes them with a script.

use super::CodecError;
use crate::machine::{Credit, Holders, Machine, Period};
use crate::state::StateInner;
use crate::{Bucket, Calendar, Holder, Limit, Limits, Rate, Resets, Span, State, Tick};

/// The constants of a limit.
// Hidden: the representation for stores that run a script.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MachineView {
    /// A token bucket, a leaky bucket or GCRA.
    Meter(Rate),
    /// An amount in each window; windows start at multiples of the period since the epoch.
    FixedWindow {
        /// The amount.
        amount: u64,
        /// The length of a window.
        period: Span,
    },
    /// An amount in every window. Calls within one step of a period count as of the last of them.
    SlidingWindow {
        /// The amount.
        amount: u64,
        /// The length of a window.
        period: Span,
        /// The length of a step.
        step: Span,
    },
    /// A number at once.
    Gauge {
        /// The number.
        capacity: u64,
    },
    /// An amount for a time after the first use.
    Session {
        /// The amount.
        amount: u64,
        /// The time.
        span: Span,
    },
    /// An amount until the next edge of a calendar.
    Calendar {
        /// The amount.
        amount: u64,
        /// The calendar.
        calendar: Calendar,
    },
    /// Any amount, but nothing while a cooldown lasts.
    Cooldown,
    /// A rule of the caller, which no script implements.
    Custom,
    /// Any amount.
    Unbounded,
}

/// The state of a limit, as of an instant that all limits of a bucket share.
// Hidden: the representation for stores that run a script.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateView {
    /// The credit of a meter, in parts of a token; see [`Rate::unit`].
    Meter(i128),
    /// The use in the current window.
    FixedWindow(i64),
    /// The log of a sliding window.
    SlidingWindow {
        /// The instants and amounts of the entries, in order.
        entries: Vec<(Tick, u64)>,
        /// The use beyond the amount.
        debt: u64,
    },
    /// What is in use of a resource.
    Gauge {
        /// Anonymous use, without a holder.
        anonymous: u64,
        /// What each holder holds, in the order of their ids.
        holds: Vec<(Holder, u64)>,
    },
    /// The current period; all zero if none has opened.
    Quota {
        /// The use.
        used: i64,
        /// The start of the period.
        start: Tick,
        /// The end of the period.
        end: Tick,
    },
    /// The number of ticks until the cooldown ends.
    Cooldown(u64),
    /// The state of a custom rule, which has no view.
    Custom,
    /// An unbounded limit has no state.
    Unbounded,
}

impl Limit {
    /// Returns the constants of the limit.
    // Hidden: the representation for stores that run a script.
    #[doc(hidden)]
    pub fn machine_view(&self) -> MachineView {
        let (amount, period) = (self.amount(), self.period().unwrap_or(Span::ZERO));
        match (self.machine(), self.resets()) {
            (Machine::Meter(meter), _) => {
                let (gain, unit) = meter.rate();
                MachineView::Meter(Rate { gain, unit, full: meter.full() })
            }
            (Machine::Fixed(_), _) => MachineView::FixedWindow { amount, period },
            (Machine::Sliding(window), _) => {
                MachineView::SlidingWindow { amount, period, step: window.step() }
            }
            (Machine::Gauge, _) => MachineView::Gauge { capacity: self.capacity() },
            (Machine::Quota(_), Some(Resets::AfterFirstUse(span))) => {
                MachineView::Session { amount, span: *span }
            }
            (Machine::Quota(_), Some(Resets::Calendar(calendar))) => {
                MachineView::Calendar { amount, calendar: calendar.clone() }
            }
            (Machine::Cooldown, _) => MachineView::Cooldown,
            (Machine::Custom(_), _) => MachineView::Custom,
            (Machine::Quota(_), None) | (Machine::Unbounded, _) => MachineView::Unbounded,
        }
    }

    /// Returns the amount left below which the limit has a warning, if it can have one; see
    /// [`Bucket::warnings`].
    // Hidden: for stores that run a script.
    #[doc(hidden)]
    pub fn warns_below(&self) -> Option<i128> {
        let past_soft = self.soft_level().map(|level| i128::from(self.capacity()) - i128::from(level));
        let in_debt = self.is_shadow().then_some(0);
        past_soft.max(in_debt).filter(|_| !self.is_unbounded())
    }
}

impl Bucket {
    /// Returns the state of each limit, in their order, as of [`stamp`](Bucket::stamp).
    // Hidden: the representation for stores that run a script.
    #[doc(hidden)]
    pub fn views(&self, limits: &Limits) -> Vec<StateView> {
        (0..limits.len()).map(|index| view(&self.state(limits, index))).collect()
    }

    /// Creates the bucket that has these [views](Bucket::views).
    ///
    /// # Errors
    ///
    /// Returns [`CodecError`] for views that do not match these limits.
    // Hidden: the representation for stores that run a script.
    #[doc(hidden)]
    pub fn of_views(limits: &Limits, stamp: Tick, views: Vec<StateView>) -> Result<Bucket, CodecError> {
        if views.len() != limits.len() {
            return Err(CodecError::TooShort);
        }
        let state = |(limit, view): (&Limit, StateView)| {
            of_view(limit, stamp, view).ok_or_else(|| CodecError::BadState(limit.name().to_string()))
        };
        let states = limits.iter().zip(views).map(state).collect::<Result<_, _>>()?;
        Ok(Bucket::of_states(limits, stamp, states))
    }
}

fn view(state: &State) -> StateView {
    match &state.0 {
        StateInner::Meter(credit) => StateView::Meter(credit.get()),
        StateInner::Fixed(count) => StateView::FixedWindow(*count),
        StateInner::Sliding(log) => {
            let (entries, debt) = log.parts();
            StateView::SlidingWindow { entries: entries.collect(), debt }
        }
        StateInner::Gauge(in_use) => StateView::Gauge { anonymous: *in_use, holds: Vec::new() },
        StateInner::Held(held) => {
            let (anonymous, holds) = held.parts();
            StateView::Gauge { anonymous, holds: holds.collect() }
        }
        StateInner::Quota(period) => {
            let (used, start, end) = period.parts();
            StateView::Quota { used, start, end }
        }
        StateInner::Cooldown(left) => StateView::Cooldown(*left),
        StateInner::Custom(_) => StateView::Custom,
        StateInner::Unbounded => StateView::Unbounded,
    }
}

fn of_view(limit: &Limit, stamp: Tick, view: StateView) -> Option<State> {
    let inner = match (limit.machine(), view) {
        (Machine::Meter(meter), StateView::Meter(credit)) if credit <= meter.full() => {
            StateInner::Meter(Credit::new(credit))
        }
        (Machine::Fixed(_), StateView::FixedWindow(count)) if count >= 0 => StateInner::Fixed(count),
        (Machine::Sliding(window), StateView::SlidingWindow { entries, debt }) => {
            StateInner::Sliding(Box::new(window.log_of(entries, debt, stamp)?))
        }
        (Machine::Gauge, StateView::Gauge { anonymous, holds }) if holds.is_empty() => {
            StateInner::Gauge(anonymous)
        }
        (Machine::Gauge, StateView::Gauge { anonymous, holds }) => {
            StateInner::Held(Box::new(Holders::of(anonymous, holds)?))
        }
        (Machine::Quota(_), StateView::Quota { used, start, end }) => {
            StateInner::Quota(Box::new(Period::of(used, start, end)?))
        }
        (Machine::Cooldown, StateView::Cooldown(left)) => StateInner::Cooldown(left),
        (Machine::Unbounded, StateView::Unbounded) => StateInner::Unbounded,
        _ => return None,
    };
    Some(State(inner))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Take, demand};

    #[test]
    fn a_bucket_equals_the_one_made_of_its_views() {
        let day = Duration::from_secs(86_400);
        let limits = Limits::new([
            Limit::per_minute("rpm", 7),
            Limit::rate("slow", 10, day),
            Limit::resource("slots", 3),
            Limit::sliding_window("log", 9, day),
            Limit::fixed_window("window", 9, day),
            Limit::quota("spend", 30, day),
        ])
        .expect("they are valid");
        let costs = limits.costs(&demand! { rpm: 1, slow: 2, slots: 1, log: 3, window: 2, spend: 4 });
        let costs = costs.expect("it fits");
        let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
        for step in 0..3 {
            let now = Tick::from_micros(1_000_003 * step);
            let holder = Some(Holder { id: step.into(), expires: now + Span::from_secs(5) });
            bucket.take(&limits, now, &Take { costs: &costs, holder }).expect("it fits");
            let views = bucket.views(&limits);
            assert_eq!(Bucket::of_views(&limits, bucket.stamp(), views), Ok(bucket.clone()));
        }
    }

    #[test]
    fn views_of_other_limits_are_refused() {
        let limits = Limits::new([Limit::per_minute("rpm", 7)]).expect("it is valid");
        let too_much = StateView::Meter(7 * 60_000_000 + 1);
        for views in [vec![], vec![StateView::Unbounded], vec![StateView::FixedWindow(1)], vec![too_much]] {
            assert!(Bucket::of_views(&limits, Tick::ZERO, views).is_err());
        }
    }

    #[test]
    fn a_warning_follows_from_what_is_left() {
        let limits = Limits::new([
            Limit::resource("slots", 4).soft(1),
            Limit::per_minute("rpm", 6).shadow(),
            Limit::per_minute("tpm", 6),
        ]);
        let below: Vec<_> = limits.expect("they are valid").iter().map(Limit::warns_below).collect();
        assert_eq!(below, [Some(3), Some(0), None]);
    }
}

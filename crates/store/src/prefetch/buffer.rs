//! Buffer of what a process holds ahead of one bucket.

use tollgate_core::{Costs, Limits, Span, Tick};

use super::{UsageDelta, signed};
use crate::usage::Caller;

/// The shortest and the longest time that a portion should last.
const LASTS: [Span; 2] = [Span::from_millis(100), Span::from_millis(400)];

/// A portion is at most so many times what is asked for.
const PORTION_MAX: u64 = 1 << 20;

/// What is held ahead of one bucket.
#[derive(Debug, Default)]
pub(super) struct PrefetchBuffer {
    limits: Option<Limits>,
    /// The kind of callers that it serves: what was used of it is counted as theirs.
    caller: Caller,
    held: Vec<u64>,
    /// What was used of it and is not yet counted.
    pub(super) uncounted: UsageDelta,
    /// The size of the next portion, as a multiple of what is asked for.
    portion: u64,
    /// When the last portion was taken, and when something was last taken of it.
    filled: Tick,
    touched: Tick,
}

impl PrefetchBuffer {
    /// Returns whether what is held is of these limits, and for the kind of callers of these costs.
    pub(super) fn is_of(&self, limits: &Limits, costs: &Costs) -> bool {
        let is_equal =
            |held: &Limits| held.same(limits) || held == limits && held.version() == limits.version();
        self.caller == Caller::of(costs) && self.limits.as_ref().is_some_and(is_equal)
    }

    /// Returns the limits of what is held, if anything is.
    pub(super) fn limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    /// Returns when the last portion was taken.
    pub(super) fn filled(&self) -> Tick {
        self.filled
    }

    /// Returns whether no caller took anything for at least `idle`.
    pub(super) fn is_idle(&self, now: Tick, idle: Span) -> bool {
        now.since(self.touched) >= idle
    }

    /// Returns whether it holds what is asked for.
    pub(super) fn has(&self, limits: &Limits, costs: &Costs) -> bool {
        self.is_of(limits, costs) && self.held.iter().zip(costs.amounts()).all(|(held, cost)| held >= cost)
    }

    /// Takes what is asked for, if it holds that.
    pub(super) fn take(&mut self, limits: &Limits, costs: &Costs, now: Tick) -> bool {
        if !self.has(limits, costs) {
            return false;
        }
        self.held.iter_mut().zip(costs.amounts()).for_each(|(held, cost)| *held -= cost);
        self.uncounted.add_take(costs);
        self.touched = now;
        true
    }

    /// Returns what it would hold if what was taken were settled with what was used; `None` if that cannot be done with what
    /// it holds.
    pub(super) fn settled(
        &self,
        limits: &Limits,
        (reserved, used): (&Costs, &[u64]),
        bounds: &[u64],
    ) -> Option<Vec<u64>> {
        if !self.is_of(limits, reserved) || bounds.len() != self.held.len() || used.len() != self.held.len() {
            return None;
        }
        let rows = self.held.iter().zip(reserved.amounts().iter().zip(used)).zip(bounds);
        let settled = rows.map(|((held, (reserved, used)), bound)| {
            let left = held.checked_add(*reserved)?.checked_sub(*used)?;
            (left <= *bound || left <= *held).then_some(left)
        });
        settled.collect()
    }

    /// Settles what was taken with what was used, if that can be done with what is held. So many events are counted with it.
    pub(super) fn settle(
        &mut self,
        limits: &Limits,
        (reserved, used): (&Costs, &[u64]),
        bounds: &[u64],
        events: i64,
    ) -> bool {
        let Some(settled) = self.settled(limits, (reserved, used), bounds) else { return false };
        self.held = settled;
        let differences = used.iter().zip(reserved.amounts());
        self.uncounted.add(events, differences.map(|(used, reserved)| signed(*used) - signed(*reserved)));
        true
    }

    /// Returns how much to take beyond what is asked for: as much as lasts for a moment, and no more than may be held.
    pub(super) fn ahead(&mut self, costs: &Costs, bounds: &[u64], now: Tick) -> Vec<u64> {
        let lasted = now.since(self.filled);
        let [shortest, longest] = LASTS;
        self.portion = match self.portion {
            0 => 1,
            portion if lasted < shortest => (portion * 2).min(PORTION_MAX),
            portion if lasted > longest => (portion / 2).max(1),
            portion => portion,
        };
        let held = |place: usize| self.held.get(place).copied().unwrap_or(0);
        let ahead = |(place, (cost, bound)): (usize, (&u64, &u64))| {
            cost.saturating_mul(self.portion).min(bound.saturating_sub(held(place)))
        };
        costs.amounts().iter().zip(bounds).enumerate().map(ahead).collect()
    }

    /// Adds a portion that was taken with `costs`; what was uncounted was counted with it.
    pub(super) fn fill(&mut self, limits: &Limits, costs: &Costs, ahead: &[u64], at: Tick, now: Tick) {
        if !self.is_of(limits, costs) {
            self.held = vec![0; limits.len()];
            (self.limits, self.caller) = (Some(limits.clone()), Caller::of(costs));
        }
        self.held.iter_mut().zip(ahead).for_each(|(held, more)| *held = held.saturating_add(*more));
        self.uncounted = UsageDelta::default();
        (self.filled, self.touched) = (at, now);
    }

    /// Makes the next portions smaller, because this one did not fit.
    pub(super) fn shrink(&mut self) {
        self.portion /= 4;
    }

    /// Returns what there is to give back, and what to count with it; it holds nothing after that.
    pub(super) fn empty(&mut self) -> Option<(Limits, Vec<u64>, UsageDelta)> {
        let limits = self.limits.take()?;
        self.shrink();
        Some((limits, std::mem::take(&mut self.held), std::mem::take(&mut self.uncounted)))
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Limit, demand};

    use super::super::bounds;
    use super::*;

    fn limits() -> Limits {
        let limits = [Limit::per_minute("rpm", 1_000), Limit::per_minute("tpm", 100_000)];
        Limits::new(limits).expect("they are valid")
    }

    #[test]
    fn portions_grow_while_they_last_too_short_and_never_beyond_the_bound() {
        let limits = limits();
        let bounds = bounds(&limits, 5).expect("they are meters");
        assert_eq!(bounds, [50, 5_000]);
        let costs = limits.costs(&demand! { rpm: 1, tpm: 30 }).expect("it fits");
        let mut buffer = PrefetchBuffer::default();
        let mut now = Tick::from_secs(1);
        let mut calls = 0;
        for _ in 0..2_000 {
            now = now + Span::from_millis(1);
            if !buffer.take(&limits, &costs, now) {
                let ahead = buffer.ahead(&costs, &bounds, now);
                buffer.fill(&limits, &costs, &ahead, now, now);
                calls += 1;
            }
            assert!(buffer.held.iter().zip(&bounds).all(|(held, bound)| held <= bound), "{buffer:?}");
        }
        assert!(calls < 60, "{calls} calls for 2,000 takes");
    }

    #[test]
    fn what_is_settled_stays_within_what_may_be_held() {
        let (limits, now) = (limits(), Tick::from_secs(1));
        let costs = limits.costs(&demand! { rpm: 1, tpm: 100 }).expect("it fits");
        let mut buffer = PrefetchBuffer::default();
        buffer.fill(&limits, &costs, &[10, 150], now, now);
        let bounds = [50, 180];
        assert!(buffer.settle(&limits, (&costs, &[1, 80]), &bounds, 0), "20 come back");
        assert!(!buffer.settle(&limits, (&costs, &[1, 80]), &bounds, 0), "20 more would be too many");
        assert!(buffer.settle(&limits, (&costs, &[1, 260]), &bounds, 0), "160 more were used");
        assert!(!buffer.settle(&limits, (&costs, &[1, 111]), &bounds, 0), "which is nearly all");
        assert_eq!(
            (buffer.held.as_slice(), buffer.uncounted.amounts.as_slice()),
            (&[10, 10][..], &[0, 140][..])
        );
    }

    #[test]
    fn other_limits_or_another_version_of_them_are_not_served() {
        let (limits, now) = (limits(), Tick::from_secs(1));
        let costs = limits.costs(&demand! { rpm: 1, tpm: 1 }).expect("it fits");
        let mut buffer = PrefetchBuffer::default();
        buffer.fill(&limits, &costs, &[10, 10], now, now);
        assert!(!buffer.take(&limits.clone().at_version(2), &costs, now));
        assert!(
            !buffer.take(&limits, &costs.clone().of_child(), now),
            "it would be counted as the entity's own"
        );
        assert!(buffer.take(&limits, &costs, now));
        assert!(bounds(&Limits::new([Limit::resource("slots", 3)]).expect("it is valid"), 5).is_none());
    }
}

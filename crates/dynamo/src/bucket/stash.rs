//! What a process holds ahead of a bucket, so that most takes need no call.
//!
//! It was taken from the bucket before it is handed out, so all processes together never hand out more than there is.
//! What is held ahead is bounded by a part of each capacity, taken in portions that last for a moment, and given back
//! when nobody wants it.

use tollgate_core::{Costs, Limits, Span, Tick};

/// How long a portion should last.
const LASTS: [Span; 2] = [Span::from_millis(100), Span::from_millis(400)];

/// A portion is at most so many times what is asked for.
const PORTION_MAX: u64 = 1 << 20;

/// What is held ahead of one bucket.
#[derive(Debug, Default)]
pub(crate) struct Stash {
    limits: Option<Limits>,
    held: Vec<u64>,
    /// What was used of it and is not yet counted.
    pub(crate) uncounted: Counted,
    /// How many times what is asked for the next portion is.
    portion: u64,
    /// When the last portion was taken, and when something was last taken of it.
    filled: Tick,
    touched: Tick,
}

/// Takes and what they used of each limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) events: i64,
    pub(crate) amounts: Vec<i64>,
}

impl Counted {
    pub(crate) fn is_nothing(&self) -> bool {
        self.events == 0 && self.amounts.iter().all(|amount| *amount == 0)
    }

    fn add(&mut self, events: i64, amounts: impl Iterator<Item = i64>) {
        self.events += events;
        for (place, amount) in amounts.enumerate() {
            if self.amounts.len() <= place {
                self.amounts.push(0);
            }
            self.amounts[place] = self.amounts[place].saturating_add(amount);
        }
    }
}

/// The most that may be held ahead of a bucket under these limits, of each; `None` if they are not all meters.
pub(crate) fn bounds(limits: &Limits, percent: u8) -> Option<Vec<u64>> {
    let bound = |limit: &tollgate_core::Limit| {
        limit.meter().filter(|_| !limit.is_shadow() && limit.soft_level().is_none())?;
        Some((u128::from(limit.capacity()) * u128::from(percent.min(100)) / 100) as u64)
    };
    limits.iter().map(bound).collect()
}

impl Stash {
    /// Whether what is held is of these limits.
    pub(crate) fn is_of(&self, limits: &Limits) -> bool {
        let is_equal =
            |held: &Limits| held.same(limits) || held == limits && held.version() == limits.version();
        self.limits.as_ref().is_some_and(is_equal)
    }

    pub(crate) fn limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    /// When the portion was taken that is being used.
    pub(crate) fn filled(&self) -> Tick {
        self.filled
    }

    pub(crate) fn is_idle(&self, now: Tick, idle: Span) -> bool {
        now.since(self.touched) >= idle
    }

    /// Takes what is asked for, if it is there.
    pub(crate) fn take(&mut self, limits: &Limits, costs: &Costs, now: Tick) -> bool {
        let has_all = |held: &Vec<u64>| held.iter().zip(costs.amounts()).all(|(held, cost)| held >= cost);
        if !self.is_of(limits) || !has_all(&self.held) {
            return false;
        }
        self.held.iter_mut().zip(costs.amounts()).for_each(|(held, cost)| *held -= cost);
        self.uncounted.add(1, costs.amounts().iter().map(|cost| signed(*cost)));
        self.touched = now;
        true
    }

    /// Settles what was taken with what was used, if that can be done with what is held.
    pub(crate) fn settle(
        &mut self,
        limits: &Limits,
        (reserved, used): (&Costs, &[u64]),
        bounds: &[u64],
        events: i64,
    ) -> bool {
        if !self.is_of(limits) || bounds.len() != self.held.len() {
            return false;
        }
        let rows = self.held.iter().zip(reserved.amounts().iter().zip(used)).zip(bounds);
        let settled = rows.map(|((held, (reserved, used)), bound)| {
            let left = held.checked_add(*reserved)?.checked_sub(*used)?;
            (left <= *bound || left <= *held).then_some(left)
        });
        let Some(settled) = settled.collect::<Option<Vec<u64>>>() else { return false };
        self.held = settled;
        let differences = used.iter().zip(reserved.amounts());
        self.uncounted.add(events, differences.map(|(used, reserved)| signed(*used) - signed(*reserved)));
        true
    }

    /// How much to take beyond what is asked for: as much as lasts for a moment, and no more than may be held.
    pub(crate) fn ahead(&mut self, costs: &Costs, bounds: &[u64], now: Tick) -> Vec<u64> {
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

    /// A portion was taken ahead, and what was uncounted was counted with it.
    pub(crate) fn fill(&mut self, limits: &Limits, ahead: &[u64], at: Tick, now: Tick) {
        if !self.is_of(limits) {
            self.held = vec![0; limits.len()];
            self.limits = Some(limits.clone());
        }
        self.held.iter_mut().zip(ahead).for_each(|(held, more)| *held = held.saturating_add(*more));
        self.uncounted = Counted::default();
        (self.filled, self.touched) = (at, now);
    }

    /// Nothing can be had ahead just now.
    pub(crate) fn shrink(&mut self) {
        self.portion /= 4;
    }

    /// What there is to give back, and what to count with it; nothing is held after that.
    pub(crate) fn empty(&mut self) -> Option<(Limits, Vec<u64>, Counted)> {
        let limits = self.limits.take()?;
        self.shrink();
        Some((limits, std::mem::take(&mut self.held), std::mem::take(&mut self.uncounted)))
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Limit, demand};

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
        let mut stash = Stash::default();
        let mut now = Tick::from_secs(1);
        let mut calls = 0;
        for _ in 0..2_000 {
            now = now + Span::from_millis(1);
            if !stash.take(&limits, &costs, now) {
                let ahead = stash.ahead(&costs, &bounds, now);
                stash.fill(&limits, &ahead, now, now);
                calls += 1;
            }
            assert!(stash.held.iter().zip(&bounds).all(|(held, bound)| held <= bound), "{stash:?}");
        }
        assert!(calls < 60, "{calls} calls for 2,000 takes");
    }

    #[test]
    fn what_is_settled_stays_within_what_may_be_held() {
        let (limits, now) = (limits(), Tick::from_secs(1));
        let costs = limits.costs(&demand! { rpm: 1, tpm: 100 }).expect("it fits");
        let mut stash = Stash::default();
        stash.fill(&limits, &[10, 150], now, now);
        let bounds = [50, 180];
        assert!(stash.settle(&limits, (&costs, &[1, 80]), &bounds, 0), "20 come back");
        assert!(!stash.settle(&limits, (&costs, &[1, 80]), &bounds, 0), "20 more would be too many");
        assert!(stash.settle(&limits, (&costs, &[1, 260]), &bounds, 0), "160 more were used");
        assert!(!stash.settle(&limits, (&costs, &[1, 111]), &bounds, 0), "which is nearly all");
        assert_eq!(
            (stash.held.as_slice(), stash.uncounted.amounts.as_slice()),
            (&[10, 10][..], &[0, 140][..])
        );
    }

    #[test]
    fn other_limits_or_another_version_of_them_are_not_served() {
        let (limits, now) = (limits(), Tick::from_secs(1));
        let costs = limits.costs(&demand! { rpm: 1, tpm: 1 }).expect("it fits");
        let mut stash = Stash::default();
        stash.fill(&limits, &[10, 10], now, now);
        assert!(!stash.take(&limits.clone().at_version(2), &costs, now));
        assert!(stash.take(&limits, &costs, now));
        assert!(bounds(&Limits::new([Limit::resource("slots", 3)]).expect("it is valid"), 5).is_none());
    }
}

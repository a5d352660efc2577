//! The limits that a provider advertises in its replies, and what follows for the next call.

use tollgate::{Span, Tick};
use tollgate_provider::LimitReading;

use super::PaceRate;

/// How far apart two samples must be to measure a rate from them.
const BASE_MIN: Span = Span::from_secs(2);

/// After this time a rate is measured from later samples.
const BASE_MAX: Span = Span::from_secs(20);

/// One advertised limit: the latest sample, and how it is refilled.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdvertisedLimit {
    sample: LimitSample,
    /// An earlier sample, from which the rate is measured.
    base: LimitSample,
    limit: u64,
    full_at: Option<Tick>,
    /// The longest time until the limit is full that was advertised.
    longest: Span,
    rate: Option<PaceRate>,
    fills: Fills,
    /// True if more calls passed than the samples allow.
    is_false: bool,
}

/// How many more calls may pass than a sample allows: other replies are in flight.
const SLACK: u64 = 3;

#[derive(Clone, Copy, Debug)]
struct LimitSample {
    /// When the call started whose reply has the sample.
    at: Tick,
    remaining: u64,
    /// What had started by then, that call included.
    started: u64,
}

/// How a limit is refilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fills {
    Unknown,
    Steadily,
    /// At the end of a window.
    AtOnce,
}

impl AdvertisedLimit {
    /// Returns the limit of a first sample, if the sample is complete.
    pub(super) fn first(
        meter: &LimitReading,
        at: Tick,
        started: u64,
        passed: bool,
    ) -> Option<AdvertisedLimit> {
        let (limit, remaining) = (meter.limit?, meter.remaining?);
        // No call passes where the limit is 0.
        let is_false = passed && limit == 0;
        let sample = LimitSample { at, remaining: remaining.min(limit), started };
        let full_at = meter.reset.map(|reset| at + Span::covering(reset));
        let longest = full_at.map_or(Span::ZERO, |full| full.since(at));
        Some(AdvertisedLimit {
            sample,
            base: sample,
            limit,
            full_at,
            longest,
            rate: None,
            fills: Fills::Unknown,
            is_false,
        })
    }

    /// Updates the limit with another sample. A sample older than the latest is ignored.
    pub(super) fn update(&mut self, meter: &LimitReading, at: Tick, started: u64, passed: bool) {
        let (Some(limit), Some(remaining)) = (meter.limit, meter.remaining) else { return };
        if at < self.sample.at {
            return;
        }
        if passed {
            self.check(limit, at, started);
        }
        let sample = LimitSample { at, remaining: remaining.min(limit), started };
        let same_window = self.full_at.is_none_or(|full| at < full);
        self.learn(sample, same_window && limit == self.limit);
        (self.sample, self.limit) = (sample, limit);
        self.full_at = meter.reset.map(|reset| at + Span::covering(reset));
        self.longest = self.longest.max(self.full_at.map_or(Span::ZERO, |full| full.since(at)));
    }

    /// Checks a sample against the calls that passed. If more passed than can have been left, even
    /// if the limit is refilled twice as fast as advertised, the advertised limit is false and not
    /// used any more.
    fn check(&mut self, limit: u64, at: Tick, started: u64) {
        let used = started.saturating_sub(self.base.started);
        let rate = self.claimed().max(self.bound()).unwrap_or(PaceRate::MIN);
        let filled = rate.amount_in(at.since(self.base.at)).saturating_mul(2);
        let is_over = self.full_at.is_some_and(|full| at >= full);
        self.is_false |=
            limit == 0 || !is_over && used > self.base.remaining.saturating_add(filled).saturating_add(SLACK);
    }

    /// Returns true if the calls that pass do not contradict the limit.
    pub(super) fn is_credible(&self) -> bool {
        self.limit > 0 && !self.is_false
    }

    fn learn(&mut self, sample: LimitSample, same_window: bool) {
        let span = sample.at.since(self.base.at);
        if !same_window || sample.remaining == self.limit {
            self.base = sample;
        } else if span >= BASE_MIN {
            let used = sample.started.saturating_sub(self.base.started);
            let filled = sample.remaining.saturating_add(used).saturating_sub(self.base.remaining);
            let due = self.claimed().map_or(1, |rate| rate.amount_in(span) / 2).max(1);
            if filled >= due {
                (self.fills, self.rate) = (Fills::Steadily, Some(PaceRate::of(filled, span)));
            } else if self.fills == Fills::Unknown {
                self.fills = Fills::AtOnce;
            }
            if span >= BASE_MAX {
                self.base = sample;
            }
        }
    }

    /// Returns the advertised rate at which the limit is refilled.
    fn claimed(&self) -> Option<PaceRate> {
        let span = self.full_at?.since(self.sample.at);
        let missing = self.limit.saturating_sub(self.sample.remaining);
        (missing > 0 && span > Span::ZERO).then(|| PaceRate::of(missing, span))
    }

    /// Returns the average rate at which the limit is refilled, if it is known.
    pub(super) fn rate(&self) -> Option<PaceRate> {
        match self.fills {
            Fills::Unknown => None,
            Fills::Steadily => self.rate,
            Fills::AtOnce => self.bound(),
        }
    }

    /// Returns an upper bound of the rate. Whether the limit is refilled steadily or at once, it is
    /// full after the longest advertised time.
    pub(super) fn bound(&self) -> Option<PaceRate> {
        (self.longest > Span::ZERO).then(|| PaceRate::of(self.limit, self.longest))
    }

    /// Returns how long it takes to refill the limit from zero, if that is known.
    pub(super) fn refill_time(&self) -> Span {
        self.claimed().map_or(Span::ZERO, |rate| rate.time_of(self.limit)).max(self.longest)
    }

    /// Returns when there is room for `load`, if `started` has started so far.
    pub(super) fn ready(&self, now: Tick, started: u64, load: u64) -> Tick {
        // A load above the limit is for the provider to judge.
        let load = load.min(self.limit);
        let wanted = load.saturating_add(started.saturating_sub(self.sample.started));
        let missing = wanted.saturating_sub(self.sample.remaining);
        if missing == 0 {
            return now;
        }
        let at_the_edge = self.full_at.unwrap_or(now);
        match (self.fills, self.rate.or_else(|| self.claimed())) {
            (Fills::AtOnce, _) | (_, None) => at_the_edge,
            (_, Some(rate)) => (self.sample.at + rate.time_of(missing)).min(at_the_edge.max(now)),
        }
        .max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tollgate_provider::LimitUnit;

    fn meter(limit: u64, remaining: u64) -> LimitReading {
        LimitReading::new(LimitUnit::Requests)
            .with_limit(limit)
            .with_remaining(remaining)
            .with_reset(Duration::from_secs(60))
    }

    #[test]
    fn a_limit_of_0_is_false_once_a_call_has_passed() {
        let limit = AdvertisedLimit::first(&meter(0, 0), Tick::ZERO, 1, true).expect("a complete sample");
        assert!(!limit.is_credible());
    }

    #[test]
    fn a_remaining_count_that_never_moves_is_false_once_more_have_passed() {
        let mut limit =
            AdvertisedLimit::first(&meter(60, 0), Tick::ZERO, 1, true).expect("a complete sample");
        assert!(limit.is_credible());
        for started in 2..10 {
            limit.update(&meter(60, 0), Tick::from_secs(1), started, true);
        }
        assert!(!limit.is_credible());
    }

    #[test]
    fn a_count_that_falls_with_each_call_is_credible() {
        let mut limit =
            AdvertisedLimit::first(&meter(60, 59), Tick::ZERO, 1, true).expect("a complete sample");
        for started in 2..50 {
            limit.update(&meter(60, 60 - started), Tick::from_secs(started / 10), started, true);
        }
        assert!(limit.is_credible());
    }
}

//! The pace of one unit: calls, or tokens.

use tollgate::{Span, Tick};
use tollgate_provider::LimitReading;

use super::advertised::AdvertisedLimit;
use super::saturation::Measured;
use super::{PaceRate, TIMER};

/// The part of the measured rate at which the pace starts, in thousandths.
const START_AT: u64 = 990;

/// By how much the pace exceeds that after one term, in thousandths, for a limit that is known
/// well.
const PROBE: u64 = 40;

/// The largest weight of earlier measurements.
const WEIGHT_MAX: u64 = 400;

/// The weight of a measurement that is only a bound.
const CALLS_UNSURE: u64 = 20;

/// By how much the pace may grow in all, in thousandths, however long ago the last refusal was.
const GROWTH_MAX: u128 = 10_000_000;

/// The part of a term that proves that a limit has risen, in thousandths, if a call is refused as
/// soon as the pace is too high.
const SHARP_TERM: u128 = 700;

/// How often the growth doubles in each further term without a refusal.
const DOUBLINGS: u128 = 8;

/// How many round trips a doubling takes at least: refusals arrive that late.
const ROUND_TRIPS_DOUBLING: u128 = 2;

/// The largest ratio, in thousandths, of a limit between the measured rate and the rate that was
/// too fast to the measured rate.
const BETWEEN_MAX: u64 = 1_300;

/// What a provider advertises of a bucket that is refilled within this many round trips is outdated
/// when it arrives.
const ROUND_TRIPS_TIMELY: u64 = 4;

/// The fraction of the time between two starts that may be caught up: a provider may allow hardly
/// more than one call at once.
const CATCH_UP: u64 = 4;

/// The knowledge about the limit of one unit, and when the next start is due.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnitPace {
    found: Option<FoundLimit>,
    next: Tick,
    advertised: Option<AdvertisedLimit>,
    /// True if an advertised sample is still valid when it arrives.
    is_timely: bool,
}

/// A limit that was guessed or measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundLimit {
    pub(super) rate: PaceRate,
    /// How many calls measured it; 0 if it is a guess.
    weight: u64,
    /// True if the measured bucket is so small that a call is refused as soon as the pace is too
    /// high.
    is_sharp: bool,
}

/// How long to wait before a faster pace is tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeDelay {
    pub(super) length: Span,
    pub(super) round_trip: Span,
    pub(super) latency: Span,
}

/// How a measurement compares with the known limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Confirms,
    Differs,
}

impl UnitPace {
    pub(super) fn found(&self) -> Option<FoundLimit> {
        self.found
    }

    /// Returns the advertised limit, if it is credible and timely.
    pub(super) fn advertised(&self) -> Option<AdvertisedLimit> {
        self.advertised.filter(|advertised| self.is_timely && advertised.is_credible())
    }

    /// Updates the advertised limit with a reply that took about `latency`.
    pub(super) fn update(
        &mut self,
        meter: &LimitReading,
        at: Tick,
        started: u64,
        latency: Span,
        passed: bool,
    ) {
        match &mut self.advertised {
            Some(advertised) => advertised.update(meter, at, started, passed),
            none => *none = AdvertisedLimit::first(meter, at, started, passed),
        }
        let lasts = self.advertised.map_or(Span::ZERO, |advertised| advertised.refill_time());
        self.is_timely = lasts.as_micros() / ROUND_TRIPS_TIMELY >= latency.as_micros();
    }

    pub(super) fn is_a_guess(&self) -> bool {
        self.found.is_some_and(|found| found.weight == 0)
    }

    /// Returns true if so few calls have measured the limit that it should be tested soon.
    pub(super) fn is_unsure(&self) -> bool {
        self.found.is_none_or(|found| found.weight <= CALLS_UNSURE)
    }

    /// Returns the pace after `growth` of a term. A guess doubles within a round trip.
    pub(super) fn pace(&self, growth: Span, term: ProbeDelay) -> Option<PaceRate> {
        let found = self.found?;
        let latency = term.latency;
        let (term, probe) = match found.weight {
            0 => (term.round_trip, 1_000),
            weight => (term.length, PROBE + 2_000 / (weight + 2)),
        };
        let (growth, term) = (u128::from(growth.as_micros()), u128::from(term.as_micros().max(1)));
        let probe = u128::from(probe);
        let proven = if found.is_sharp { term * SHARP_TERM / 1_000 } else { term };
        let over = growth.saturating_sub(proven);
        let more = if over == 0 || found.weight == 0 {
            (probe.saturating_mul(growth) / term).saturating_mul(growth) / term
        } else {
            // The faster pace passed for a while: the limit has risen.
            let each = (term / DOUBLINGS).max(u128::from(latency.as_micros()) * ROUND_TRIPS_DOUBLING).max(1);
            let (times, rest) = (over / each, over % each);
            let doubled = probe << times.min(20);
            doubled + doubled * rest / each
        };
        let more = more.min(GROWTH_MAX);
        Some(found.rate.scaled(START_AT + u64::try_from(more).unwrap_or(u64::MAX), 1_000))
    }

    /// Returns when `load` may start.
    pub(super) fn ready(&self, now: Tick, started: u64, load: u64) -> Tick {
        let advertised = self.advertised().map_or(now, |advertised| advertised.ready(now, started, load));
        if self.found.is_some() { advertised.max(self.next) } else { advertised }
    }

    pub(super) fn start(&mut self, now: Tick, load: u64, pace: Option<PaceRate>) {
        let Some(pace) = pace else { return };
        let one = pace.time_of(load);
        let late = now.since(self.next).as_micros();
        let from = if late <= (one.as_micros() / CATCH_UP).max(TIMER.as_micros()) { self.next } else { now };
        self.next = from + one;
    }

    /// Restores this limit; `now` is the one that was in use meanwhile.
    pub(super) fn resume(self, now: &UnitPace) -> UnitPace {
        UnitPace { found: self.found, ..*now }
    }

    /// Sets a limit that was not measured.
    pub(super) fn guess(&mut self, rate: PaceRate) {
        self.found = Some(FoundLimit { rate, weight: 0, is_sharp: false });
    }

    /// Sets the limit to the advertised rate.
    pub(super) fn adopt(&mut self, rate: PaceRate) {
        self.found = Some(FoundLimit { rate, weight: WEIGHT_MAX, is_sharp: false });
    }

    /// Takes a guess for a measurement by `calls` calls.
    pub(super) fn trust(&mut self, rate: PaceRate, calls: u64) {
        self.found = Some(FoundLimit { rate, weight: calls.clamp(1, WEIGHT_MAX), is_sharp: false });
    }

    /// Applies a measurement by `calls` calls. The limit is below `pace`, which was too fast.
    pub(super) fn learn(&mut self, measured: Measured, calls: u64, pace: PaceRate) -> News {
        let rate = measured.rate().min(pace).max(pace.scaled(1, 4));
        let resumed_at = self.found.map_or(rate, |found| found.rate.scaled(START_AT, 1_000));
        let by_few =
            self.found.filter(|found| found.weight > 0).map_or(0, |found| 1_000 / (found.weight + 1));
        if !measured.is_exact && resumed_at < rate.scaled(985 - by_few.min(300), 1_000) {
            // The pace was below the limit for a while, when the bucket may have been full: the
            // limit lies between the measured rate and the one that was too fast.
            let between = u128::from(rate.millionths()).midpoint(u128::from(pace.millionths()));
            let between = PaceRate::from_millionths(between).min(rate.scaled(BETWEEN_MAX, 1_000));
            self.found = Some(FoundLimit { rate: between, weight: CALLS_UNSURE.min(calls), is_sharp: false });
            return News::Differs;
        }
        let old = self.found.filter(|found| found.weight > 0);
        let confirmed = old.filter(|old| is_close(old.rate, rate, calls));
        let Some(old) = confirmed else {
            self.found =
                Some(FoundLimit { rate, weight: calls.clamp(1, WEIGHT_MAX), is_sharp: measured.is_exact });
            return News::Differs;
        };
        let weight = old.weight.min(WEIGHT_MAX);
        let sum = u128::from(old.rate.millionths()) * u128::from(weight)
            + u128::from(rate.millionths()) * u128::from(calls);
        let mean = sum / u128::from(weight + calls);
        let rate = PaceRate::from_millionths(mean);
        self.found =
            Some(FoundLimit { rate, weight: (weight + calls).min(WEIGHT_MAX), is_sharp: measured.is_exact });
        News::Confirms
    }
}

/// Returns true if two rates are equal within the accuracy of so few calls.
fn is_close(old: PaceRate, new: PaceRate, calls: u64) -> bool {
    let slack = old.scaled(30 + 2_000 / (calls + 1), 1_000).millionths();
    old.millionths().abs_diff(new.millionths()) <= slack
}

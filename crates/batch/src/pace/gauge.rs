//! The pace of one unit: calls, or tokens.

use tollgate::{Span, Tick};
use tollgate_provider::LimitReading;

use super::advertised::AdvertisedLimit;
use super::saturation::Measured;
use super::{PaceRate, TIMER};

/// How much of what is measured is tried first, of a thousand.
const START_AT: u64 = 990;

/// How much more is tried after one term, of a thousand, of a limit that is known well.
const PROBE: u64 = 40;

/// The most that older measurements weigh.
const WEIGHT_MAX: u64 = 400;

/// What a measurement weighs that is only a bound.
const CALLS_UNSURE: u64 = 20;

/// How much more is tried at most, of a thousand, however long ago the last refusal was.
const GROWTH_MAX: u128 = 10_000_000;

/// What part of a term proves that a limit has risen, of a thousand, if a call is refused as soon as the pace is too high.
const SHARP_TERM: u128 = 700;

/// How often what is tried doubles in each further term in which nothing is refused.
const DOUBLINGS: u128 = 8;

/// How many round trips it takes to double at least: refusals come that late.
const ROUND_TRIPS_DOUBLING: u128 = 2;

/// How much more than what was measured a limit may be that lies between that and what was too much, of a thousand.
const BETWEEN_MAX: u64 = 1_300;

/// What a provider says of a bucket that fills up within so few round trips is over before it arrives.
const ROUND_TRIPS_TOLD: u64 = 4;

/// What part of the time between two starts may be caught up: a provider may allow hardly more than one at once.
const CATCH_UP: u64 = 4;

/// What is known of one unit's limit, and when the next start is due.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnitPace {
    found: Option<FoundLimit>,
    next: Tick,
    told: Option<AdvertisedLimit>,
    /// Whether what was reported is still so by the time it arrives.
    is_heard_in_time: bool,
}

/// A limit that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundLimit {
    pub(super) rate: PaceRate,
    /// How many calls it was measured by; 0 if it is a guess.
    weight: u64,
    /// Whether a bucket so small was measured that a call is refused as soon as the pace is too high.
    is_sharp: bool,
}

/// How long to wait before a little more is tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeDelay {
    pub(super) length: Span,
    pub(super) round_trip: Span,
    pub(super) latency: Span,
}

/// How a measurement compares with what was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Confirms,
    Differs,
}

impl UnitPace {
    pub(super) fn found(&self) -> Option<FoundLimit> {
        self.found
    }

    /// What the provider says of this limit, if that is worth anything.
    pub(super) fn told(&self) -> Option<AdvertisedLimit> {
        self.told.filter(|told| self.is_heard_in_time && told.is_credible())
    }

    /// Hears what the provider says of this limit in a reply that took about `latency`.
    pub(super) fn hear(&mut self, meter: &LimitReading, at: Tick, started: u64, latency: Span, passed: bool) {
        match &mut self.told {
            Some(told) => told.hear(meter, at, started, passed),
            none => *none = AdvertisedLimit::first(meter, at, started, passed),
        }
        let lasts = self.told.map_or(Span::ZERO, |told| told.lasts());
        self.is_heard_in_time = lasts.as_micros() / ROUND_TRIPS_TOLD >= latency.as_micros();
    }

    pub(super) fn is_a_guess(&self) -> bool {
        self.found.is_some_and(|found| found.weight == 0)
    }

    /// Whether so few calls speak for it that it had better be tried soon.
    pub(super) fn is_unsure(&self) -> bool {
        self.found.is_none_or(|found| found.weight <= CALLS_UNSURE)
    }

    /// The pace after `growth` of a term. A guess is not worth much patience, and doubles within a round trip.
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
            // What was tried passed for a while: the limit has risen.
            let each = (term / DOUBLINGS).max(u128::from(latency.as_micros()) * ROUND_TRIPS_DOUBLING).max(1);
            let (times, rest) = (over / each, over % each);
            let doubled = probe << times.min(20);
            doubled + doubled * rest / each
        };
        let more = more.min(GROWTH_MAX);
        Some(found.rate.scaled(START_AT + u64::try_from(more).unwrap_or(u64::MAX), 1_000))
    }

    /// When `load` may start at this pace.
    pub(super) fn ready(&self, now: Tick, started: u64, load: u64) -> Tick {
        let told = self.told().map_or(now, |told| told.ready(now, started, load));
        if self.found.is_some() { told.max(self.next) } else { told }
    }

    pub(super) fn start(&mut self, now: Tick, load: u64, pace: Option<PaceRate>) {
        let Some(pace) = pace else { return };
        let one = pace.time_of(load);
        let late = now.since(self.next).as_micros();
        let from = if late <= (one.as_micros() / CATCH_UP).max(TIMER.as_micros()) { self.next } else { now };
        self.next = from + one;
    }

    /// This one, from now on; `now` is the one that went on meanwhile.
    pub(super) fn resume(self, now: &UnitPace) -> UnitPace {
        UnitPace { found: self.found, ..*now }
    }

    /// Sets a limit that was not measured.
    pub(super) fn guess(&mut self, rate: PaceRate) {
        self.found = Some(FoundLimit { rate, weight: 0, is_sharp: false });
    }

    /// Sets a limit that the provider reported.
    pub(super) fn believe(&mut self, rate: PaceRate) {
        self.found = Some(FoundLimit { rate, weight: WEIGHT_MAX, is_sharp: false });
    }

    /// Takes a guess for measured, by so many calls.
    pub(super) fn trust(&mut self, rate: PaceRate, calls: u64) {
        self.found = Some(FoundLimit { rate, weight: calls.clamp(1, WEIGHT_MAX), is_sharp: false });
    }

    /// Takes over what `calls` calls measured. The limit lies below the `pace` that was too much.
    pub(super) fn learn(&mut self, measured: Measured, calls: u64, pace: PaceRate) -> News {
        let rate = measured.rate().min(pace).max(pace.scaled(1, 4));
        let resumed_at = self.found.map_or(rate, |found| found.rate.scaled(START_AT, 1_000));
        let by_few =
            self.found.filter(|found| found.weight > 0).map_or(0, |found| 1_000 / (found.weight + 1));
        if !measured.is_exact && resumed_at < rate.scaled(985 - by_few.min(300), 1_000) {
            // It was below the limit for a while, when the bucket may have been full: the limit lies between what was
            // measured and what was too much.
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

/// Whether two rates are the same as far as so few calls can tell.
fn is_close(old: PaceRate, new: PaceRate, calls: u64) -> bool {
    let slack = old.scaled(30 + 2_000 / (calls + 1), 1_000).millionths();
    old.millionths().abs_diff(new.millionths()) <= slack
}

//! What a provider says of its own limits, and what follows for now.

use tollgate::{Span, Tick};
use tollgate_provider::LimitReading;

use super::PaceRate;

/// How far apart two words must be to measure a rate from them.
const BASE_MIN: Span = Span::from_secs(2);

/// After this time a rate is measured from later words.
const BASE_MAX: Span = Span::from_secs(20);

/// How one limit stood when a call was answered, and how it is thought to stand since.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdvertisedLimit {
    word: LimitSample,
    /// An earlier word, from which the rate is measured.
    base: LimitSample,
    limit: u64,
    full_at: Option<Tick>,
    /// The longest time until it is full that was reported.
    longest: Span,
    rate: Option<PaceRate>,
    fills: Fills,
    /// Whether more passed than it said was left.
    is_false: bool,
}

/// How many calls more may pass: other words are under way.
const SLACK: u64 = 3;

#[derive(Clone, Copy, Debug)]
struct LimitSample {
    /// When the call started to which it was the answer.
    at: Tick,
    remaining: u64,
    /// What had started by then, that call included.
    started: u64,
}

/// How a limit fills up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fills {
    Unknown,
    Steadily,
    /// At the end of a window.
    AtOnce,
}

impl AdvertisedLimit {
    /// What a first word says, if it says enough.
    pub(super) fn first(
        meter: &LimitReading,
        at: Tick,
        started: u64,
        passed: bool,
    ) -> Option<AdvertisedLimit> {
        let (limit, remaining) = (meter.limit?, meter.remaining?);
        // Nothing passes where the limit is 0.
        let is_false = passed && limit == 0;
        let word = LimitSample { at, remaining: remaining.min(limit), started };
        let full_at = meter.reset.map(|reset| at + Span::covering(reset));
        let longest = full_at.map_or(Span::ZERO, |full| full.since(at));
        Some(AdvertisedLimit {
            word,
            base: word,
            limit,
            full_at,
            longest,
            rate: None,
            fills: Fills::Unknown,
            is_false,
        })
    }

    /// Hears another word; an older one than the last is no news.
    pub(super) fn hear(&mut self, meter: &LimitReading, at: Tick, started: u64, passed: bool) {
        let (Some(limit), Some(remaining)) = (meter.limit, meter.remaining) else { return };
        if at < self.word.at {
            return;
        }
        if passed {
            self.check(limit, at, started);
        }
        let word = LimitSample { at, remaining: remaining.min(limit), started };
        let same_window = self.full_at.is_none_or(|full| at < full);
        self.learn(word, same_window && limit == self.limit);
        (self.word, self.limit) = (word, limit);
        self.full_at = meter.reset.map(|reset| at + Span::covering(reset));
        self.longest = self.longest.max(self.full_at.map_or(Span::ZERO, |full| full.since(at)));
    }

    /// A call passed. If so many have that it cannot have been so little that was left, even if it fills up twice as fast as it
    /// says, nothing that it says is believed any more.
    fn check(&mut self, limit: u64, at: Tick, started: u64) {
        let used = started.saturating_sub(self.base.started);
        let rate = self.claimed().max(self.bound()).unwrap_or(PaceRate::MIN);
        let filled = rate.amount_in(at.since(self.base.at)).saturating_mul(2);
        let is_over = self.full_at.is_some_and(|full| at >= full);
        self.is_false |=
            limit == 0 || !is_over && used > self.base.remaining.saturating_add(filled).saturating_add(SLACK);
    }

    /// Whether what passes does not contradict it.
    pub(super) fn is_credible(&self) -> bool {
        self.limit > 0 && !self.is_false
    }

    fn learn(&mut self, word: LimitSample, same_window: bool) {
        let span = word.at.since(self.base.at);
        if !same_window || word.remaining == self.limit {
            self.base = word;
        } else if span >= BASE_MIN {
            let used = word.started.saturating_sub(self.base.started);
            let filled = word.remaining.saturating_add(used).saturating_sub(self.base.remaining);
            let due = self.claimed().map_or(1, |rate| rate.amount_in(span) / 2).max(1);
            if filled >= due {
                (self.fills, self.rate) = (Fills::Steadily, Some(PaceRate::of(filled, span)));
            } else if self.fills == Fills::Unknown {
                self.fills = Fills::AtOnce;
            }
            if span >= BASE_MAX {
                self.base = word;
            }
        }
    }

    /// The rate at which it says that it fills up.
    fn claimed(&self) -> Option<PaceRate> {
        let span = self.full_at?.since(self.word.at);
        let missing = self.limit.saturating_sub(self.word.remaining);
        (missing > 0 && span > Span::ZERO).then(|| PaceRate::of(missing, span))
    }

    /// The rate at which it fills up on average, as far as that is known.
    pub(super) fn rate(&self) -> Option<PaceRate> {
        match self.fills {
            Fills::Unknown => None,
            Fills::Steadily => self.rate,
            Fills::AtOnce => self.bound(),
        }
    }

    /// A rate that it cannot exceed. Whether it fills up steadily or at once, it is full after the longest time
    /// reported.
    pub(super) fn bound(&self) -> Option<PaceRate> {
        (self.longest > Span::ZERO).then(|| PaceRate::of(self.limit, self.longest))
    }

    /// How long it takes to fill up from nothing, as far as that is known.
    pub(super) fn lasts(&self) -> Span {
        self.claimed().map_or(Span::ZERO, |rate| rate.time_of(self.limit)).max(self.longest)
    }

    /// When there is room for `load`, if `started` has started so far.
    pub(super) fn ready(&self, now: Tick, started: u64, load: u64) -> Tick {
        // What asks for more than there can be is for the provider to judge.
        let load = load.min(self.limit);
        let wanted = load.saturating_add(started.saturating_sub(self.word.started));
        let missing = wanted.saturating_sub(self.word.remaining);
        if missing == 0 {
            return now;
        }
        let at_the_edge = self.full_at.unwrap_or(now);
        match (self.fills, self.rate.or_else(|| self.claimed())) {
            (Fills::AtOnce, _) | (_, None) => at_the_edge,
            (_, Some(rate)) => (self.word.at + rate.time_of(missing)).min(at_the_edge.max(now)),
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
        let told = AdvertisedLimit::first(&meter(0, 0), Tick::ZERO, 1, true).expect("it says enough");
        assert!(!told.is_credible());
    }

    #[test]
    fn a_remaining_count_that_never_moves_is_false_once_more_have_passed() {
        let mut told = AdvertisedLimit::first(&meter(60, 0), Tick::ZERO, 1, true).expect("it says enough");
        assert!(told.is_credible());
        for started in 2..10 {
            told.hear(&meter(60, 0), Tick::from_secs(1), started, true);
        }
        assert!(!told.is_credible());
    }

    #[test]
    fn what_is_left_after_each_call_is_believed() {
        let mut told = AdvertisedLimit::first(&meter(60, 59), Tick::ZERO, 1, true).expect("it says enough");
        for started in 2..50 {
            told.hear(&meter(60, 60 - started), Tick::from_secs(started / 10), started, true);
        }
        assert!(told.is_credible());
    }
}

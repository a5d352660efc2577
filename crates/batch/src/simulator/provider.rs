//! A provider that is not there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use tollgate::{Span, Tick};
use tollgate_provider::{Hint, LimitReading, LimitUnit, Tokens};

use crate::random::JitterRandom;

/// Credit is counted in this part of a unit.
const PART: u128 = 1_000_000;

/// Microseconds in a minute.
const MINUTE: u64 = 60_000_000;

/// How a provider enforces one limit.
#[derive(Clone, Copy, Debug)]
pub enum SimLimit {
    /// A bucket: so much a second, and so much at once.
    Bucket {
        /// How much a second.
        rate: u64,
        /// How much at once.
        burst: u64,
    },
    /// So much in each window of the clock.
    Window {
        /// How much.
        amount: u64,
        /// How long a window is.
        span: Span,
    },
    /// So much in any stretch of this length.
    Sliding {
        /// How much.
        amount: u64,
        /// How long a stretch is.
        span: Span,
    },
}

/// Calls that are refused by chance, whatever the limits say.
#[derive(Clone, Copy, Debug)]
pub struct SimNoise {
    /// How many of a thousand calls.
    pub of_thousand: u64,
    /// Whether it says that it has too much to do, not that a limit was met.
    pub overloaded: bool,
    /// How long it says to wait.
    pub advice: Option<Duration>,
}

/// What headers say that is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// That the limit is 0.
    LimitZero,
    /// That nothing is left, for a minute.
    NothingLeft,
}

/// What a provider says beside yes and no.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manners {
    /// Whether replies tell how the limits stand.
    pub headers: bool,
    /// Whether a refusal tells how long to wait.
    pub retry_after: RetryAfter,
    /// Whether headers tell a limit over a minute that is enforced in shorter windows.
    pub minutes: bool,
}

/// How a refusal tells how long to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryAfter {
    /// Not at all.
    #[default]
    None,
    /// To the microsecond.
    Exact,
    /// In whole seconds, rounded up.
    Seconds,
}

/// A limit and how it stands.
#[derive(Clone, Debug)]
struct SimBucket {
    limit: SimLimit,
    /// In parts of a unit.
    credit: u128,
    at: Tick,
    /// What was taken in this minute of the clock.
    in_minute: u64,
    /// What was taken when, of a sliding window.
    taken: VecDeque<(Tick, u64)>,
}

/// A provider: limits on calls and on tokens, and a latency.
#[derive(Clone, Debug)]
pub struct SimProvider {
    calls: Option<SimBucket>,
    tokens: Option<SimBucket>,
    /// From when on the limits are how many times what they were, of a thousand.
    changes: Vec<(Tick, u64)>,
    noise: Option<SimNoise>,
    lie: Option<Lie>,
    /// How many calls may be under way, and when those that are end.
    at_once: Option<usize>,
    under_way: BinaryHeap<Reverse<Tick>>,
    /// Whether a few answers take much longer than the others.
    is_heavy: bool,
    /// From when to when it refuses everything.
    away: Option<(Tick, Tick)>,
    manners: Manners,
    latency: Span,
    /// How much longer an answer takes at most, by chance.
    spread: Span,
    refusal_latency: Span,
    random: JitterRandom,
    /// What it saw.
    pub seen: ProviderStats,
}

/// What a provider saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProviderStats {
    /// Calls.
    pub calls: u64,
    /// Those it refused.
    pub refused: u64,
}

impl SimBucket {
    fn new(limit: SimLimit) -> SimBucket {
        let credit = match limit {
            SimLimit::Bucket { burst, .. } => u128::from(burst),
            SimLimit::Window { amount, .. } | SimLimit::Sliding { amount, .. } => u128::from(amount),
        };
        SimBucket { limit, credit: credit * PART, at: Tick::ZERO, in_minute: 0, taken: VecDeque::new() }
    }

    fn fill(&mut self, now: Tick, scale: u64) {
        let scale = u128::from(scale);
        match self.limit {
            SimLimit::Bucket { rate, burst } => {
                let micros = u128::from(now.since(self.at).as_micros());
                let more = micros * u128::from(rate) * PART / 1_000_000 * scale / 1_000;
                self.credit = (self.credit + more).min(u128::from(burst) * PART);
            }
            SimLimit::Window { amount, span } => {
                let window = |tick: Tick| tick.as_micros() / span.as_micros().max(1);
                if window(now) > window(self.at) {
                    self.credit = u128::from(amount) * PART * scale / 1_000;
                }
            }
            SimLimit::Sliding { span, .. } => {
                while let Some((at, amount)) = self.taken.front().copied() {
                    if now.since(at) < span {
                        break;
                    }
                    self.taken.pop_front();
                    self.credit += u128::from(amount) * PART;
                }
            }
        }
        if now.as_micros() / MINUTE > self.at.as_micros() / MINUTE {
            self.in_minute = 0;
        }
        self.at = now;
    }

    /// How long until `amount` fits.
    fn wait(&self, amount: u64, scale: u64) -> Span {
        let missing = (u128::from(amount) * PART).saturating_sub(self.credit);
        if missing == 0 {
            return Span::ZERO;
        }
        match self.limit {
            SimLimit::Bucket { rate, .. } => {
                let rate = u128::from(rate).max(1);
                let micros = (missing.div_ceil(rate) * 1_000).div_ceil(u128::from(scale.max(1)));
                Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
            }
            SimLimit::Window { span, .. } => {
                let into = self.at.as_micros() % span.as_micros().max(1);
                Span::from_micros(span.as_micros() - into)
            }
            SimLimit::Sliding { span, .. } => {
                let mut freed = 0;
                for (at, amount) in &self.taken {
                    freed += u128::from(*amount) * PART;
                    if freed >= missing {
                        return (*at + span).since(self.at);
                    }
                }
                span
            }
        }
    }

    fn take(&mut self, now: Tick, amount: u64) {
        self.credit -= u128::from(amount) * PART;
        self.in_minute += amount;
        if let SimLimit::Sliding { .. } = self.limit {
            self.taken.push_back((now, amount));
        }
    }

    fn meter(&self, unit: LimitUnit, minutes: bool) -> LimitReading {
        let remaining = u64::try_from(self.credit / PART).unwrap_or(u64::MAX);
        let meter = LimitReading::new(unit);
        match self.limit {
            SimLimit::Bucket { burst, .. } => meter
                .with_limit(burst)
                .with_remaining(remaining)
                .with_reset(self.wait(burst, 1_000).to_duration()),
            SimLimit::Sliding { amount, .. } => meter
                .with_limit(amount)
                .with_remaining(remaining)
                .with_reset(self.wait(amount, 1_000).to_duration()),
            SimLimit::Window { amount, span } if minutes => {
                let limit = amount * MINUTE / span.as_micros().max(1);
                let reset = MINUTE - self.at.as_micros() % MINUTE;
                let meter = meter.with_limit(limit).with_remaining(limit.saturating_sub(self.in_minute));
                meter.with_reset(Duration::from_micros(reset))
            }
            SimLimit::Window { amount, span } => {
                let reset = span.as_micros() - self.at.as_micros() % span.as_micros().max(1);
                let meter = meter.with_limit(amount).with_remaining(remaining);
                meter.with_reset(Duration::from_micros(reset))
            }
        }
    }
}

impl SimProvider {
    /// A provider with a limit on calls, this latency, and no manners.
    pub fn of_calls(limit: SimLimit, latency: Span) -> SimProvider {
        SimProvider::new(Some(limit), None, latency)
    }

    /// A provider with a limit on tokens.
    pub fn of_tokens(limit: SimLimit, latency: Span) -> SimProvider {
        SimProvider::new(None, Some(limit), latency)
    }

    fn new(calls: Option<SimLimit>, tokens: Option<SimLimit>, latency: Span) -> SimProvider {
        SimProvider {
            calls: calls.map(SimBucket::new),
            tokens: tokens.map(SimBucket::new),
            changes: Vec::new(),
            noise: None,
            lie: None,
            at_once: None,
            under_way: BinaryHeap::new(),
            is_heavy: false,
            away: None,
            manners: Manners::default(),
            latency,
            spread: Span::ZERO,
            refusal_latency: latency,
            random: JitterRandom::new(1),
            seen: ProviderStats::default(),
        }
    }

    /// The same with manners.
    #[must_use]
    pub fn manners(self, manners: Manners) -> SimProvider {
        SimProvider { manners, ..self }
    }

    /// The same, whose limits halve at a time.
    #[must_use]
    pub fn halves_at(self, at: Tick) -> SimProvider {
        self.changes_at(at, 500)
    }

    /// The same, whose limits are so many times what they were from a time on, of a thousand.
    #[must_use]
    pub fn changes_at(mut self, at: Tick, of_thousand: u64) -> SimProvider {
        self.changes.push((at, of_thousand));
        self
    }

    /// A provider without any limit.
    pub fn free(latency: Span) -> SimProvider {
        SimProvider::new(None, None, latency)
    }

    /// The same with a limit on tokens, too.
    #[must_use]
    pub fn and_tokens(self, limit: SimLimit) -> SimProvider {
        SimProvider { tokens: Some(SimBucket::new(limit)), ..self }
    }

    /// The same, which refuses some calls by chance.
    #[must_use]
    pub fn noise(self, noise: SimNoise, seed: u64) -> SimProvider {
        SimProvider { noise: Some(noise), random: JitterRandom::new(seed), ..self }
    }

    /// The same, whose headers lie.
    #[must_use]
    pub fn lies(self, lie: Lie) -> SimProvider {
        SimProvider { lie: Some(lie), ..self }
    }

    /// The same, which refuses calls while so many are under way.
    #[must_use]
    pub fn at_once(self, most: usize) -> SimProvider {
        SimProvider { at_once: Some(most), ..self }
    }

    /// The same, of whose answers a tenth takes five times as long and a hundredth thirty times.
    #[must_use]
    pub fn heavy(self, seed: u64) -> SimProvider {
        SimProvider { is_heavy: true, random: JitterRandom::new(seed), ..self }
    }

    /// The same, which refuses everything for a while.
    #[must_use]
    pub fn away(self, from: Tick, to: Tick) -> SimProvider {
        SimProvider { away: Some((from, to)), ..self }
    }

    /// The same, of which another client has taken all but `amount`.
    #[must_use]
    pub fn left(self, amount: u64) -> SimProvider {
        let taken =
            |bucket: SimBucket| SimBucket { credit: bucket.credit.min(u128::from(amount) * PART), ..bucket };
        SimProvider { calls: self.calls.map(taken), tokens: self.tokens.map(taken), ..self }
    }

    /// The same, whose answers take up to so much longer, by chance.
    #[must_use]
    pub fn slower_by(self, spread: Span) -> SimProvider {
        SimProvider { spread, ..self }
    }

    /// The same, which refuses faster than it answers.
    #[must_use]
    pub fn refuses_within(self, refusal_latency: Span) -> SimProvider {
        SimProvider { refusal_latency, ..self }
    }

    /// Answers a call that comes now: what it says, and how long that takes.
    pub fn call(&mut self, now: Tick, tokens: u64) -> (Hint, Span) {
        let scale = self.changes.iter().rev().find(|(at, _)| now >= *at).map_or(1_000, |(_, scale)| *scale);
        self.seen.calls += 1;
        if let Some(noise) = self.noise.filter(|noise| self.random.next() % 1_000 < noise.of_thousand) {
            self.seen.refused += 1;
            let hint =
                if noise.overloaded { Hint::overloaded(noise.advice) } else { Hint::throttled(noise.advice) };
            return (self.with_meters(hint), self.refusal_latency);
        }
        let mut wait = Span::ZERO;
        for (bucket, amount) in [(&mut self.calls, 1), (&mut self.tokens, tokens)] {
            if let Some(bucket) = bucket {
                bucket.fill(now, scale);
                wait = wait.max(bucket.wait(amount, scale));
            }
        }
        while self.under_way.peek().is_some_and(|Reverse(end)| *end <= now) {
            self.under_way.pop();
        }
        let is_away = self.away.is_some_and(|(from, to)| now >= from && now < to);
        if is_away || self.at_once.is_some_and(|most| self.under_way.len() >= most) {
            wait = wait.max(Span::from_micros(1));
        }
        if wait > Span::ZERO {
            self.seen.refused += 1;
            let advice = match self.manners.retry_after {
                RetryAfter::None => None,
                RetryAfter::Exact => Some(wait.to_duration()),
                RetryAfter::Seconds => Some(Duration::from_secs(wait.as_micros().div_ceil(1_000_000))),
            };
            return (self.with_meters(Hint::throttled(advice)), self.refusal_latency);
        }
        for (bucket, amount) in [(&mut self.calls, 1), (&mut self.tokens, tokens)] {
            bucket.iter_mut().for_each(|bucket| bucket.take(now, amount));
        }
        let more = self.random.next() % self.spread.as_micros().saturating_add(1).max(1);
        let factor = match self.random.next() % 100 {
            _ if !self.is_heavy => 1,
            0 => 30,
            1..10 => 5,
            _ => 1,
        };
        let latency = Span::from_micros((self.latency.as_micros() + more) * factor);
        if self.at_once.is_some() {
            self.under_way.push(Reverse(now + latency));
        }
        (self.with_meters(Hint::ok().with_usage(Tokens::new(tokens, 0))), latency)
    }

    fn with_meters(&self, hint: Hint) -> Hint {
        if let Some(lie) = self.lie {
            let limit = if lie == Lie::LimitZero { 0 } else { 1_000 };
            let meter = LimitReading::new(LimitUnit::Requests).with_limit(limit).with_remaining(0);
            return hint.with_meter(meter.with_reset(Duration::from_secs(60)));
        }
        if !self.manners.headers {
            return hint;
        }
        let meters = [(LimitUnit::Requests, &self.calls), (LimitUnit::Tokens, &self.tokens)];
        meters.into_iter().fold(hint, |hint, (unit, bucket)| match bucket {
            Some(bucket) => hint.with_meter(bucket.meter(unit, self.manners.minutes)),
            None => hint,
        })
    }
}

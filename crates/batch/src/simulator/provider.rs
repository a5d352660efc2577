//! A simulated provider.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use tollgate::{Span, Tick};
use tollgate_provider::{Hint, LimitReading, LimitUnit, Tokens};

use tollgate_store::SplitMix64;

/// Credit is counted in this fraction of a unit.
const PART: u128 = 1_000_000;

/// Microseconds in a minute.
const MINUTE: u64 = 60_000_000;

/// How a provider enforces one limit.
#[derive(Clone, Copy, Debug)]
pub enum SimLimit {
    /// A token bucket.
    Bucket {
        /// The refill per second.
        rate: u64,
        /// The capacity.
        burst: u64,
    },
    /// A fixed window of the clock.
    Window {
        /// The amount per window.
        amount: u64,
        /// The length of a window.
        span: Span,
    },
    /// A sliding window.
    Sliding {
        /// The amount in any span of this length.
        amount: u64,
        /// The length of the window.
        span: Span,
    },
}

/// Calls that are refused at random, independent of the limits.
#[derive(Clone, Copy, Debug)]
pub struct SimNoise {
    /// How many of a thousand calls.
    pub of_thousand: u64,
    /// True to refuse as an overloaded provider, false as one whose limit was met.
    pub overloaded: bool,
    /// The advised wait.
    pub advice: Option<Duration>,
}

/// False headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FalseHeaders {
    /// The limit is 0.
    LimitZero,
    /// Nothing is left, for a minute.
    NothingLeft,
}

/// What replies disclose about the limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disclosure {
    /// True if replies have headers with the limits.
    pub headers: bool,
    /// How a refusal advises a wait.
    pub retry_after: RetryAfter,
    /// True if headers advertise a limit per minute that is enforced in shorter windows.
    pub minutes: bool,
}

/// How a refusal advises a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryAfter {
    /// It does not.
    #[default]
    None,
    /// To the microsecond.
    Exact,
    /// In whole seconds, rounded up.
    Seconds,
}

/// A limit and its state.
#[derive(Clone, Debug)]
struct SimBucket {
    limit: SimLimit,
    /// In fractions of a unit.
    credit: u128,
    at: Tick,
    /// The amount that was taken in this minute of the clock.
    in_minute: u64,
    /// What was taken when, of a sliding window.
    taken: VecDeque<(Tick, u64)>,
}

/// A simulated provider with limits on calls and on tokens, and a latency.
#[derive(Clone, Debug)]
pub struct SimProvider {
    calls: Option<SimBucket>,
    tokens: Option<SimBucket>,
    /// The times at which the limits change, and their new size in thousandths.
    changes: Vec<(Tick, u64)>,
    noise: Option<SimNoise>,
    false_headers: Option<FalseHeaders>,
    /// How many calls may be in flight, and when those in flight end.
    at_once: Option<usize>,
    in_flight: BinaryHeap<Reverse<Tick>>,
    /// True if a few replies take much longer than the others.
    is_heavy: bool,
    /// The time in which the provider refuses every call.
    outage: Option<(Tick, Tick)>,
    disclosure: Disclosure,
    latency: Span,
    /// How much longer a reply takes at most, at random.
    spread: Span,
    refusal_latency: Span,
    /// How long a call is on its way at most, at random: calls arrive in another order than they were started in.
    way: Span,
    random: SplitMix64,
    /// What the provider counted.
    pub stats: ProviderStats,
}

/// The counters of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProviderStats {
    /// Calls that arrived.
    pub calls: u64,
    /// Calls that it refused.
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

    /// Returns how long it takes until `amount` fits.
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
    /// Returns a provider with a limit on calls and this latency, which discloses nothing.
    pub fn of_calls(limit: SimLimit, latency: Span) -> SimProvider {
        SimProvider::new(Some(limit), None, latency)
    }

    /// Returns a provider with a limit on tokens.
    pub fn of_tokens(limit: SimLimit, latency: Span) -> SimProvider {
        SimProvider::new(None, Some(limit), latency)
    }

    fn new(calls: Option<SimLimit>, tokens: Option<SimLimit>, latency: Span) -> SimProvider {
        SimProvider {
            calls: calls.map(SimBucket::new),
            tokens: tokens.map(SimBucket::new),
            changes: Vec::new(),
            noise: None,
            false_headers: None,
            at_once: None,
            in_flight: BinaryHeap::new(),
            is_heavy: false,
            outage: None,
            disclosure: Disclosure::default(),
            latency,
            spread: Span::ZERO,
            refusal_latency: latency,
            way: Span::ZERO,
            random: SplitMix64::new(1),
            stats: ProviderStats::default(),
        }
    }

    /// Sets what replies disclose.
    #[must_use]
    pub fn discloses(self, disclosure: Disclosure) -> SimProvider {
        SimProvider { disclosure, ..self }
    }

    /// Halves the limits at a time.
    #[must_use]
    pub fn halves_at(self, at: Tick) -> SimProvider {
        self.changes_at(at, 500)
    }

    /// Changes the limits at a time to this many thousandths of the original ones.
    #[must_use]
    pub fn changes_at(mut self, at: Tick, of_thousand: u64) -> SimProvider {
        self.changes.push((at, of_thousand));
        self
    }

    /// Returns a provider without any limit.
    pub fn unlimited(latency: Span) -> SimProvider {
        SimProvider::new(None, None, latency)
    }

    /// Adds a limit on tokens.
    #[must_use]
    pub fn and_tokens(self, limit: SimLimit) -> SimProvider {
        SimProvider { tokens: Some(SimBucket::new(limit)), ..self }
    }

    /// Refuses some calls at random.
    #[must_use]
    pub fn noise(self, noise: SimNoise, seed: u64) -> SimProvider {
        SimProvider { noise: Some(noise), random: SplitMix64::new(seed), ..self }
    }

    /// Sets the seed of what is random.
    #[must_use]
    pub fn seed(self, seed: u64) -> SimProvider {
        SimProvider { random: SplitMix64::new(seed), ..self }
    }

    /// Sends false headers.
    #[must_use]
    pub fn false_headers(self, headers: FalseHeaders) -> SimProvider {
        SimProvider { false_headers: Some(headers), ..self }
    }

    /// Refuses calls while `most` are in flight.
    #[must_use]
    pub fn at_once(self, most: usize) -> SimProvider {
        SimProvider { at_once: Some(most), ..self }
    }

    /// Lets a tenth of the replies take five times as long, and a hundredth thirty times.
    #[must_use]
    pub fn heavy(self, seed: u64) -> SimProvider {
        SimProvider { is_heavy: true, random: SplitMix64::new(seed), ..self }
    }

    /// Refuses every call for a while.
    #[must_use]
    pub fn outage(self, from: Tick, to: Tick) -> SimProvider {
        SimProvider { outage: Some((from, to)), ..self }
    }

    /// Leaves only `amount` of the limits: another client has taken the rest.
    #[must_use]
    pub fn left(self, amount: u64) -> SimProvider {
        let taken =
            |bucket: SimBucket| SimBucket { credit: bucket.credit.min(u128::from(amount) * PART), ..bucket };
        SimProvider { calls: self.calls.map(taken), tokens: self.tokens.map(taken), ..self }
    }

    /// Lets replies take up to `spread` longer, at random.
    #[must_use]
    pub fn slower_by(self, spread: Span) -> SimProvider {
        SimProvider { spread, ..self }
    }

    /// Lets calls be up to `way` on their way, at random, so that they arrive in another order.
    #[must_use]
    pub fn arrives_within(self, way: Span) -> SimProvider {
        SimProvider { way, ..self }
    }

    /// Returns how long the next call is on its way.
    pub(super) fn delay(&mut self) -> Span {
        match self.way.as_micros() {
            0 => Span::ZERO,
            most => Span::from_micros(self.random.next_u64() % most.saturating_add(1)),
        }
    }

    /// Sets the latency of refusals.
    #[must_use]
    pub fn refuses_within(self, refusal_latency: Span) -> SimProvider {
        SimProvider { refusal_latency, ..self }
    }

    /// Handles a call that arrives now. Returns the reply and its latency.
    pub fn call(&mut self, now: Tick, tokens: u64) -> (Hint, Span) {
        let scale = self.changes.iter().rev().find(|(at, _)| now >= *at).map_or(1_000, |(_, scale)| *scale);
        self.stats.calls += 1;
        if let Some(noise) = self.noise.filter(|noise| self.random.next_u64() % 1_000 < noise.of_thousand) {
            self.stats.refused += 1;
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
        while self.in_flight.peek().is_some_and(|Reverse(end)| *end <= now) {
            self.in_flight.pop();
        }
        let is_out = self.outage.is_some_and(|(from, to)| now >= from && now < to);
        if is_out || self.at_once.is_some_and(|most| self.in_flight.len() >= most) {
            wait = wait.max(Span::from_micros(1));
        }
        if wait > Span::ZERO {
            self.stats.refused += 1;
            let advice = match self.disclosure.retry_after {
                RetryAfter::None => None,
                RetryAfter::Exact => Some(wait.to_duration()),
                RetryAfter::Seconds => Some(Duration::from_secs(wait.as_micros().div_ceil(1_000_000))),
            };
            return (self.with_meters(Hint::throttled(advice)), self.refusal_latency);
        }
        for (bucket, amount) in [(&mut self.calls, 1), (&mut self.tokens, tokens)] {
            bucket.iter_mut().for_each(|bucket| bucket.take(now, amount));
        }
        let more = self.random.next_u64() % self.spread.as_micros().saturating_add(1).max(1);
        let factor = match self.random.next_u64() % 100 {
            _ if !self.is_heavy => 1,
            0 => 30,
            1..10 => 5,
            _ => 1,
        };
        let latency = Span::from_micros((self.latency.as_micros() + more) * factor);
        if self.at_once.is_some() {
            self.in_flight.push(Reverse(now + latency));
        }
        (self.with_meters(Hint::ok().with_usage(Tokens::new(tokens, 0))), latency)
    }

    fn with_meters(&self, hint: Hint) -> Hint {
        if let Some(false_headers) = self.false_headers {
            let limit = if false_headers == FalseHeaders::LimitZero { 0 } else { 1_000 };
            let meter = LimitReading::new(LimitUnit::Requests).with_limit(limit).with_remaining(0);
            return hint.with_meter(meter.with_reset(Duration::from_secs(60)));
        }
        if !self.disclosure.headers {
            return hint;
        }
        let meters = [(LimitUnit::Requests, &self.calls), (LimitUnit::Tokens, &self.tokens)];
        meters.into_iter().fold(hint, |hint, (unit, bucket)| match bucket {
            Some(bucket) => hint.with_meter(bucket.meter(unit, self.disclosure.minutes)),
            None => hint,
        })
    }
}

//! A provider that is not there.

use std::time::Duration;

use tollgate::{Span, Tick};
use tollgate_provider::{Hint, Meter, Tokens, Unit};

use crate::random::Random;

/// Credit is counted in this part of a unit.
const PART: u128 = 1_000_000;

/// Microseconds in a minute.
const MINUTE: u64 = 60_000_000;

/// How a provider enforces one limit.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
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
#[derive(Clone, Copy, Debug)]
struct Bucket {
    limit: Limit,
    /// In parts of a unit.
    credit: u128,
    at: Tick,
    /// What was taken in this minute of the clock.
    in_minute: u64,
}

/// A provider: limits on calls and on tokens, and a latency.
#[derive(Clone, Debug)]
pub struct Provider {
    calls: Option<Bucket>,
    tokens: Option<Bucket>,
    /// From when on the limits are half of what they were.
    halves_at: Option<Tick>,
    /// From when to when it refuses everything.
    away: Option<(Tick, Tick)>,
    manners: Manners,
    latency: Span,
    /// How much longer an answer takes at most, by chance.
    spread: Span,
    refusal_latency: Span,
    random: Random,
    /// What it saw.
    pub seen: Seen,
}

/// What a provider saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Calls.
    pub calls: u64,
    /// Those it refused.
    pub refused: u64,
}

impl Bucket {
    fn new(limit: Limit) -> Bucket {
        let credit = match limit {
            Limit::Bucket { burst, .. } => u128::from(burst),
            Limit::Window { amount, .. } => u128::from(amount),
        };
        Bucket { limit, credit: credit * PART, at: Tick::ZERO, in_minute: 0 }
    }

    fn fill(&mut self, now: Tick, halves_at: Option<Tick>) {
        let half = halves_at.is_some_and(|at| now >= at);
        let scale = if half { 2 } else { 1 };
        match self.limit {
            Limit::Bucket { rate, burst } => {
                let micros = u128::from(now.since(self.at).as_micros());
                let more = micros * u128::from(rate) * PART / 1_000_000 / scale;
                self.credit = (self.credit + more).min(u128::from(burst) * PART);
            }
            Limit::Window { amount, span } => {
                let window = |tick: Tick| tick.as_micros() / span.as_micros().max(1);
                if window(now) > window(self.at) {
                    self.credit = u128::from(amount) * PART / scale;
                }
            }
        }
        if now.as_micros() / MINUTE > self.at.as_micros() / MINUTE {
            self.in_minute = 0;
        }
        self.at = now;
    }

    /// How long until `amount` fits.
    fn wait(&self, amount: u64, half: bool) -> Span {
        let missing = (u128::from(amount) * PART).saturating_sub(self.credit);
        if missing == 0 {
            return Span::ZERO;
        }
        match self.limit {
            Limit::Bucket { rate, .. } => {
                let rate = u128::from(rate).max(1);
                let micros = missing.div_ceil(rate) * if half { 2 } else { 1 };
                Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
            }
            Limit::Window { span, .. } => {
                let into = self.at.as_micros() % span.as_micros().max(1);
                Span::from_micros(span.as_micros() - into)
            }
        }
    }

    fn meter(&self, unit: Unit, minutes: bool) -> Meter {
        let remaining = u64::try_from(self.credit / PART).unwrap_or(u64::MAX);
        let meter = Meter::new(unit);
        match self.limit {
            Limit::Bucket { burst, .. } => meter
                .with_limit(burst)
                .with_remaining(remaining)
                .with_reset(self.wait(burst, false).to_duration()),
            Limit::Window { amount, span } if minutes => {
                let limit = amount * MINUTE / span.as_micros().max(1);
                let reset = MINUTE - self.at.as_micros() % MINUTE;
                let meter = meter.with_limit(limit).with_remaining(limit.saturating_sub(self.in_minute));
                meter.with_reset(Duration::from_micros(reset))
            }
            Limit::Window { amount, span } => {
                let reset = span.as_micros() - self.at.as_micros() % span.as_micros().max(1);
                let meter = meter.with_limit(amount).with_remaining(remaining);
                meter.with_reset(Duration::from_micros(reset))
            }
        }
    }
}

impl Provider {
    /// A provider with a limit on calls, this latency, and no manners.
    pub fn of_calls(limit: Limit, latency: Span) -> Provider {
        Provider::new(Some(limit), None, latency)
    }

    /// A provider with a limit on tokens.
    pub fn of_tokens(limit: Limit, latency: Span) -> Provider {
        Provider::new(None, Some(limit), latency)
    }

    fn new(calls: Option<Limit>, tokens: Option<Limit>, latency: Span) -> Provider {
        Provider {
            calls: calls.map(Bucket::new),
            tokens: tokens.map(Bucket::new),
            halves_at: None,
            away: None,
            manners: Manners::default(),
            latency,
            spread: Span::ZERO,
            refusal_latency: latency,
            random: Random::new(1),
            seen: Seen::default(),
        }
    }

    /// The same with manners.
    #[must_use]
    pub fn manners(self, manners: Manners) -> Provider {
        Provider { manners, ..self }
    }

    /// The same, whose limits halve at a time.
    #[must_use]
    pub fn halves_at(self, at: Tick) -> Provider {
        Provider { halves_at: Some(at), ..self }
    }

    /// The same, which refuses everything for a while.
    #[must_use]
    pub fn away(self, from: Tick, to: Tick) -> Provider {
        Provider { away: Some((from, to)), ..self }
    }

    /// The same, of which somebody else has taken all but `amount`.
    #[must_use]
    pub fn left(self, amount: u64) -> Provider {
        let taken =
            |bucket: Bucket| Bucket { credit: bucket.credit.min(u128::from(amount) * PART), ..bucket };
        Provider { calls: self.calls.map(taken), tokens: self.tokens.map(taken), ..self }
    }

    /// The same, whose answers take up to so much longer, by chance.
    #[must_use]
    pub fn slower_by(self, spread: Span) -> Provider {
        Provider { spread, ..self }
    }

    /// The same, which refuses faster than it answers.
    #[must_use]
    pub fn refuses_within(self, refusal_latency: Span) -> Provider {
        Provider { refusal_latency, ..self }
    }

    /// Answers a call that comes now: what it says, and how long that takes.
    pub fn call(&mut self, now: Tick, tokens: u64) -> (Hint, Span) {
        let halves = self.halves_at;
        let half = halves.is_some_and(|at| now >= at);
        let mut wait = Span::ZERO;
        for (bucket, amount) in [(&mut self.calls, 1), (&mut self.tokens, tokens)] {
            if let Some(bucket) = bucket {
                bucket.fill(now, halves);
                wait = wait.max(bucket.wait(amount, half));
            }
        }
        if self.away.is_some_and(|(from, to)| now >= from && now < to) {
            wait = wait.max(Span::from_micros(1));
        }
        self.seen.calls += 1;
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
            if let Some(bucket) = bucket {
                bucket.credit -= u128::from(amount) * PART;
                bucket.in_minute += amount;
            }
        }
        let more = self.random.next() % self.spread.as_micros().saturating_add(1).max(1);
        (
            self.with_meters(Hint::ok().with_usage(Tokens::new(tokens, 0))),
            Span::from_micros(self.latency.as_micros() + more),
        )
    }

    fn with_meters(&self, hint: Hint) -> Hint {
        if !self.manners.headers {
            return hint;
        }
        let meters = [(Unit::Requests, &self.calls), (Unit::Tokens, &self.tokens)];
        meters.into_iter().fold(hint, |hint, (unit, bucket)| match bucket {
            Some(bucket) => hint.with_meter(bucket.meter(unit, self.manners.minutes)),
            None => hint,
        })
    }
}

//! What a provider said, in our words.

use std::time::{Duration, SystemTime};

/// How many characters of a provider's own words are kept.
pub const REASON_MAX: usize = 300;

/// The longest wait that is believed. What says more than that is a mistake, and counts as not said.
pub const WAIT_MAX: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// What a provider said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// Whether the call was answered, and if not, what to do about it.
    pub class: Class,
    /// How long it asks to wait, if it does.
    pub advice: Option<Duration>,
    /// What it said of its limits. Several may be of one unit: a project's tokens beside an account's.
    pub meters: Vec<LimitReading>,
    /// What the call used, if the body says so.
    pub usage: Option<Tokens>,
    /// Why, in the provider's own words, cut to [`REASON_MAX`] characters and free of secrets.
    pub reason: Option<String>,
}

impl Hint {
    /// Nothing but a class.
    #[must_use]
    pub fn of(class: Class) -> Self {
        Self { class, advice: None, meters: Vec::new(), usage: None, reason: None }
    }

    /// The call was answered.
    #[must_use]
    pub fn ok() -> Self {
        Self::of(Class::Ok)
    }

    /// Not now; with how long to wait, if that was said.
    #[must_use]
    pub fn throttled(advice: Option<Duration>) -> Self {
        Self { advice, ..Self::of(Class::Throttled) }
    }

    /// Nothing is left; with when there will be, if that is known.
    #[must_use]
    pub fn exhausted(until: Option<Until>) -> Self {
        Self::of(Class::Exhausted { until })
    }

    /// The provider has too much to do.
    #[must_use]
    pub fn overloaded(advice: Option<Duration>) -> Self {
        Self { advice, ..Self::of(Class::Overloaded) }
    }

    /// Something failed that may not fail again.
    #[must_use]
    pub fn transient() -> Self {
        Self::of(Class::Transient)
    }

    /// Something that fails however often it is tried.
    #[must_use]
    pub fn fatal(kind: FatalKind) -> Self {
        Self::of(Class::Fatal(kind))
    }

    /// The same with what the call used.
    #[must_use]
    pub fn with_usage(self, usage: Tokens) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// The same with how one of the limits stands.
    #[must_use]
    pub fn with_meter(mut self, meter: LimitReading) -> Self {
        self.meters.push(meter);
        self
    }

    /// The same with a reason.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}

/// What became of a call, by what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// It was answered.
    Ok,
    /// Not now: all callers that share the account should wait.
    Throttled,
    /// A spend cap, a quota, a daily limit: no call of the account will go through before `until`.
    Exhausted {
        /// When there will be something again, if that is known.
        until: Option<Until>,
    },
    /// The provider has too much to do, for whomever.
    Overloaded,
    /// Something failed that may not fail again.
    Transient,
    /// It fails however often it is tried.
    Fatal(FatalKind),
}

impl Class {
    /// Whether the same call may go through later.
    #[must_use]
    pub fn may_retry(self) -> bool {
        matches!(self, Self::Throttled | Self::Overloaded | Self::Transient)
    }
}

/// What is wrong with a call that will never go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FatalKind {
    /// The key: no call with it will go through.
    Auth,
    /// The request: others may.
    Request,
    /// The request asks for more than a limit, or a model, can ever give.
    TooLarge,
}

/// When something that is exhausted is there again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Until(SystemTime);

impl Until {
    /// At a time of the calendar.
    #[must_use]
    pub fn at(time: SystemTime) -> Self {
        Self(time)
    }

    /// That time.
    #[must_use]
    pub fn time(self) -> SystemTime {
        self.0
    }

    /// How long that is from `now`; nothing if it is over.
    #[must_use]
    pub fn wait(self, now: SystemTime) -> Duration {
        self.0.duration_since(now).unwrap_or_default()
    }
}

/// How one of the provider's limits stands, as far as it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LimitReading {
    /// What it counts.
    pub unit: LimitUnit,
    /// How much there is when it is full.
    pub limit: Option<u64>,
    /// How much is left. Some round it.
    pub remaining: Option<u64>,
    /// How long until it is full again.
    pub reset: Option<Duration>,
}

impl LimitReading {
    /// A meter of which nothing is known yet.
    #[must_use]
    pub fn new(unit: LimitUnit) -> Self {
        Self { unit, limit: None, remaining: None, reset: None }
    }

    /// The same with how much there is when it is full.
    #[must_use]
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The same with how much is left.
    #[must_use]
    pub fn with_remaining(self, remaining: u64) -> Self {
        Self { remaining: Some(remaining), ..self }
    }

    /// The same with how long it takes until it is full again.
    #[must_use]
    pub fn with_reset(self, reset: Duration) -> Self {
        Self { reset: Some(reset), ..self }
    }

    pub(crate) fn says_something(&self) -> bool {
        self.limit.is_some() || self.remaining.is_some() || self.reset.is_some()
    }
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LimitUnit {
    /// Calls.
    Requests,
    /// Tokens in both directions.
    Tokens,
    /// Tokens of requests.
    InputTokens,
    /// Tokens of replies.
    OutputTokens,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Tokens {
    /// Of the request, as far as they count against a limit.
    pub input: u64,
    /// Of the reply, with what the model thought.
    pub output: u64,
    /// Both; more than both if the provider says so.
    pub total: u64,
}

impl Tokens {
    /// These, and their sum.
    #[must_use]
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, total: input.saturating_add(output) }
    }
}

//! Hints: the meaning of a provider's reply, in provider-independent terms.

use std::time::{Duration, SystemTime};

/// The maximum length of a reason, in characters.
pub const REASON_MAX: usize = 300;

/// The maximum wait. A longer one is taken for a mistake and ignored.
pub const WAIT_MAX: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// The meaning of a provider's reply.
///
/// ```
/// use std::time::Duration;
/// use tollgate_provider::{Class, Hint, Tokens};
///
/// let hint = Hint::throttled(Some(Duration::from_secs(2))).with_reason("rpm is exceeded");
/// assert!(hint.class.may_retry());
/// assert_eq!(hint.reason.as_deref(), Some("rpm is exceeded"));
/// assert_eq!(Hint::ok().with_usage(Tokens::new(19, 10)).class, Class::Ok);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// Whether the call succeeded, and otherwise what to do.
    pub class: Class,
    /// How long the provider asks to wait.
    pub advice: Option<Duration>,
    /// The provider's limits. Several may have the same unit: a project's tokens beside an
    /// account's.
    pub meters: Vec<LimitReading>,
    /// The usage of the call, if the body has it.
    pub usage: Option<Tokens>,
    /// The provider's message, cut to [`REASON_MAX`] characters, without secrets.
    pub reason: Option<String>,
}

impl Hint {
    /// Creates a hint with only a class.
    #[must_use]
    pub fn of(class: Class) -> Self {
        Self { class, advice: None, meters: Vec::new(), usage: None, reason: None }
    }

    /// Creates the hint of a call that succeeded.
    #[must_use]
    pub fn ok() -> Self {
        Self::of(Class::Ok)
    }

    /// Creates the hint of a throttled call, with the wait if it is known.
    #[must_use]
    pub fn throttled(advice: Option<Duration>) -> Self {
        Self { advice, ..Self::of(Class::Throttled) }
    }

    /// Creates the hint of an exhausted account, with its end if it is known.
    #[must_use]
    pub fn exhausted(until: Option<Until>) -> Self {
        Self::of(Class::Exhausted { until })
    }

    /// Creates the hint of an overloaded provider, with the wait if it is known.
    #[must_use]
    pub fn overloaded(advice: Option<Duration>) -> Self {
        Self { advice, ..Self::of(Class::Overloaded) }
    }

    /// Creates the hint of a transient failure.
    #[must_use]
    pub fn transient() -> Self {
        Self::of(Class::Transient)
    }

    /// Creates the hint of a permanent failure.
    #[must_use]
    pub fn fatal(kind: FatalKind) -> Self {
        Self::of(Class::Fatal(kind))
    }

    /// Sets the usage of the call.
    #[must_use]
    pub fn with_usage(self, usage: Tokens) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// Adds a limit of the provider.
    #[must_use]
    pub fn with_meter(mut self, meter: LimitReading) -> Self {
        self.meters.push(meter);
        self
    }

    /// Sets the reason.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}

/// The class of a reply, by what to do next.
///
/// ```
/// use tollgate_provider::{Class, FatalKind};
///
/// assert!(Class::Overloaded.may_retry());
/// assert!(!Class::Exhausted { until: None }.may_retry());
/// assert!(!Class::Fatal(FatalKind::Auth).may_retry());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The call succeeded.
    Ok,
    /// The call came too early: all callers that share the account should wait.
    Throttled,
    /// A spend cap, a quota or a daily limit is used up: no call of the account succeeds before
    /// `until`.
    Exhausted {
        /// When the account has quota again, if it is known.
        until: Option<Until>,
    },
    /// The provider is overloaded, whatever the account.
    Overloaded,
    /// A failure that a retry may not meet again.
    Transient,
    /// A failure that every retry meets again.
    Fatal(FatalKind),
}

impl Class {
    /// Returns true if the same call may succeed later.
    #[must_use]
    pub fn may_retry(self) -> bool {
        matches!(self, Self::Throttled | Self::Overloaded | Self::Transient)
    }
}

/// Why a call never succeeds.
///
/// ```
/// use std::time::SystemTime;
/// use tollgate_provider::{Class, FatalKind, Response, read};
///
/// let hint = read(&Response::new(401, &[], b""), SystemTime::UNIX_EPOCH);
/// assert_eq!(hint.class, Class::Fatal(FatalKind::Auth));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FatalKind {
    /// The key is invalid: no call with it succeeds.
    Auth,
    /// The request is invalid: other requests may succeed.
    Request,
    /// The request asks for more than a limit, or a model, can ever give.
    TooLarge,
}

/// The end of an exhausted quota.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tollgate_provider::Until;
///
/// let now = SystemTime::UNIX_EPOCH;
/// let until = Until::at(now + Duration::from_secs(60));
/// assert_eq!(until.wait(now), Duration::from_secs(60));
/// assert_eq!(until.wait(until.time()), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Until(SystemTime);

impl Until {
    /// Creates an end at this wall-clock time.
    #[must_use]
    pub fn at(time: SystemTime) -> Self {
        Self(time)
    }

    /// Returns the wall-clock time.
    #[must_use]
    pub fn time(self) -> SystemTime {
        self.0
    }

    /// Returns the time from `now` until then; zero if it has passed.
    #[must_use]
    pub fn wait(self, now: SystemTime) -> Duration {
        self.0.duration_since(now).unwrap_or_default()
    }
}

/// The state of one of the provider's limits, as reported.
///
/// ```
/// use tollgate_provider::{LimitReading, LimitUnit};
///
/// let reading = LimitReading::new(LimitUnit::Tokens).with_limit(80_000).with_remaining(500);
/// assert_eq!((reading.limit, reading.remaining, reading.reset), (Some(80_000), Some(500), None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LimitReading {
    /// What the limit counts.
    pub unit: LimitUnit,
    /// The capacity of the limit.
    pub limit: Option<u64>,
    /// How much is left. Some providers round it.
    pub remaining: Option<u64>,
    /// The time until the limit is full again.
    pub reset: Option<Duration>,
}

impl LimitReading {
    /// Creates a reading without values.
    #[must_use]
    pub fn new(unit: LimitUnit) -> Self {
        Self { unit, limit: None, remaining: None, reset: None }
    }

    /// Sets the capacity.
    #[must_use]
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Sets how much is left.
    #[must_use]
    pub fn with_remaining(self, remaining: u64) -> Self {
        Self { remaining: Some(remaining), ..self }
    }

    /// Sets the time until the limit is full again.
    #[must_use]
    pub fn with_reset(self, reset: Duration) -> Self {
        Self { reset: Some(reset), ..self }
    }

    pub(crate) fn has_value(&self) -> bool {
        self.limit.is_some() || self.remaining.is_some() || self.reset.is_some()
    }
}

/// What a limit counts.
///
/// ```
/// use std::time::SystemTime;
/// use tollgate_provider::{LimitUnit, Response, read};
///
/// let headers = [("anthropic-ratelimit-input-tokens-remaining", "39000")];
/// let hint = read(&Response::new(200, &headers, b"{}"), SystemTime::UNIX_EPOCH);
/// assert_eq!(hint.meters[0].unit, LimitUnit::InputTokens);
/// ```
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

/// The tokens of one call.
///
/// ```
/// use tollgate_provider::Tokens;
///
/// assert_eq!(Tokens::new(19, 10).total, 29);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Tokens {
    /// The tokens of the request that count against a limit.
    pub input: u64,
    /// The tokens of the reply, including reasoning.
    pub output: u64,
    /// The sum of both, or more if the provider reports more.
    pub total: u64,
}

impl Tokens {
    /// Creates the tokens with their sum.
    #[must_use]
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, total: input.saturating_add(output) }
    }
}

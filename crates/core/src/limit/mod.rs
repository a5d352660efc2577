//! Limits: one rule with a name each.

mod builder;
mod custom;
mod error;
mod share;

use std::fmt;

use crate::machine::Machine;
use crate::{Calendar, Name, Span, UNBOUNDED, Unit};

pub use builder::LimitBuilder;
pub use custom::CustomLimit;
pub use error::LimitError;

/// The longest period: ten years of 366 days.
pub const PERIOD_MAX: Span = Span::from_secs(10 * 366 * 86_400);

/// One rule with a name: how much, how fast, of what kind. A `Limit` that exists is valid.
///
/// [`Limit::per_minute`] and similar functions start a [`LimitBuilder`], which has the details that
/// can be set.
///
/// ```
/// use tollgate_core::Limit;
///
/// let tpm = Limit::per_minute("tpm", 100_000).burst(20_000).build()?;
/// assert_eq!(tpm.capacity(), 20_000);
///
/// let error = Limit::per_minute("tpm", 0).build().unwrap_err();
/// let message = "limit \"tpm\": amount is 0, but must be 1 to 1000000000000000, or UNBOUNDED";
/// assert_eq!(error.to_string(), message);
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    name: Name,
    kind: Kind,
    amount: u64,
    capacity: u64,
    period: Option<Span>,
    resolution: Option<Span>,
    resets: Option<Resets>,
    unit: Option<Unit>,
    enforcement: Enforcement,
    soft: Option<u64>,
    machine: Machine,
}

/// What a limit does with a demand that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enforcement {
    Deny,
    Shadow,
}

/// What a limit counts.
///
/// ```
/// use tollgate_core::{Algorithm, Kind, Limit};
///
/// assert_eq!(Limit::resource("slots", 3).build()?.kind(), Kind::Resource);
/// let rpm = Limit::per_minute("rpm", 100).build()?;
/// assert_eq!(rpm.kind(), Kind::Rate(Algorithm::TokenBucket));
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An amount per time. A demand names how much it wants.
    Rate(Algorithm),
    /// Calls per time. Every demand takes 1 unless it names another amount.
    Calls(Algorithm),
    /// A number at once. Every demand takes 1 unless it names another amount, and the lease
    /// releases it at its end.
    Resource,
    /// An amount until the quota resets.
    Quota,
    /// A pause in which every demand is denied: see [`Limit::cooldown`].
    Cooldown,
    /// A rule of the caller: see [`CustomLimit`].
    Custom,
}

impl Kind {
    /// Returns the kind in words, for error messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Rate(_) => "rate",
            Kind::Calls(_) => "limit of calls",
            Kind::Resource => "resource",
            Kind::Quota => "quota",
            Kind::Cooldown => "cooldown",
            Kind::Custom => "custom limit",
        }
    }
}

/// How a rate is measured.
///
/// Token bucket, leaky bucket and GCRA are three descriptions of one machine: the tokens left, the
/// level of the bucket, the time at which it will be empty. They admit exactly the same calls, so
/// the choice among the three only decides what a limit is called when it is shown. The two windows
/// are different machines.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Algorithm, Limit};
///
/// let second = Duration::from_secs(1);
/// let limit = Limit::rate("rps", 5, second).algorithm(Algorithm::SlidingWindow).build()?;
/// assert_eq!(limit, Limit::sliding_window("rps", 5, second).build()?);
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Tokens refill at the rate up to the burst, and calls spend them.
    #[default]
    TokenBucket,
    /// Calls fill a bucket that drains at the rate. The verdicts are those of
    /// [`Algorithm::TokenBucket`].
    LeakyBucket,
    /// Calls advance a theoretical arrival time. The verdicts are those of
    /// [`Algorithm::TokenBucket`].
    Gcra,
    /// At most the amount in each window; windows start at multiples of the period since the epoch.
    FixedWindow,
    /// At most the amount in every window of that length, wherever it starts.
    SlidingWindow,
}

/// When a quota is full again.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Limit, Resets, Span};
///
/// let session = Limit::quota("messages", 40, Duration::from_secs(3 * 3_600)).build()?;
/// assert_eq!(session.resets(), Some(&Resets::AfterFirstUse(Span::from_secs(10_800))));
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resets {
    /// At the edges of a calendar.
    Calendar(Calendar),
    /// This long after the first use.
    AfterFirstUse(Span),
}

impl Limit {
    /// Returns the limit that denies every demand while a cooldown lasts. A caller that stores
    /// limits adds it to them, so that all processes that share the store see the cooldown,
    /// atomically with the other limits.
    ///
    /// Every demand takes 1 of it, which is admitted if no cooldown lasts, and changes nothing. A
    /// settlement with more starts a cooldown: with `n + 1` it lasts `n` microseconds from then,
    /// unless a longer one is active. A refund does nothing, a top-up ends it. Its name is
    /// reserved, so that no demand can name it, and no [`Denial`](crate::Denial) shows it.
    pub fn cooldown() -> Limit {
        Limit {
            name: Name::cooldown(),
            kind: Kind::Cooldown,
            amount: 1,
            capacity: 1,
            period: None,
            resolution: None,
            resets: None,
            unit: None,
            enforcement: Enforcement::Deny,
            soft: None,
            machine: Machine::Cooldown,
        }
    }

    /// Returns the name, which is unique within a set.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns what the limit counts.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns how much the limit allows in its period.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Returns the maximum that is available at once: the burst of a rate, otherwise the amount.
    /// [`UNBOUNDED`] if there is no bound.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the period of a rate or of a session quota.
    pub fn period(&self) -> Option<Span> {
        self.period
    }

    /// Returns the resolution of a sliding window, if it was set.
    pub fn resolution(&self) -> Option<Span> {
        self.resolution
    }

    /// Returns when a quota is full again.
    pub fn resets(&self) -> Option<&Resets> {
        self.resets.as_ref()
    }

    /// Returns the unit that amounts are shown in.
    pub fn unit(&self) -> Option<&Unit> {
        self.unit.as_ref()
    }

    /// Returns true if a demand that does not name the limit takes 1 of it.
    pub fn is_implicit(&self) -> bool {
        matches!(self.kind, Kind::Calls(_) | Kind::Resource | Kind::Cooldown)
    }

    /// Returns true if the end of a lease releases what it took.
    pub fn is_resource(&self) -> bool {
        self.kind == Kind::Resource
    }

    /// Returns true for a [cooldown](Limit::cooldown), which no demand can name and no status
    /// shows.
    pub fn is_cooldown(&self) -> bool {
        self.kind == Kind::Cooldown
    }

    /// Returns true for a [custom](Limit::custom) limit, which only a set in this process can have.
    pub fn is_custom(&self) -> bool {
        self.kind == Kind::Custom
    }

    /// Returns true if the limit never denies.
    pub fn is_unbounded(&self) -> bool {
        self.capacity == UNBOUNDED
    }

    /// Returns true if the limit counts and never denies: see [`LimitBuilder::shadow`].
    pub fn is_shadow(&self) -> bool {
        self.enforcement == Enforcement::Shadow
    }

    /// Returns the level above which use is reported: see [`LimitBuilder::soft`].
    pub fn soft_level(&self) -> Option<u64> {
        self.soft
    }

    /// Returns true if the limit can have a warning.
    pub(crate) fn may_warn(&self) -> bool {
        self.is_shadow() || self.soft.is_some()
    }

    /// Formats an amount of this limit, with its unit.
    pub fn show(&self, amount: u64) -> String {
        match &self.unit {
            Some(unit) => unit.show(amount),
            None => amount.to_string(),
        }
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// Writes `rpm: 100 per 60s, burst 20`, for example.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        if self.is_unbounded() {
            f.write_str("unbounded")?;
            return self.fmt_enforcement(f);
        }
        f.write_str(&self.show(self.amount))?;
        match (&self.resets, self.period) {
            (Some(resets), _) => write!(f, " {resets}"),
            (None, Some(period)) => write!(f, " per {:?}", period.to_duration()),
            (None, None) if self.is_custom() => f.write_str(" (custom)"),
            (None, None) => f.write_str(" at once"),
        }?;
        if self.capacity != self.amount {
            write!(f, ", burst {}", self.show(self.capacity))?;
        }
        match self.kind {
            Kind::Rate(algorithm) | Kind::Calls(algorithm) if algorithm != Algorithm::TokenBucket => {
                write!(f, " ({algorithm})")
            }
            _ => Ok(()),
        }?;
        self.fmt_enforcement(f)
    }
}

impl Limit {
    fn fmt_enforcement(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(level) = self.soft {
            write!(f, ", soft {}", self.show(level))?;
        }
        f.write_str(if self.is_shadow() { ", shadow" } else { "" })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Algorithm::TokenBucket => "token bucket",
            Algorithm::LeakyBucket => "leaky bucket",
            Algorithm::Gcra => "GCRA",
            Algorithm::FixedWindow => "fixed window",
            Algorithm::SlidingWindow => "sliding window",
        })
    }
}

impl fmt::Display for Resets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resets::Calendar(calendar) => write!(f, "until the next edge of {}", calendar.text()),
            Resets::AfterFirstUse(span) => write!(f, "in {:?} after the first use", span.to_duration()),
        }
    }
}

impl From<Calendar> for Resets {
    fn from(calendar: Calendar) -> Resets {
        Resets::Calendar(calendar)
    }
}

impl From<std::time::Duration> for Resets {
    fn from(after: std::time::Duration) -> Resets {
        Resets::AfterFirstUse(Span::covering(after))
    }
}

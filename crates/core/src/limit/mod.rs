//! A limit: one rule with a name.

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
/// Made by [`Limit::per_minute`] and its relatives; see [`LimitBuilder`] for the details that can be set.
///
/// ```
/// use tollgate_core::Limit;
///
/// let tpm = Limit::per_minute("tpm", 100_000).burst(20_000).build()?;
/// assert_eq!(tpm.capacity(), 20_000);
///
/// let error = Limit::per_minute("tpm", 0).build().unwrap_err();
/// assert_eq!(error.to_string(), "limit \"tpm\": amount is 0, but must be 1 to 1000000000000000, or UNBOUNDED");
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

/// What a limit does about a demand that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enforcement {
    Refuses,
    Remarks,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// So much per time. A demand says how much it wants.
    Rate(Algorithm),
    /// Calls per time. Every demand takes 1 unless it says otherwise.
    Calls(Algorithm),
    /// How many at once. Every demand takes 1 unless it says otherwise, and gives it back at the end.
    Resource,
    /// So much until an edge, at which it is full again.
    Quota,
    /// No demand passes until it is over: see [`Limit::cooldown`].
    Cooldown,
    /// What a rule of the caller's own says: see [`CustomLimit`].
    Custom,
}

impl Kind {
    /// What it is called.
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
/// Token bucket, leaky bucket and GCRA are one machine in three readings: the tokens left, the level of the
/// meter, the time at which it will be empty. They admit exactly the same calls, so the choice among the three
/// decides only what a limit is called when it is shown. The two windows are machines of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Tokens refill at the rate up to the burst, and calls spend them.
    #[default]
    TokenBucket,
    /// Calls fill a meter that drains at the rate. The same verdicts as [`Algorithm::TokenBucket`].
    LeakyBucket,
    /// Calls push a theoretical arrival time ahead. The same verdicts as [`Algorithm::TokenBucket`].
    Gcra,
    /// At most the amount in each window; windows start at multiples of the period since the epoch.
    FixedWindow,
    /// At most the amount in every window of that length, wherever it starts.
    SlidingWindow,
}

/// When a quota is full again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resets {
    /// At the edges of a calendar.
    Calendar(Calendar),
    /// This long after the first use.
    AfterFirstUse(Span),
}

impl Limit {
    /// Refuses every demand until it is over. A caller that keeps limits in a store adds one to them, so that all
    /// processes that share them see a cooldown, in the same step as everything else.
    ///
    /// Every demand takes 1 of it, which passes if none lasts and changes nothing. A settlement with more than that
    /// begins one: with `n + 1` it lasts for `n` microseconds from then, unless one that lasts longer has begun. A refund
    /// does nothing, a top-up ends it. Its name is reserved, so no demand can name it and no [`Denial`](crate::Denial)
    /// shows it.
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
            enforcement: Enforcement::Refuses,
            soft: None,
            machine: Machine::Cooldown,
        }
    }

    /// Its name, unique within a set.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What it counts.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How much it allows in its period.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// The most that can be had at once: the burst of a rate, otherwise the amount. [`UNBOUNDED`] for none.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The period of a rate or of a session quota.
    pub fn period(&self) -> Option<Span> {
        self.period
    }

    /// How finely a sliding window remembers, if that was said when it was made.
    pub fn resolution(&self) -> Option<Span> {
        self.resolution
    }

    /// When a quota is full again.
    pub fn resets(&self) -> Option<&Resets> {
        self.resets.as_ref()
    }

    /// The unit its amounts are shown in.
    pub fn unit(&self) -> Option<&Unit> {
        self.unit.as_ref()
    }

    /// Whether a demand that does not name it takes 1 all the same.
    pub fn is_implicit(&self) -> bool {
        matches!(self.kind, Kind::Calls(_) | Kind::Resource | Kind::Cooldown)
    }

    /// Whether what was taken is given back when the lease ends.
    pub fn is_resource(&self) -> bool {
        self.kind == Kind::Resource
    }

    /// Whether it is a [cooldown](Limit::cooldown), which no demand can name and no status shows.
    pub fn is_cooldown(&self) -> bool {
        self.kind == Kind::Cooldown
    }

    /// Whether it is a [custom](Limit::custom) limit, which only a set in this process can have.
    pub fn is_custom(&self) -> bool {
        self.kind == Kind::Custom
    }

    /// Whether it never refuses.
    pub fn is_unbounded(&self) -> bool {
        self.capacity == UNBOUNDED
    }

    /// Whether it counts and never refuses: see [`LimitBuilder::shadow`].
    pub fn is_shadow(&self) -> bool {
        self.enforcement == Enforcement::Remarks
    }

    /// The level past which use is remarked: see [`LimitBuilder::soft`].
    pub fn soft_level(&self) -> Option<u64> {
        self.soft
    }

    /// Whether there may be something to remark about it.
    pub(crate) fn has_remarks(&self) -> bool {
        self.is_shadow() || self.soft.is_some()
    }

    /// An amount of this limit, written for people.
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

/// `rpm: 100 per 60s, burst 20` and the like.
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

//! Instants and durations in microseconds.

use std::ops::{Add, Sub};
use std::time::Duration;

/// An instant: microseconds since the Unix epoch, or since any epoch that a test chooses.
///
/// A microsecond is fine enough for a million calls a second, and coarse enough that a double,
/// which Lua scripts use, holds the number exactly.
///
/// ```
/// use tollgate_core::{Span, Tick};
///
/// let start = Tick::from_secs(10);
/// let later = start + Span::from_millis(1_500);
/// assert_eq!(later, Tick::from_micros(11_500_000));
/// assert_eq!(later.since(start), Span::from_millis(1_500));
/// assert_eq!(start.since(later), Span::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

/// A duration in microseconds.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::Span;
///
/// assert_eq!(Span::covering(Duration::from_nanos(1_001)), Span::from_micros(2));
/// assert_eq!(Span::from_secs(1).to_duration(), Duration::from_secs(1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Tick {
    /// The epoch.
    pub const ZERO: Tick = Tick(0);
    /// The last instant. A state that is ready at `MAX` is never ready.
    pub const MAX: Tick = Tick(u64::MAX);

    /// Returns the instant `micros` microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Tick {
        Tick(micros)
    }

    /// Returns the instant `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Tick {
        Tick(millis.saturating_mul(1_000))
    }

    /// Returns the instant `secs` seconds after the epoch.
    pub const fn from_secs(secs: u64) -> Tick {
        Tick(secs.saturating_mul(1_000_000))
    }

    /// Returns the microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Tick) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// The empty duration.
    pub const ZERO: Span = Span(0);

    /// Returns a span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros)
    }

    /// Returns a span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000))
    }

    /// Returns a span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(1_000_000))
    }

    /// Returns the span in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the shortest span that is not shorter than `duration`.
    pub fn covering(duration: Duration) -> Span {
        let micros = duration.as_nanos().div_ceil(1_000);
        Span(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Converts the span to a `Duration`.
    pub const fn to_duration(self) -> Duration {
        Duration::from_micros(self.0)
    }
}

impl Add<Span> for Tick {
    type Output = Tick;

    fn add(self, span: Span) -> Tick {
        Tick(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Tick {
    type Output = Tick;

    fn sub(self, span: Span) -> Tick {
        Tick(self.0.saturating_sub(span.0))
    }
}

//! Instants and spans in microseconds.

use std::ops::{Add, Sub};
use std::time::Duration;

/// An instant: microseconds since the Unix epoch, or since whatever epoch a test chose.
///
/// A microsecond is fine enough for a million calls a second, and coarse enough that a double (which is what
/// a Lua script counts in) holds it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Tick {
    /// The epoch.
    pub const ZERO: Tick = Tick(0);
    /// The last instant there is. A state that is ready at `MAX` is never ready.
    pub const MAX: Tick = Tick(u64::MAX);

    /// The instant this many microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Tick {
        Tick(micros)
    }

    /// The instant this many milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Tick {
        Tick(millis.saturating_mul(1_000))
    }

    /// The instant this many seconds after the epoch.
    pub const fn from_secs(secs: u64) -> Tick {
        Tick(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub const fn since(self, earlier: Tick) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of this many microseconds.
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros)
    }

    /// A span of this many milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000))
    }

    /// A span of this many seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(1_000_000))
    }

    /// The span in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The smallest span that is not shorter than `duration`.
    pub fn covering(duration: Duration) -> Span {
        let micros = duration.as_nanos().div_ceil(1_000);
        Span(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// The same length as a `Duration`.
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

//! When the provider fails, and how.

use std::time::Duration;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutageKind {
    /// It is answered with this status: from 500 to 599, or 429, whatever the limits say.
    Status(u16),
    /// It is never answered.
    Hang,
    /// Its connection is reset.
    Reset,
    /// Its stream begins well, and breaks off with an error. A call that asked for no stream is answered with 503.
    Midway,
}

impl OutageKind {
    /// Whether a provider fails with this status.
    #[must_use]
    pub fn is_status(status: u16) -> bool {
        status == 429 || (500..600).contains(&status)
    }
}

/// Calls that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    trouble: OutageKind,
    when: When,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Every(u64),
    Between(Duration, Duration),
}

impl Outage {
    /// Each `n`-th call, beginning with that; none if `n` is 0.
    #[must_use]
    pub fn every(n: u64, trouble: OutageKind) -> Outage {
        Outage { trouble, when: When::Every(n) }
    }

    /// All calls that come so long after the provider was made: from `from`, and before `to`.
    #[must_use]
    pub fn between(from: Duration, to: Duration, trouble: OutageKind) -> Outage {
        Outage { trouble, when: When::Between(from, to) }
    }

    pub(crate) fn trouble(&self) -> OutageKind {
        self.trouble
    }

    /// Whether it meets the call of that number, counted from 1, so long after the provider was made.
    pub(crate) fn meets(&self, call: u64, age: Duration) -> bool {
        match self.when {
            When::Every(0) => false,
            When::Every(n) => call.is_multiple_of(n),
            When::Between(from, to) => (from..to).contains(&age),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_meets_what_it_should() {
        let third = Outage::every(3, OutageKind::Hang);
        let met: Vec<u64> = (1..=9).filter(|&call| third.meets(call, Duration::ZERO)).collect();
        assert_eq!(met, [3, 6, 9]);
        assert!(!Outage::every(0, OutageKind::Hang).meets(5, Duration::ZERO));
        let second = Outage::between(Duration::from_secs(1), Duration::from_secs(2), OutageKind::Reset);
        let at = |ms| second.meets(1, Duration::from_millis(ms));
        assert_eq!([at(999), at(1_000), at(1_999), at(2_000)], [false, true, true, false]);
    }
}

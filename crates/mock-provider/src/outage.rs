//! Outages: which calls fail, and how.

use std::time::Duration;

/// How a call fails.
///
/// ```
/// use tollgate_mock_provider::OutageKind;
///
/// assert!(OutageKind::is_status(503) && !OutageKind::is_status(404));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutageKind {
    /// The reply has this status: 500 to 599, or 429, whatever the limits.
    Status(u16),
    /// The call is never answered.
    Hang,
    /// The connection is reset.
    Reset,
    /// The stream starts well and breaks off with an error. A call without a stream is answered
    /// with 503.
    Midway,
}

impl OutageKind {
    /// Returns true if an outage can have this status.
    #[must_use]
    pub fn is_status(status: u16) -> bool {
        status == 429 || (500..600).contains(&status)
    }
}

/// Calls that fail.
///
/// ```
/// use std::time::Duration;
/// use tollgate_mock_provider::{MockProvider, Outage, OutageKind};
///
/// let minute = Duration::from_secs(60);
/// MockProvider::builder()
///     .outage(Outage::every(10, OutageKind::Reset))
///     .outage(Outage::between(minute, 2 * minute, OutageKind::Status(503)))
///     .build()?;
/// # Ok::<(), tollgate_mock_provider::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    kind: OutageKind,
    when: When,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Every(u64),
    Between(Duration, Duration),
}

impl Outage {
    /// Lets every `n`-th call fail; none if `n` is 0.
    #[must_use]
    pub fn every(n: u64, kind: OutageKind) -> Outage {
        Outage { kind, when: When::Every(n) }
    }

    /// Lets all calls fail from `from` until before `to` after the provider was built.
    #[must_use]
    pub fn between(from: Duration, to: Duration, kind: OutageKind) -> Outage {
        Outage { kind, when: When::Between(from, to) }
    }

    pub(crate) fn kind(&self) -> OutageKind {
        self.kind
    }

    /// Returns true if the call with this number, counted from 1, fails at this age of the
    /// provider.
    pub(crate) fn applies_to(&self, call: u64, age: Duration) -> bool {
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
    fn an_outage_applies_to_its_calls() {
        let third = Outage::every(3, OutageKind::Hang);
        let failed: Vec<u64> = (1..=9).filter(|&call| third.applies_to(call, Duration::ZERO)).collect();
        assert_eq!(failed, [3, 6, 9]);
        assert!(!Outage::every(0, OutageKind::Hang).applies_to(5, Duration::ZERO));
        let second = Outage::between(Duration::from_secs(1), Duration::from_secs(2), OutageKind::Reset);
        let at = |ms| second.applies_to(1, Duration::from_millis(ms));
        assert_eq!([at(999), at(1_000), at(1_999), at(2_000)], [false, true, true, false]);
    }
}

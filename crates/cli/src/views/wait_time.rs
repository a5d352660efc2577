use std::time::Duration;

use tollgate::{Limit, Ready, Tick};

use crate::duration_text;

/// When a limit admits a demand. For a concurrency limit, the time at which other leases expire is only the latest, and they
/// may be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitTime {
    /// Now.
    Now,
    /// After this time.
    In(Duration),
    /// When other leases are released, or expire if they are not renewed.
    OnRelease(Option<Duration>),
    /// When the waiters ahead have been served, and not before the limits admit it, if they deny it now.
    AfterWaiters(Option<Duration>),
    /// Not in any representable time.
    Never,
}

impl WaitTime {
    /// Returns when a limit is ready.
    pub(crate) fn of(limit: &Limit, ready: Ready, now: Tick) -> WaitTime {
        match (ready, ready.wait(now)) {
            (Ready::Now, _) => WaitTime::Now,
            (_, wait) if limit.is_resource() => WaitTime::OnRelease(wait),
            (_, Some(wait)) => WaitTime::In(wait),
            (_, None) => WaitTime::Never,
        }
    }

    /// Returns the time in microseconds, if it is known.
    pub(crate) fn known_us(self) -> Option<u64> {
        match self {
            WaitTime::Now => Some(0),
            WaitTime::In(wait) => Some(micros(wait)),
            WaitTime::OnRelease(_) | WaitTime::AfterWaiters(_) | WaitTime::Never => None,
        }
    }

    /// Formats the time in few columns: `≤ 9m 53s` if other leases expire by then.
    pub(crate) fn short(self) -> String {
        match self {
            WaitTime::OnRelease(None) => "on release".into(),
            WaitTime::OnRelease(Some(wait)) => format!("≤ {}", duration_text::roughly(wait)),
            other => other.text(),
        }
    }

    /// Formats the time.
    pub(crate) fn text(self) -> String {
        match self {
            WaitTime::Now => "now".into(),
            WaitTime::In(wait) => format!("in {}", duration_text::roughly(wait)),
            WaitTime::OnRelease(None) => "on release".into(),
            WaitTime::OnRelease(Some(wait)) => {
                format!("on release, or in {}", duration_text::roughly(wait))
            }
            WaitTime::AfterWaiters(_) => "after the waiters ahead".into(),
            WaitTime::Never => "never".into(),
        }
    }
}

/// Converts to microseconds.
pub(crate) fn micros(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_concurrency_limit_depends_on_releases() {
        let limit = |text| crate::limit_text::parse(text).unwrap();
        let rate = limit("rpm:5");
        let slots = limit("slots:5/at-once");
        let now = Tick::from_secs(10);
        let later = Ready::At(Tick::from_secs(70));
        let minute = Duration::from_secs(60);
        assert_eq!(WaitTime::of(&rate, later, now), WaitTime::In(minute));
        assert_eq!(WaitTime::of(&rate, Ready::Unknown, now), WaitTime::Never);
        assert_eq!(WaitTime::of(&slots, later, now), WaitTime::OnRelease(Some(minute)));
        assert_eq!(WaitTime::of(&slots, later, now).known_us(), None);
        assert_eq!(WaitTime::of(&slots, Ready::Unknown, now).text(), "on release");
        assert_eq!(WaitTime::of(&slots, Ready::Now, now).known_us(), Some(0));
    }
}

use std::time::Duration;

use tollgate::{Limit, Ready, Tick};

use crate::duration_text;

/// When something is to be had of a limit. What others hold is given back when they like: the time at which they lose it
/// is only the latest, and they may renew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitTime {
    /// Now.
    Now,
    /// After this.
    In(Duration),
    /// When others give back, or lose what they hold if they do not renew it.
    GivenBack(Option<Duration>),
    /// At no time that can be counted.
    Never,
}

impl WaitTime {
    /// When a limit is ready.
    pub(crate) fn of(limit: &Limit, ready: Ready, now: Tick) -> WaitTime {
        match (ready, ready.wait(now)) {
            (Ready::Now, _) => WaitTime::Now,
            (_, wait) if limit.is_resource() => WaitTime::GivenBack(wait),
            (_, Some(wait)) => WaitTime::In(wait),
            (_, None) => WaitTime::Never,
        }
    }

    /// How long that is in microseconds, if it is known.
    pub(crate) fn known_us(self) -> Option<u64> {
        match self {
            WaitTime::Now => Some(0),
            WaitTime::In(wait) => Some(micros(wait)),
            WaitTime::GivenBack(_) | WaitTime::Never => None,
        }
    }

    /// For people, where there is little room: `≤ 9m 53s` for what others lose by then.
    pub(crate) fn short(self) -> String {
        match self {
            WaitTime::GivenBack(None) => "given back".into(),
            WaitTime::GivenBack(Some(wait)) => format!("≤ {}", duration_text::roughly(wait)),
            other => other.text(),
        }
    }

    /// For people.
    pub(crate) fn text(self) -> String {
        match self {
            WaitTime::Now => "now".into(),
            WaitTime::In(wait) => format!("in {}", duration_text::roughly(wait)),
            WaitTime::GivenBack(None) => "when given back".into(),
            WaitTime::GivenBack(Some(wait)) => {
                format!("when given back, or in {}", duration_text::roughly(wait))
            }
            WaitTime::Never => "never".into(),
        }
    }
}

/// Microseconds, for programs.
pub(crate) fn micros(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_hold_has_no_time_and_a_debt_is_given_back_by_nobody() {
        let limit = |text| crate::limit_text::parse(text).unwrap();
        let (rate, slots) = (limit("rpm:5"), limit("slots:5/at-once"));
        let (now, later) = (Tick::from_secs(10), Ready::At(Tick::from_secs(70)));
        let minute = Duration::from_secs(60);
        assert_eq!(WaitTime::of(&rate, later, now), WaitTime::In(minute));
        assert_eq!(WaitTime::of(&rate, Ready::Unknown, now), WaitTime::Never);
        assert_eq!(WaitTime::of(&slots, later, now), WaitTime::GivenBack(Some(minute)));
        assert_eq!(WaitTime::of(&slots, later, now).known_us(), None);
        assert_eq!(WaitTime::of(&slots, Ready::Unknown, now).text(), "when given back");
        assert_eq!(WaitTime::of(&slots, Ready::Now, now).known_us(), Some(0));
    }
}

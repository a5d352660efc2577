use tollgate_core::{Span, Tick};

use super::Window;

/// A day, in seconds.
const DAY: u64 = 86_400;

/// Retention of records of usage: how long they are kept after their windows have begun.
///
/// A store gives a record its expiry with every write to it, so the last process that wrote to a record decides. Records that are
/// not written to any more keep the expiry that they have.
///
/// No record expires while its window may still be written to: whatever is asked for, a record is kept for at least 2 hours if
/// its window is an hour, 2 days if it is a day, and 62 days if it is a month.
///
/// # Examples
///
/// ```
/// use tollgate_core::Span;
/// use tollgate_store::Memory;
/// use tollgate_store::usage::{UsageRetention, Window};
///
/// let year = Span::from_secs(365 * 86_400);
/// // Hours for a year, and days and months for ever.
/// let kept = UsageRetention::new(year, None, None);
/// assert_eq!((kept.of(Window::Hour), kept.of(Window::Month)), (Some(year), None));
/// let store = Memory::builder().usage_retention(kept).build();
/// # drop(store);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageRetention {
    hours: Option<Span>,
    days: Option<Span>,
    months: Option<Span>,
}

impl UsageRetention {
    /// Keeps every record for ever.
    pub const FOREVER: UsageRetention = UsageRetention { hours: None, days: None, months: None };

    /// Keeps the records of hours, of days and of months for so long; `None` for ever.
    ///
    /// A span that is shorter than a window may be written to is lengthened to that.
    pub fn new(
        hours: impl Into<Option<Span>>,
        days: impl Into<Option<Span>>,
        months: impl Into<Option<Span>>,
    ) -> UsageRetention {
        let at_least = |window: Window, span: Option<Span>| span.map(|span| span.max(least(window)));
        UsageRetention {
            hours: at_least(Window::Hour, hours.into()),
            days: at_least(Window::Day, days.into()),
            months: at_least(Window::Month, months.into()),
        }
    }

    /// Keeps the records of all windows for as long, as [`new`](UsageRetention::new) does; `None` for ever.
    pub fn uniform(span: impl Into<Option<Span>>) -> UsageRetention {
        let span = span.into();
        UsageRetention::new(span, span, span)
    }

    /// Returns how long a record of such a window is kept; `None` for ever.
    pub fn of(&self, window: Window) -> Option<Span> {
        match window {
            Window::Hour => self.hours,
            Window::Day => self.days,
            Window::Month => self.months,
        }
    }

    /// Returns when the record of a window expires that begins at `start`; `None` for never, also if that is later than any
    /// tick.
    pub fn expiry(&self, window: Window, start: Tick) -> Option<Tick> {
        let end = start.as_micros().checked_add(self.of(window)?.as_micros())?;
        Some(Tick::from_micros(end))
    }
}

/// Hours for 90 days, days for 400 days and months for ten years.
impl Default for UsageRetention {
    fn default() -> UsageRetention {
        UsageRetention {
            hours: Some(Span::from_secs(90 * DAY)),
            days: Some(Span::from_secs(400 * DAY)),
            months: Some(Span::from_secs(3_660 * DAY)),
        }
    }
}

/// Returns the least retention of a record: twice its window, which may be written to until a while after its end.
fn least(window: Window) -> Span {
    match window {
        Window::Hour => Span::from_secs(2 * 3_600),
        Window::Day => Span::from_secs(2 * DAY),
        Window::Month => Span::from_secs(62 * DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(count: u64) -> Span {
        Span::from_secs(count * DAY)
    }

    #[test]
    fn each_window_has_a_retention_of_its_own() {
        let kept = UsageRetention::new(days(3), None, days(90));
        assert_eq!(Window::ALL.map(|window| kept.of(window)), [Some(days(3)), None, Some(days(90))]);
        assert_eq!(Window::ALL.map(|window| UsageRetention::FOREVER.of(window)), [None; 3]);
        assert_eq!(UsageRetention::uniform(None), UsageRetention::FOREVER);
        let default = UsageRetention::default();
        assert_eq!(UsageRetention::new(days(90), days(400), days(3_660)), default);
    }

    #[test]
    fn no_record_expires_while_its_window_may_be_written_to() {
        for asked in [Span::ZERO, Span::from_secs(7_199)] {
            let kept = UsageRetention::uniform(asked);
            let least = [Span::from_secs(7_200), days(2), days(62)].map(Some);
            assert_eq!(Window::ALL.map(|window| kept.of(window)), least);
        }
        let ten_days = UsageRetention::uniform(days(10));
        assert_eq!(Window::ALL.map(|window| ten_days.of(window)), [days(10), days(10), days(62)].map(Some));
    }

    #[test]
    fn a_record_expires_so_long_after_its_window_began() {
        let (kept, start) = (UsageRetention::uniform(days(10)), Tick::from_secs(1_772_323_200));
        assert_eq!(kept.expiry(Window::Hour, start), Some(start + days(10)));
        assert_eq!(UsageRetention::FOREVER.expiry(Window::Hour, start), None);
        let long = UsageRetention::uniform(Span::from_micros(u64::MAX));
        assert_eq!(long.expiry(Window::Day, start), None);
    }
}

//! Service time, learned from the `Date` of its replies.
//!
//! A reply with the date D, in whole seconds, between the local times t0 and t1 of sending and receiving shows that the
//! service is ahead by something in `[D - t1, D + 1 s - t0]`. The bounds of all replies hold, so a few of them give the
//! time to a part of a second. As long as the local clock may be right, it is not corrected.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_async::time::TimeSource;
use aws_smithy_types::DateTime;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use aws_smithy_types::date_time::Format;
use tollgate_core::Tick;
use tollgate_store::{Clock, Mutex};

const SECOND: i64 = 1_000_000;

/// How far the service may be ahead, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockLead {
    least: i64,
    most: i64,
}

impl ClockLead {
    const ANY: ClockLead = ClockLead { least: i64::MIN, most: i64::MAX };

    /// Returns the bounds that a reply with this date gives.
    fn of(date_secs: i64, sent: Tick, received: Tick) -> ClockLead {
        let date = date_secs.saturating_mul(SECOND);
        let micros = |tick: Tick| i64::try_from(tick.as_micros()).unwrap_or(i64::MAX);
        let least = date.saturating_sub(micros(received));
        ClockLead { least, most: (date + SECOND).saturating_sub(micros(sent)).max(least) }
    }

    /// Returns the intersection of both bounds; the later ones if it is empty, because then a clock was set.
    fn and(self, later: ClockLead) -> ClockLead {
        let both = ClockLead { least: self.least.max(later.least), most: self.most.min(later.most) };
        if both.least <= both.most { both } else { later }
    }

    /// Returns the smallest correction within the bounds.
    fn correction(self) -> i64 {
        0.clamp(self.least, self.most)
    }
}

/// A local clock, and the bounds of the service's.
#[derive(Clone, Debug)]
pub(crate) struct ServiceTime {
    local: Clock,
    ahead: Arc<Mutex<ClockLead>>,
    by: Arc<AtomicI64>,
    corrected: Clock,
}

impl ServiceTime {
    pub(crate) fn new(local: Clock) -> ServiceTime {
        let by = Arc::<AtomicI64>::default();
        let corrected = local.corrected(Arc::clone(&by));
        ServiceTime { local, ahead: Arc::new(Mutex::new(ClockLead::ANY)), by, corrected }
    }

    /// Returns the same clock for a forked process: a thread of the parent may hold the lock.
    pub(crate) fn of_a_fork(&self) -> ServiceTime {
        ServiceTime { ahead: Arc::new(Mutex::new(ClockLead::ANY)), ..self.clone() }
    }

    /// Returns the clock that shows the service's time.
    pub(crate) fn clock(&self) -> &Clock {
        &self.corrected
    }

    fn learn(&self, date: &str, sent: Tick) {
        let received = self.local.now();
        let Ok(date) = DateTime::from_str(date, Format::HttpDate) else { return };
        // The clock was set back meanwhile, so the duration of the call is unknown.
        if received < sent {
            return;
        }
        let mut ahead = self.ahead.lock();
        *ahead = ahead.and(ClockLead::of(date.secs(), sent, received));
        self.by.store(ahead.correction(), Ordering::Relaxed);
    }
}

/// When a request was sent.
#[derive(Debug)]
struct SentAt(Tick);

impl Storable for SentAt {
    type Storer = StoreReplace<SentAt>;
}

impl Intercept for ServiceTime {
    fn name(&self) -> &'static str {
        "ServiceTime"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        state: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        state.interceptor_state().store_put(SentAt(self.local.now()));
        Ok(())
    }

    /// Reads the date of every reply, also of errors.
    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        state: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let (Some(SentAt(sent)), Some(date)) =
            (state.load::<SentAt>(), context.response().headers().get("date"))
        {
            self.learn(date, *sent);
        }
        Ok(())
    }
}

/// Signs requests with the service's time, so that a host whose clock is off succeeds with its second attempt.
impl TimeSource for ServiceTime {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.clock().now().as_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::Span;
    use tollgate_store::ManualClock;

    const START: Tick = Tick::from_secs(1_000_000);

    fn date(secs: u64) -> String {
        DateTime::from_secs(secs as i64).fmt(Format::HttpDate).unwrap()
    }

    /// Passes a reply of a service that is ahead by so many microseconds, after a round trip of this long.
    fn answer(time: &ServiceTime, manual: &ManualClock, ahead: i64, trip: Span) {
        let sent = manual.now();
        manual.advance(Span::from_micros(trip.as_micros() / 2));
        let stamp = manual.now().as_micros().saturating_add_signed(ahead) / 1_000_000;
        manual.advance(Span::from_micros(trip.as_micros() / 2));
        time.learn(&date(stamp), sent);
    }

    fn off_by(time: &ServiceTime, manual: &ManualClock) -> i64 {
        time.clock().now().as_micros() as i64 - manual.now().as_micros() as i64
    }

    #[test]
    fn a_clock_that_may_be_right_is_not_touched() {
        let manual = ManualClock::at(START);
        let time = ServiceTime::new(manual.clock());
        for trip in [0, 1, 400_000, 3_000_000] {
            answer(&time, &manual, 0, Span::from_micros(trip));
            assert_eq!(off_by(&time, &manual), 0);
        }
    }

    #[test]
    fn a_clock_that_is_off_comes_close_and_then_closer() {
        for ahead in [-300_000_000, -5_000_000, 5_000_000, 300_000_000] {
            let manual = ManualClock::at(START);
            let time = ServiceTime::new(manual.clock());
            answer(&time, &manual, ahead, Span::from_millis(40));
            assert!((off_by(&time, &manual) - ahead).abs() <= 1_040_000, "{ahead}");
            for _ in 0..50 {
                manual.advance(Span::from_millis(370));
                answer(&time, &manual, ahead, Span::from_millis(40));
            }
            let error = (off_by(&time, &manual) - ahead).abs();
            assert!(error <= 100_000, "{ahead}: still off by {error}");
        }
    }

    #[test]
    fn a_clock_that_is_set_later_is_followed() {
        let manual = ManualClock::at(START);
        let time = ServiceTime::new(manual.clock());
        answer(&time, &manual, 10_000_000, Span::from_millis(40));
        answer(&time, &manual, -10_000_000, Span::from_millis(40));
        assert!((off_by(&time, &manual) + 10_000_000).abs() <= 1_040_000);
        answer(&time, &manual, 0, Span::from_millis(40));
        assert_eq!(off_by(&time, &manual), 0);
    }

    #[test]
    fn a_date_that_is_none_says_nothing() {
        let manual = ManualClock::at(START);
        let time = ServiceTime::new(manual.clock());
        for date in ["", "yesterday", "Thu, 99 Jan 2026 00:00:00 GMT"] {
            time.learn(date, START);
        }
        assert_eq!(off_by(&time, &manual), 0);
    }
}

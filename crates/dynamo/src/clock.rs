//! The time of the service, learnt from the `Date` of its answers.
//!
//! An answer that was stamped D, in whole seconds, between the local times t0 and t1 of sending and receiving says that
//! the service is ahead by something in `[D - t1, D + 1 s - t0]`. What several answers say must all be true, so a few
//! of them tell the time to a part of a second. As long as it may be that the local clock is right, it is not touched.

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

    /// What an answer says that was stamped with this second.
    fn of(date_secs: i64, sent: Tick, received: Tick) -> ClockLead {
        let date = date_secs.saturating_mul(SECOND);
        let micros = |tick: Tick| i64::try_from(tick.as_micros()).unwrap_or(i64::MAX);
        let least = date.saturating_sub(micros(received));
        ClockLead { least, most: (date + SECOND).saturating_sub(micros(sent)).max(least) }
    }

    /// What is true if both are; the later of them if that cannot be, since then a clock was set.
    fn and(self, later: ClockLead) -> ClockLead {
        let both = ClockLead { least: self.least.max(later.least), most: self.most.min(later.most) };
        if both.least <= both.most { both } else { later }
    }

    /// The smallest correction that is in it.
    fn correction(self) -> i64 {
        0.clamp(self.least, self.most)
    }
}

/// A local clock, and what is known of the service's.
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

    /// The same clock for a process that was forked off, a thread of whose parent may be about to learn the time.
    pub(crate) fn of_a_fork(&self) -> ServiceTime {
        ServiceTime { ahead: Arc::new(Mutex::new(ClockLead::ANY)), ..self.clone() }
    }

    /// The clock that shows the service's time.
    pub(crate) fn clock(&self) -> &Clock {
        &self.corrected
    }

    fn learn(&self, date: &str, sent: Tick) {
        let received = self.local.now();
        let Ok(date) = DateTime::from_str(date, Format::HttpDate) else { return };
        // A clock that was set back meanwhile says nothing about how long the call took.
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

    /// Also for answers that are errors.
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

/// Requests are signed with the service's time, so that a host whose clock is off is let in at its second try.
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

    /// An answer from a service that is ahead by so many microseconds, after a round trip of this long.
    fn answer(time: &ServiceTime, hands: &ManualClock, ahead: i64, trip: Span) {
        let sent = hands.now();
        hands.advance(Span::from_micros(trip.as_micros() / 2));
        let stamp = hands.now().as_micros().saturating_add_signed(ahead) / 1_000_000;
        hands.advance(Span::from_micros(trip.as_micros() / 2));
        time.learn(&date(stamp), sent);
    }

    fn off_by(time: &ServiceTime, hands: &ManualClock) -> i64 {
        time.clock().now().as_micros() as i64 - hands.now().as_micros() as i64
    }

    #[test]
    fn a_clock_that_may_be_right_is_not_touched() {
        let hands = ManualClock::at(START);
        let time = ServiceTime::new(hands.clock());
        for trip in [0, 1, 400_000, 3_000_000] {
            answer(&time, &hands, 0, Span::from_micros(trip));
            assert_eq!(off_by(&time, &hands), 0);
        }
    }

    #[test]
    fn a_clock_that_is_off_comes_close_and_then_closer() {
        for ahead in [-300_000_000, -5_000_000, 5_000_000, 300_000_000] {
            let hands = ManualClock::at(START);
            let time = ServiceTime::new(hands.clock());
            answer(&time, &hands, ahead, Span::from_millis(40));
            assert!((off_by(&time, &hands) - ahead).abs() <= 1_040_000, "{ahead}");
            for _ in 0..50 {
                hands.advance(Span::from_millis(370));
                answer(&time, &hands, ahead, Span::from_millis(40));
            }
            let error = (off_by(&time, &hands) - ahead).abs();
            assert!(error <= 100_000, "{ahead}: still off by {error}");
        }
    }

    #[test]
    fn a_clock_that_is_set_later_is_followed() {
        let hands = ManualClock::at(START);
        let time = ServiceTime::new(hands.clock());
        answer(&time, &hands, 10_000_000, Span::from_millis(40));
        answer(&time, &hands, -10_000_000, Span::from_millis(40));
        assert!((off_by(&time, &hands) + 10_000_000).abs() <= 1_040_000);
        answer(&time, &hands, 0, Span::from_millis(40));
        assert_eq!(off_by(&time, &hands), 0);
    }

    #[test]
    fn a_date_that_is_none_says_nothing() {
        let hands = ManualClock::at(START);
        let time = ServiceTime::new(hands.clock());
        for date in ["", "yesterday", "Thu, 99 Jan 2026 00:00:00 GMT"] {
            time.learn(date, START);
        }
        assert_eq!(off_by(&time, &hands), 0);
    }
}

//! A clock that another one is corrected to.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use tollgate_core::{Span, Tick};

use super::alarm_target::AlarmTarget;
use super::{Alarm, Clock, ClockSource};

/// A correction of a clock, which may change at any time.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::Tick;
/// use tollgate_store::{Correction, ManualClock};
///
/// /// A service whose clock is an hour ahead of that of the host.
/// struct HourAhead;
///
/// impl Correction for HourAhead {
///     fn by(&self, _: Tick) -> i64 {
///         3_600_000_000
///     }
/// }
///
/// let host = ManualClock::at(Tick::from_secs(10));
/// let clock = host.clock().corrected(Arc::new(HourAhead));
/// assert_eq!(clock.now(), Tick::from_secs(3_610));
/// ```
pub trait Correction: Send + Sync {
    /// Returns the microseconds to add to `base`, the time that the corrected clock shows without them.
    fn by(&self, base: Tick) -> i64;
}

impl Correction for AtomicI64 {
    fn by(&self, _: Tick) -> i64 {
        self.load(Ordering::Relaxed)
    }
}

/// Closer to an alarm than this, the correction is taken as it is.
const CLOSE: Span = Span::from_millis(100);

pub(super) struct Corrected {
    base: Clock,
    by: Arc<dyn Correction>,
}

impl Corrected {
    pub(super) fn new(base: Clock, by: Arc<dyn Correction>) -> Corrected {
        Corrected { base, by }
    }

    pub(super) fn now(&self) -> Tick {
        self.corrected(self.base.now())
    }

    fn corrected(&self, base: Tick) -> Tick {
        Tick::from_micros(base.as_micros().saturating_add_signed(self.by.by(base)))
    }

    /// Wakes a sleeper at `at` by the correction there is now.
    pub(super) fn wake(&self, at: Tick, sleeper: AlarmTarget) {
        let now = self.base.now();
        self.base.wake(now + at.since(self.corrected(now)), sleeper);
    }

    /// Sets an alarm, or rings it if its time has passed.
    pub(super) fn alarm(self: &Arc<Self>, at: Tick, alarm: Weak<dyn Alarm>) {
        Arc::new(CorrectedAlarm { at, alarm, clock: Arc::clone(self) }).wait();
    }
}

impl fmt::Debug for Corrected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corrected").field("base", &self.base).finish_non_exhaustive()
    }
}

/// An alarm of a corrected clock.
///
/// The correction may change while it waits, without a notification. So it looks again on half of the way, and on half of
/// what is left: a change is seen in time unless it comes late and is large, and a long wait costs a few looks only.
pub(crate) struct CorrectedAlarm {
    at: Tick,
    alarm: Weak<dyn Alarm>,
    clock: Arc<Corrected>,
}

impl CorrectedAlarm {
    #[cfg(not(loom))]
    pub(crate) fn is_gone(&self) -> bool {
        self.alarm.strong_count() == 0
    }

    /// Rings if it is time, or sets an alarm to look again.
    fn wait(self: Arc<Self>) {
        let Some(alarm) = self.alarm.upgrade() else { return };
        let now = self.clock.base.now();
        let left = self.at.since(self.clock.corrected(now));
        if left == Span::ZERO {
            return alarm.ring(self.at, &Clock(ClockSource::Corrected(Arc::clone(&self.clock))));
        }
        let sleep = if left <= CLOSE { left } else { Span::from_micros(left.as_micros() / 2) };
        self.clock.base.clone().wake(now + sleep, AlarmTarget::Waiting(self));
    }
}

impl Alarm for CorrectedAlarm {
    fn ring(self: Arc<Self>, _: Tick, _: &Clock) {
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;
    use std::sync::Mutex;

    struct CorrectedRecorder(Mutex<Vec<(Tick, Tick)>>);

    impl Alarm for CorrectedRecorder {
        fn ring(self: Arc<Self>, at: Tick, clock: &Clock) {
            self.0.lock().unwrap().push((at, clock.now()));
        }
    }

    struct CorrectedFixture {
        hands: ManualClock,
        by: Arc<AtomicI64>,
        clock: Clock,
        recorder: Arc<CorrectedRecorder>,
    }

    impl CorrectedFixture {
        fn new(by_secs: i64) -> CorrectedFixture {
            let hands = ManualClock::at(Tick::from_secs(1_000));
            let by = Arc::new(AtomicI64::new(by_secs * 1_000_000));
            let clock = hands.clock().corrected(Arc::clone(&by));
            CorrectedFixture { hands, by, clock, recorder: Arc::new(CorrectedRecorder(Mutex::default())) }
        }

        fn alarm(&self, at_secs: u64) {
            let alarm: Arc<dyn Alarm> = self.recorder.clone();
            self.clock.alarm(Tick::from_secs(at_secs), Arc::downgrade(&alarm));
        }

        fn correct(&self, by_secs: i64) {
            self.by.store(by_secs * 1_000_000, Ordering::Relaxed);
        }

        fn rung(&self) -> Vec<(u64, u64)> {
            let micros = |(at, now): &(Tick, Tick)| (at.as_micros(), now.as_micros());
            self.recorder.0.lock().unwrap().iter().map(micros).collect()
        }
    }

    #[test]
    fn it_shows_the_corrected_time() {
        let scene = CorrectedFixture::new(300);
        assert_eq!(scene.clock.now(), Tick::from_secs(1_300));
        scene.correct(-300);
        assert_eq!(scene.clock.now(), Tick::from_secs(700));
        scene.correct(-2_000);
        assert_eq!(scene.clock.now(), Tick::ZERO);
    }

    #[test]
    fn alarms_ring_at_the_corrected_time() {
        for by in [-300, 0, 300] {
            let scene = CorrectedFixture::new(by);
            let now = 1_000_u64.saturating_add_signed(by);
            [now + 61, now + 1, now, now - 1].into_iter().for_each(|at| scene.alarm(at));
            scene.hands.set(Tick::from_secs(1_100));
            let times = [(now, now), (now - 1, now), (now + 1, now + 1), (now + 61, now + 61)];
            assert_eq!(scene.rung(), times.map(|(at, shown)| (at * 1_000_000, shown * 1_000_000)));
        }
    }

    #[test]
    fn a_correction_while_an_alarm_waits_is_seen() {
        for (by, rings_at) in [(20, 1_040), (-20, 1_080)] {
            let scene = CorrectedFixture::new(0);
            scene.alarm(1_060);
            scene.hands.set(Tick::from_secs(1_010));
            scene.correct(by);
            scene.hands.set(Tick::from_secs(rings_at - 1));
            assert_eq!(scene.rung(), [], "corrected by {by}");
            scene.hands.set(Tick::from_secs(rings_at));
            assert_eq!(scene.rung(), [(1_060_000_000, 1_060_000_000)], "corrected by {by}");
        }
    }

    #[test]
    fn what_is_gone_is_not_rung_and_not_kept() {
        let scene = CorrectedFixture::new(5);
        let gone: Arc<dyn Alarm> = Arc::new(CorrectedRecorder(Mutex::default()));
        scene.clock.alarm(Tick::from_secs(1_060), Arc::downgrade(&gone));
        drop(gone);
        scene.hands.set(Tick::from_secs(1_050));
        assert_eq!(scene.hands.alarms(), 0);
    }

    #[test]
    fn a_corrected_clock_can_be_corrected() {
        let scene = CorrectedFixture::new(10);
        let twice = scene.clock.corrected(Arc::new(AtomicI64::new(5_000_000)));
        assert_eq!(twice.now(), Tick::from_secs(1_015));
        let alarm: Arc<dyn Alarm> = scene.recorder.clone();
        twice.alarm(Tick::from_secs(1_020), Arc::downgrade(&alarm));
        scene.hands.set(Tick::from_secs(1_005));
        assert_eq!(scene.rung(), [(1_020_000_000, 1_020_000_000)]);
    }

    #[test]
    fn an_alarm_of_the_system_s_clock_rings_too() {
        let (told, rung) = std::sync::mpsc::channel();
        struct Tell(std::sync::mpsc::Sender<(Tick, Tick)>);
        impl Alarm for Tell {
            fn ring(self: Arc<Self>, at: Tick, clock: &Clock) {
                let _ = self.0.send((at, clock.now()));
            }
        }
        let clock = Clock::system().corrected(Arc::new(AtomicI64::new(-3_600_000_000)));
        let at = clock.now() + Span::from_millis(150);
        let alarm: Arc<dyn Alarm> = Arc::new(Tell(told));
        clock.alarm(at, Arc::downgrade(&alarm));
        let (asked, now) = rung.recv().unwrap();
        assert!(asked == at && now >= at, "{asked:?} {now:?}");
    }
}

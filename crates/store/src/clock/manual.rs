//! A manual clock, which a test sets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Span, Tick};

use super::{Alarm, AlarmTarget, Clock, ClockSource};

/// A clock for tests. It stands still until a test sets it, and rings the alarms it passes, each at its instant.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Span, Tick};
/// use tollgate_store::{ManualClock, Memory, Store};
///
/// let manual = ManualClock::at(Tick::from_secs(10));
/// let store = Memory::builder().clock(manual.clock()).build();
/// manual.advance(Span::from_secs(5));
/// assert_eq!(store.clock().now(), Tick::from_secs(15));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Hands>);

#[derive(Default)]
pub(super) struct Hands {
    now: AtomicU64,
    alarms: std::sync::Mutex<ManualAlarms>,
}

#[derive(Default)]
struct ManualAlarms {
    set: u64,
    waiting: BTreeMap<(Tick, u64), AlarmTarget>,
}

impl ManualClock {
    /// Returns a clock that stands at `now`.
    pub fn at(now: Tick) -> ManualClock {
        let hands = Hands { now: AtomicU64::new(now.as_micros()), ..Hands::default() };
        ManualClock(Arc::new(hands))
    }

    /// Returns the clock for the code under test.
    pub fn clock(&self) -> Clock {
        Clock(ClockSource::Manual(Arc::clone(&self.0)))
    }

    /// Returns the time it shows.
    pub fn now(&self) -> Tick {
        self.clock().now()
    }

    /// Returns the number of alarms that are set.
    pub fn alarms(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// Returns when the next alarm will ring, if any is set. Its target may be gone.
    pub fn next_alarm(&self) -> Option<Tick> {
        self.0.lock().waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Sets it forward by `span`, and rings the alarms it passes.
    pub fn advance(&self, span: Span) {
        self.set(self.now() + span);
    }

    /// Sets it to `target`. Forward it rings the alarms it passes, in order and each at its own instant; back it
    /// rings none.
    pub fn set(&self, target: Tick) {
        while let Some((at, alarm)) = self.0.next_until(target) {
            self.0.now.fetch_max(at.as_micros(), Ordering::SeqCst);
            if let Some(alarm) = alarm.upgrade() {
                alarm.ring(at, &self.clock());
            }
        }
    }
}

impl Hands {
    pub(super) fn now(&self) -> Tick {
        Tick::from_micros(self.now.load(Ordering::SeqCst))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ManualAlarms> {
        self.alarms.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sets an alarm. If its time has passed it is answered instead, to be rung at once.
    pub(super) fn alarm(&self, at: Tick, alarm: AlarmTarget) -> Option<Arc<dyn Alarm>> {
        let mut alarms = self.lock();
        if at <= self.now() {
            return alarm.upgrade();
        }
        alarms.set += 1;
        let order = alarms.set;
        alarms.waiting.insert((at, order), alarm);
        None
    }

    /// Returns the next alarm to ring on the way to `target`. Without one `target` is reached, under the same lock,
    /// so that an alarm set meanwhile either is seen here or sees the new time.
    fn next_until(&self, target: Tick) -> Option<(Tick, AlarmTarget)> {
        let mut alarms = self.lock();
        let next = alarms.waiting.first_entry().filter(|entry| entry.key().0 <= target);
        let Some(((at, _), alarm)) = next.map(|entry| entry.remove_entry()) else {
            self.now.store(target.as_micros(), Ordering::SeqCst);
            return None;
        };
        Some((at, alarm))
    }
}

impl std::fmt::Debug for Hands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hands").field("now", &self.now).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Recorder(Mutex<Vec<Tick>>);

    impl Alarm for Recorder {
        fn ring(self: Arc<Self>, _: Tick, clock: &Clock) {
            self.0.lock().unwrap().push(clock.now());
        }
    }

    #[test]
    fn a_manual_clock_rings_each_alarm_at_its_instant() {
        let hands = ManualClock::at(Tick::from_secs(10));
        let recorder = Arc::new(Recorder(Mutex::default()));
        let alarm: Arc<dyn Alarm> = recorder.clone();
        for second in [13, 11, 12, 20] {
            hands.clock().alarm(Tick::from_secs(second), Arc::downgrade(&alarm));
        }
        assert_eq!(hands.next_alarm(), Some(Tick::from_secs(11)));
        hands.set(Tick::from_secs(15));
        assert_eq!(hands.next_alarm(), Some(Tick::from_secs(20)));
        assert_eq!(*recorder.0.lock().unwrap(), [11, 12, 13].map(Tick::from_secs));
        assert_eq!(hands.now(), Tick::from_secs(15));
    }

    #[test]
    fn an_alarm_for_a_time_that_has_passed_rings_at_once() {
        let hands = ManualClock::at(Tick::from_secs(10));
        let recorder = Arc::new(Recorder(Mutex::default()));
        let alarm: Arc<dyn Alarm> = recorder.clone();
        for second in [9, 10, 11] {
            hands.clock().alarm(Tick::from_secs(second), Arc::downgrade(&alarm));
        }
        assert_eq!(*recorder.0.lock().unwrap(), [10, 10].map(Tick::from_secs));
    }
}

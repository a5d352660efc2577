//! Time: the system's, or one that a test turns by hand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Instant, SystemTime};

use tollgate_core::{Span, Tick};

/// What a clock can wake.
pub trait Alarm: Send + Sync {
    /// The time that was asked for has come.
    fn ring(self: Arc<Self>, clock: &Clock);
}

/// Where time comes from. Cloning is cheap, and clones tell the same time.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<Hands>),
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Clock {
        Clock(Source::System)
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Tick {
        match &self.0 {
            Source::System => SystemClock::get().now(),
            Source::Manual(hands) => Tick::from_micros(hands.now.load(Ordering::SeqCst)),
        }
    }

    /// Rings `alarm` at `at`, or at once if that has passed; never if it is gone by then.
    pub fn alarm(&self, at: Tick, alarm: Weak<dyn Alarm>) {
        match &self.0 {
            #[cfg(not(loom))]
            Source::System => crate::timer::Timer::get().alarm(at, alarm),
            #[cfg(loom)]
            Source::System => drop((at, alarm)),
            Source::Manual(hands) => hands.alarm(at, alarm),
        }
    }
}

/// The monotonic clock, set to the time of day when it is first read.
///
/// Reading only the monotonic clock costs half, and it does not step. Once a second it is compared with the
/// time of day and moved forward to it if it fell behind, as it does while a machine sleeps. It is never moved
/// back.
struct SystemClock {
    started: Instant,
    offset: AtomicU64,
    compare_at: AtomicU64,
}

const COMPARE_EVERY: u64 = 1_000_000;

impl SystemClock {
    fn get() -> &'static SystemClock {
        static CLOCK: OnceLock<SystemClock> = OnceLock::new();
        CLOCK.get_or_init(SystemClock::start)
    }

    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the system's clocks")]
    fn start() -> SystemClock {
        let clock = SystemClock {
            started: Instant::now(),
            offset: AtomicU64::new(0),
            compare_at: AtomicU64::new(COMPARE_EVERY),
        };
        clock.follow_time_of_day(0);
        clock
    }

    #[inline]
    fn now(&self) -> Tick {
        let elapsed = self.started.elapsed();
        let elapsed = elapsed.as_secs() * 1_000_000 + u64::from(elapsed.subsec_micros());
        if elapsed >= self.compare_at.load(Ordering::Relaxed) {
            self.follow_time_of_day(elapsed);
        }
        Tick::from_micros(self.offset.load(Ordering::Relaxed) + elapsed)
    }

    #[cold]
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the system's clocks")]
    fn follow_time_of_day(&self, elapsed: u64) {
        self.compare_at.store(elapsed + COMPARE_EVERY, Ordering::Relaxed);
        // A time of day before 1970 is no help; then time counts from the start of the process.
        let Ok(today) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) else { return };
        let today = u64::try_from(today.as_micros()).unwrap_or(u64::MAX);
        self.offset.fetch_max(today.saturating_sub(elapsed), Ordering::Relaxed);
    }
}

/// A clock for tests. It stands still until it is turned, and rings the alarms it passes, each at its instant.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Hands>);

#[derive(Default)]
struct Hands {
    now: AtomicU64,
    alarms: std::sync::Mutex<Alarms>,
}

#[derive(Default)]
struct Alarms {
    set: u64,
    waiting: BTreeMap<(Tick, u64), Weak<dyn Alarm>>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn at(now: Tick) -> ManualClock {
        let hands = Hands { now: AtomicU64::new(now.as_micros()), ..Hands::default() };
        ManualClock(Arc::new(hands))
    }

    /// The clock to give to what is tested.
    pub fn clock(&self) -> Clock {
        Clock(Source::Manual(Arc::clone(&self.0)))
    }

    /// The time it shows.
    pub fn now(&self) -> Tick {
        self.clock().now()
    }

    /// Turns it forward by `span`, ringing what it passes.
    pub fn advance(&self, span: Span) {
        self.set(self.now() + span);
    }

    /// Turns it to `target`. Forward it rings what it passes, in order and each at its own instant; back it
    /// just goes back.
    pub fn set(&self, target: Tick) {
        while let Some((at, alarm)) = self.0.next_until(target) {
            self.0.now.fetch_max(at.as_micros(), Ordering::SeqCst);
            if let Some(alarm) = alarm.upgrade() {
                alarm.ring(&self.clock());
            }
        }
        self.0.now.store(target.as_micros(), Ordering::SeqCst);
    }
}

impl Hands {
    fn lock(&self) -> std::sync::MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn alarm(&self, at: Tick, alarm: Weak<dyn Alarm>) {
        let mut alarms = self.lock();
        alarms.set += 1;
        let order = alarms.set;
        alarms.waiting.insert((at, order), alarm);
    }

    fn next_until(&self, target: Tick) -> Option<(Tick, Weak<dyn Alarm>)> {
        let mut alarms = self.lock();
        let entry = alarms.waiting.first_entry().filter(|entry| entry.key().0 <= target)?;
        let ((at, _), alarm) = entry.remove_entry();
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
        fn ring(self: Arc<Self>, clock: &Clock) {
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
        hands.set(Tick::from_secs(15));
        assert_eq!(*recorder.0.lock().unwrap(), [11, 12, 13].map(Tick::from_secs));
        assert_eq!(hands.now(), Tick::from_secs(15));
    }

    #[test]
    fn the_system_clock_shows_the_time_of_day_and_never_goes_back() {
        let clock = Clock::system();
        let in_2020 = Tick::from_secs(1_577_836_800);
        let mut last = clock.now();
        assert!(last > in_2020);
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}

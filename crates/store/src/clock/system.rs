//! The system's time: monotonic, set by the time of day, and read from the processor's counter when it is read
//! a lot.
//!
//! Reading the monotonic clock of the system costs two to three times as much as all else that an admission
//! does, so a process that reads it often reads the counter instead. The counter drifts and, on some machines,
//! steps; so it is only ever trusted for the next few milliseconds after a look at the clock of the system.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::SystemTime;

use tollgate_core::Tick;
use tollgate_sys::{cycles, monotonic_nanos};

/// How often the monotonic clock is compared with the time of day.
const COMPARE_EVERY: u64 = 1_000_000_000;

/// How many reads make it worth a few milliseconds of another thread to measure the counter.
const READS_BEFORE_COUNTER: u64 = 10_000;

/// How long the counter is trusted after a look at the clock of the system, in nanoseconds.
const TRUSTED_FOR: u64 = 10_000_000;

/// How long that look may take, in nanoseconds. If it was interrupted it is not used.
const LOOK_MAX: u64 = 2_000;

#[derive(Debug)]
pub(super) struct SystemClock {
    /// How far the time of day is ahead of the monotonic clock, in nanoseconds. Raised when the machine was asleep or its
    /// time of day was set forward, never lowered.
    offset: AtomicU64,
    compare_at: AtomicU64,
    reads: AtomicU64,
    counter: OnceLock<CycleCounter>,
}

/// The counter of the processor, measured.
#[derive(Debug)]
struct CycleCounter {
    measured: quanta::Clock,
    /// Whether the clock that was measured is the cycle counter, which is read inline then.
    counts_cycles: bool,
}

thread_local! {
    /// What the counter showed at one instant, and what the monotonic clock did, as this thread saw it last.
    static LOOKED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

impl SystemClock {
    pub(super) fn get() -> &'static SystemClock {
        static CLOCK: OnceLock<SystemClock> = OnceLock::new();
        CLOCK.get_or_init(SystemClock::start)
    }

    fn start() -> SystemClock {
        let clock = SystemClock {
            offset: AtomicU64::new(0),
            compare_at: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            counter: OnceLock::new(),
        };
        clock.follow_time_of_day(0);
        clock
    }

    #[inline]
    pub(super) fn now(&'static self) -> Tick {
        let nanos = self.monotonic_nanos();
        Tick::from_micros((self.offset.load(Ordering::Relaxed) + nanos) / 1_000)
    }

    /// The monotonic clock: the time since the host was started, the same for all its processes, which is not set.
    #[inline]
    pub(super) fn monotonic(&'static self) -> Tick {
        Tick::from_micros(self.monotonic_nanos() / 1_000)
    }

    #[inline]
    fn monotonic_nanos(&'static self) -> u64 {
        match self.counter.get() {
            Some(counter) => counter.nanos().unwrap_or_else(|| counter.look(self)),
            None => self.nanos_before_counter(),
        }
    }

    #[cold]
    fn nanos_before_counter(&'static self) -> u64 {
        if self.reads.fetch_add(1, Ordering::Relaxed) == READS_BEFORE_COUNTER {
            let measure = || self.counter.set(CycleCounter::measure());
            // Without the thread there is no counter, and the clock of the system goes on being read.
            let _ = thread::Builder::new().name("tollgate-clock".into()).spawn(measure);
        }
        self.nanos()
    }

    /// The monotonic clock of the system, after a comparison with the time of day if that is due.
    fn nanos(&self) -> u64 {
        let nanos = monotonic_nanos();
        if nanos >= self.compare_at.load(Ordering::Relaxed) {
            self.follow_time_of_day(nanos);
        }
        nanos
    }

    #[cold]
    fn follow_time_of_day(&self, nanos: u64) {
        self.compare_at.store(nanos + COMPARE_EVERY, Ordering::Relaxed);
        self.offset.fetch_max(time_of_day_ahead(), Ordering::Relaxed);
    }
}

/// How far the time of day is ahead of the monotonic clock, in nanoseconds.
#[allow(clippy::disallowed_methods, reason = "this is the one place that reads the system's clocks")]
pub(super) fn time_of_day_ahead() -> u64 {
    // A time of day before 1970 is no help; then time counts from the start of the host.
    let Ok(today) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) else { return 0 };
    let today = u64::try_from(today.as_nanos()).unwrap_or(u64::MAX);
    // Read after the time of day: if something came between, the result is too small, never too large.
    today.saturating_sub(monotonic_nanos())
}

impl CycleCounter {
    fn measure() -> CycleCounter {
        let measured = quanta::Clock::new();
        let (before, raw, after) = (cycles(), measured.raw(), cycles());
        let counts_cycles =
            before.is_some_and(|before| before <= raw) && after.is_some_and(|after| raw <= after);
        CycleCounter { measured, counts_cycles }
    }

    #[inline]
    fn raw(&self) -> u64 {
        match cycles() {
            Some(cycles) if self.counts_cycles => cycles,
            _ => self.measured.raw(),
        }
    }

    /// The monotonic clock by the counter; `None` if it must not be trusted.
    #[inline]
    fn nanos(&self) -> Option<u64> {
        let ((then, nanos), raw) = (LOOKED.get(), self.raw());
        let since = if raw >= then { self.measured.delta_as_nanos(then, raw) } else { u64::MAX };
        (since < TRUSTED_FOR).then(|| nanos + since)
    }

    /// Looks at the clock of the system, and trusts the counter for a while if nothing came between.
    #[cold]
    fn look(&self, clock: &SystemClock) -> u64 {
        let before = self.raw();
        let nanos = clock.nanos();
        let after = self.raw();
        if self.measured.delta_as_nanos(before, after) <= LOOK_MAX {
            LOOKED.set((after, nanos));
        }
        nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_the_time_of_day() {
        let in_2020 = Tick::from_secs(1_577_836_800);
        assert!(SystemClock::get().now() > in_2020);
    }

    #[test]
    fn the_counter_stays_with_the_clock_of_the_system() {
        let clock = SystemClock::get();
        let counter = clock.counter.get_or_init(CycleCounter::measure);
        let slack = 50_000;
        let mut by_counter = 0;
        for _ in 0..1_000_000 {
            let before = clock.nanos();
            let nanos = counter.nanos();
            let after = clock.nanos();
            let Some(nanos) = nanos else {
                counter.look(clock);
                continue;
            };
            by_counter += 1;
            assert!(before <= nanos + slack && nanos <= after + slack, "{before} {nanos} {after}");
        }
        assert!(by_counter > 0, "the counter was never trusted");
    }
}

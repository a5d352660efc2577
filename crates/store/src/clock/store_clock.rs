//! The clock of a store that the processes of one host share: the monotonic clock plus an offset that they agree on.
//!
//! The offset is raised at once when the wall clock is ahead of the store clock: the wall clock was set forward, or the
//! machine slept. When the wall clock is set back, the store clock is ahead of it and is slewed: it runs at 7/8 of its speed
//! until it is ahead by a second or less. So it never steps back by more than what it is slewed between two comparisons,
//! and a bucket is never stamped far in the future of a later reading.
//!
//! Why no rate is exceeded: the offset never exceeds the greatest that the wall clock of any process had. So between two
//! instants store time passes as fast as the monotonic clock, and is ahead by the forward steps of the wall clock once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Tick;

use super::{Clock, Correction, HostClock};

/// How often the offset is compared with the wall clock, in microseconds.
const COMPARE_EVERY: u64 = 1_000_000;

/// A store clock that is behind the wall clock by less than this is right, in microseconds. Two readings of two clocks
/// differ by less, and a process that only looks at a store must not write for that.
const JITTER: u64 = 1_000;

/// The offset of a store clock, in memory that processes share or in that of this process.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tollgate_store::{ClockWords, HostClock, StoreClock};
///
/// /// The offset and the time of its comparison, in memory that processes share.
/// struct SharedWords(Arc<[AtomicU64; 2]>);
///
/// impl ClockWords for SharedWords {
///     fn offset(&self) -> &AtomicU64 {
///         &self.0[0]
///     }
///
///     fn compared(&self) -> &AtomicU64 {
///         &self.0[1]
///     }
/// }
///
/// let words = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
/// let clock = StoreClock::shared(HostClock::system(), SharedWords(Arc::clone(&words)));
/// assert_eq!(clock.offset(), words[0].load(Ordering::Relaxed));
/// ```
pub trait ClockWords: Send + Sync {
    /// Returns the microseconds that store time is ahead of the monotonic clock.
    fn offset(&self) -> &AtomicU64;

    /// Returns when an offset that is too far ahead was last compared with a wall clock, by the monotonic clock in
    /// microseconds; 0 if it is not too far ahead.
    fn compared(&self) -> &AtomicU64;
}

/// The clock of a store that the processes of a host share.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_store::{HostClock, StoreClock};
///
/// let store_clock = StoreClock::local(HostClock::system());
/// let year_2020 = Tick::from_secs(1_577_836_800);
/// assert!(store_clock.clock().now() > year_2020);
/// // The processes have agreed on an offset that is a minute larger, and this one follows.
/// let agreed = store_clock.offset() + 60_000_000;
/// store_clock.follow(agreed, agreed, store_clock.monotonic());
/// assert_eq!(store_clock.offset(), agreed);
/// ```
pub struct StoreClock {
    host: HostClock,
    words: Box<dyn ClockWords>,
    /// The offset is not slewed below this.
    floor: AtomicU64,
    /// The offset of the wall clock at the last comparison of this process.
    wall: AtomicU64,
    compare_at: AtomicU64,
}

impl StoreClock {
    /// A store clock that is ahead of the wall clock by no more than this is right, in microseconds.
    pub const TOLERANCE: u64 = 1_000_000;

    /// The store clock is slewed by this part of the time that passes.
    pub const SLEW: u64 = 8;

    /// A store clock that is further ahead of the wall clock than this is damage, in microseconds: a hundred years. A host whose
    /// battery is empty begins in 1970.
    pub const AHEAD_MAX: u64 = 100 * 366 * 86_400 * 1_000_000;

    /// Returns the clock of a store whose offset all its processes have in memory.
    pub fn shared(host: HostClock, words: impl ClockWords + 'static) -> Arc<StoreClock> {
        StoreClock::new(host, Box::new(words), 0)
    }

    /// Returns the clock of a store whose processes agree on the offset elsewhere. It is not slewed before it
    /// [follows](StoreClock::follow) what they agreed on.
    pub fn local(host: HostClock) -> Arc<StoreClock> {
        StoreClock::new(host, Box::<LocalWords>::default(), u64::MAX)
    }

    fn new(host: HostClock, words: Box<dyn ClockWords>, floor: u64) -> Arc<StoreClock> {
        let (wall, compare_at) = (AtomicU64::new(0), AtomicU64::new(0));
        let clock = StoreClock { host, words, floor: floor.into(), wall, compare_at };
        clock.monotonic();
        Arc::new(clock)
    }

    /// Returns the clock that shows store time.
    pub fn clock(self: &Arc<Self>) -> Clock {
        self.host.monotonic().corrected(Arc::clone(self))
    }

    /// Returns the clocks of the host.
    pub fn host(&self) -> &HostClock {
        &self.host
    }

    /// Returns the time of the monotonic clock in microseconds, after a comparison with the wall clock if that is due.
    pub fn monotonic(&self) -> u64 {
        let monotonic = self.host.monotonic().now();
        self.by(monotonic);
        monotonic.as_micros()
    }

    /// Returns the offset.
    pub fn offset(&self) -> u64 {
        self.words.offset().load(Ordering::Relaxed)
    }

    /// Returns the offset that the wall clock had when it was last compared.
    pub fn wall_offset(&self) -> u64 {
        self.wall.load(Ordering::Relaxed)
    }

    /// Sets the offset, and how far it is slewed, to what the processes agreed on at the instant `monotonic`.
    pub fn follow(&self, offset: u64, floor: u64, monotonic: u64) {
        self.words.offset().store(offset, Ordering::Relaxed);
        self.words.compared().store(monotonic, Ordering::Relaxed);
        self.floor.store(floor, Ordering::Relaxed);
    }

    #[cold]
    fn compare(&self, monotonic: u64, due: u64) {
        let next = monotonic.saturating_add(COMPARE_EVERY);
        if self.compare_at.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            // Another thread does it.
            return;
        }
        let (wall, floor) = (self.host.wall_offset(), self.floor.load(Ordering::Relaxed));
        self.wall.store(wall, Ordering::Relaxed);
        let (words, offset) = (&self.words, self.offset());
        if offset <= wall.saturating_add(StoreClock::TOLERANCE) {
            if words.compared().load(Ordering::Relaxed) != 0 {
                words.compared().store(0, Ordering::Relaxed);
            }
            if offset.saturating_add(JITTER) < wall {
                words.offset().fetch_max(wall, Ordering::Relaxed);
            }
            return;
        }
        // One process has each part of the elapsed time to slew by. If it is killed before it does, that part is skipped.
        let elapsed = match words.compared().swap(monotonic, Ordering::Relaxed) {
            0 => 0,
            before => monotonic.saturating_sub(before),
        };
        let slewed = |offset| Some(slewed(offset, wall, floor, elapsed));
        let _ = words.offset().fetch_update(Ordering::Relaxed, Ordering::Relaxed, slewed);
    }
}

impl Correction for StoreClock {
    #[inline]
    fn by(&self, monotonic: Tick) -> i64 {
        let due = self.compare_at.load(Ordering::Relaxed);
        if monotonic.as_micros() >= due {
            self.compare(monotonic.as_micros(), due);
        }
        i64::try_from(self.offset()).unwrap_or(i64::MAX)
    }
}

/// The offset that is ahead of the wall clock's, after it is slewed.
fn slewed(offset: u64, wall: u64, floor: u64, elapsed: u64) -> u64 {
    if offset.saturating_sub(wall) > StoreClock::AHEAD_MAX {
        return wall;
    }
    offset.saturating_sub(elapsed / StoreClock::SLEW).max(wall).max(floor.min(offset))
}

/// The words of a clock that this process has for itself.
#[derive(Default)]
struct LocalWords {
    offset: AtomicU64,
    compared: AtomicU64,
}

impl ClockWords for LocalWords {
    fn offset(&self) -> &AtomicU64 {
        &self.offset
    }

    fn compared(&self) -> &AtomicU64 {
        &self.compared
    }
}

#[cfg(test)]
mod tests;

//! The clock of a store in shared memory: its offset is in the shared memory, so all processes have the same time.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tollgate_store::{Clock, ClockWords, HostClock, StoreClock};

use crate::arena::Arena;
use crate::builder::ShmStoreBuilder;
use crate::layout::{CLOCK_COMPARED, CLOCK_OFFSET};

struct ArenaWords(Arc<Arena>);

impl ClockWords for ArenaWords {
    fn offset(&self) -> &AtomicU64 {
        self.0.word(CLOCK_OFFSET)
    }

    fn compared(&self) -> &AtomicU64 {
        self.0.word(CLOCK_COMPARED)
    }
}

/// Returns the clock of the settings, or the one that all processes share which have the memory open.
pub(crate) fn open(settings: &ShmStoreBuilder, arena: &Arc<Arena>) -> Clock {
    if let Some(clock) = &settings.clock {
        return clock.clone();
    }
    let host = settings.host.clone().unwrap_or_else(HostClock::system);
    StoreClock::shared(host, ArenaWords(Arc::clone(arena))).clock()
}

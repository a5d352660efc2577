//! What every law starts from: a store that no other law uses, and the manual clock that it goes by.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Tick;
use tollgate_store::records::{Cursor, Page};
use tollgate_store::{Backend, Clock, ManualClock};

/// Opens a store that goes by the clock it is given, and that no other law uses.
pub type OpenBackend<'a> = &'a dyn Fn(Clock) -> Arc<dyn Backend>;

/// Where the clocks of stores and records start: on a whole second.
pub(crate) const START: Tick = Tick::from_secs(1_000_000);

/// Where the clocks of limiters and sets start: 2025-12-31T23:59:59.123457Z, on no round number of any period.
pub(crate) const UNEVEN_START: Tick = Tick::from_micros(1_767_225_599_123_457);

/// A store timeout that no law reaches: by a clock that is moved by hours, a store that is being asked would seem unavailable.
pub(crate) const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Opens a store whose clock starts at `start`, and returns that clock with it.
pub(crate) fn open_at<S>(start: Tick, open: impl FnOnce(Clock) -> S) -> (ManualClock, S) {
    let clock = ManualClock::at(start);
    let store = open(clock.clock());
    (clock, store)
}

/// Reads all pages, each from the cursor that the page before it returned.
pub(crate) fn all_pages<T>(mut read: impl FnMut(Option<Cursor>) -> Page<T>) -> Vec<T> {
    let (mut all, mut seen) = (Vec::new(), Vec::new());
    loop {
        let Page { items, next } = read(seen.last().cloned());
        all.extend(items);
        let Some(next) = next else { return all };
        assert!(!seen.contains(&next), "a cursor came twice: {next:?}");
        seen.push(next);
    }
}

/// Opens a store whose clock stands at [`START`].
pub(crate) fn open_at_start<S>(open: impl FnOnce(Clock) -> S) -> S {
    open_at(START, open).1
}

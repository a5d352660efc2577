//! Ids of calls and of lease holders.

use tollgate_core::Tick;

use crate::{OpId, random_id};

/// Returns an id that no other call has.
///
/// ```
/// use tollgate_store::workers::unique_id;
///
/// assert_ne!(unique_id(), unique_id());
/// ```
pub fn unique_id() -> OpId {
    OpId(random_id())
}

/// Returns an id that begins with the time, in milliseconds, and is random otherwise: later ones are larger.
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_store::workers::time_ordered_id;
///
/// assert!(time_ordered_id(Tick::from_secs(1)) < time_ordered_id(Tick::from_secs(2)));
/// ```
pub fn time_ordered_id(now: Tick) -> u128 {
    let millis = u128::from(now.as_micros() / 1_000);
    millis << 80 | random_id() >> 48
}

//! ULIDs, the ids of events: they sort by time, and within a process in the order of their
//! creation.

use tollgate_core::Tick;
use tollgate_store::{Mutex, PerProcess, generation};

use crate::{Result, random};

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The number of bits below the time.
const RANDOM_BITS: u32 = 80;

/// Creates ULIDs: 48 bits of milliseconds, then 80 random bits.
#[derive(Debug)]
pub(crate) struct Ulids {
    /// Per process, because a forked process must not continue the sequence of its parent.
    last: PerProcess<Mutex<Option<u128>>>,
}

impl Default for Ulids {
    fn default() -> Ulids {
        Ulids { last: PerProcess::new(generation().into()) }
    }
}

impl Ulids {
    /// Returns an id that sorts behind all that were created before, even if the clock goes back.
    pub(crate) fn next(&self, now: Tick) -> Result<u128> {
        let millis = u128::from(now.as_micros() / 1_000) & ((1 << 48) - 1);
        let mut last = self.last.get(generation().into()).lock();
        let next = match *last {
            // In the same millisecond the next number: 2^80 of them do not run out.
            Some(last) if millis <= last >> RANDOM_BITS => last.wrapping_add(1),
            _ => {
                let mut wide = [0; 16];
                wide[6..].copy_from_slice(&random::bytes::<10>()?);
                millis << RANDOM_BITS | u128::from_be_bytes(wide)
            }
        };
        *last = Some(next);
        Ok(next)
    }
}

/// Returns true if a text is a ULID.
pub(crate) fn is_ulid(text: &str) -> bool {
    text.len() == 26 && text.bytes().all(|byte| CROCKFORD.contains(&byte))
}

/// Returns the id as 26 characters that sort like it.
pub(crate) fn text(id: u128) -> String {
    (0..26).rev().map(|digit| char::from(CROCKFORD[(id >> (5 * digit) & 31) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_ulids_are() {
        assert_eq!(text(0), "0".repeat(26));
        assert_eq!(text(u128::MAX), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        // The example of the ULID specification begins with its time.
        assert!(text(1_469_918_176_385 << RANDOM_BITS).starts_with("01ARYZ6S41"));
    }

    #[test]
    fn ids_sort_in_the_order_in_which_they_are_made() {
        let ids = Ulids::default();
        let times = [5, 5, 5, 6, 4, 6, 7, 1].map(Tick::from_millis);
        let made: Vec<String> = times.iter().map(|now| text(ids.next(*now).unwrap())).collect();
        assert!(made.is_sorted_by(|one, two| one < two), "{made:?}");
    }
}

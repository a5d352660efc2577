//! How often which trouble was met.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Trouble;

/// How often each kind of trouble was met since the store was opened, also where another try went well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Troubles {
    /// [`Trouble::Throttled`].
    pub throttled: u64,
    /// [`Trouble::Conflict`] and [`Trouble::InProgress`].
    pub conflicts: u64,
    /// [`Trouble::Unprocessed`].
    pub unprocessed: u64,
    /// [`Trouble::Server`].
    pub server: u64,
    /// [`Trouble::Timeout`].
    pub timeouts: u64,
    /// [`Trouble::Lost`].
    pub lost: u64,
    /// [`Trouble::Skewed`].
    pub skewed: u64,
    /// What does not pass: a missing table or permission, a call that is not valid.
    pub refused: u64,
    /// How many calls were made again because of it.
    pub retries: u64,
}

const KINDS: usize = 9;
const REFUSED: usize = 7;
const RETRIES: usize = 8;

/// The counters behind [`Troubles`].
#[derive(Debug, Default)]
pub(crate) struct ServiceErrorCounters([AtomicU64; KINDS]);

impl ServiceErrorCounters {
    pub(crate) fn met(&self, trouble: &Trouble) {
        let kind = match trouble {
            Trouble::Throttled => 0,
            Trouble::Conflict | Trouble::InProgress => 1,
            Trouble::Unprocessed => 2,
            Trouble::Server(_) => 3,
            Trouble::Timeout => 4,
            Trouble::Lost(_) => 5,
            Trouble::Skewed => 6,
            _ => REFUSED,
        };
        self.0[kind].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn retried(&self) {
        self.0[RETRIES].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn troubles(&self) -> Troubles {
        let [throttled, conflicts, unprocessed, server, timeouts, lost, skewed, refused, retries] =
            self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        Troubles { throttled, conflicts, unprocessed, server, timeouts, lost, skewed, refused, retries }
    }
}

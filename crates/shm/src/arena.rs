//! The arena: the shared memory with its lock, its journal and its growth.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, fstat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tollgate_store::usage::UsageRetention;

use crate::error::TxnAbort;
use crate::layout::{CAPACITY_MAX, LOCK, SIZE, SIZE_MIN};
use crate::lock;
use crate::map::{SharedMap, WORD};
use crate::tx::Tx;

/// The least that a file grows by, in words, so that it grows rarely.
const GROWTH_MIN: u64 = 1 << 14;

/// The most that a file grows by beyond what is needed: half a gigabyte of zeros takes a while.
const GROWTH_MAX: u64 = 1 << 22;

/// How often growing the file is retried after a signal.
const INTERRUPTED_MAX: u32 = 100;

/// The memory, and the file behind it.
pub(crate) struct Arena {
    pub(crate) path: PathBuf,
    pub(crate) tag: u32,
    pub(crate) seed: u64,
    pub(crate) timeout: Duration,
    /// How long records of usage are kept that this process writes.
    pub(crate) usage_retention: UsageRetention,
    file: OwnedFd,
    map: SharedMap,
    /// How many words the file is known to have.
    known: AtomicU64,
}

impl Arena {
    /// Makes the arena of a file that has at least [`SIZE_MIN`] words and may have as many as the map.
    pub(crate) fn new(
        path: PathBuf,
        file: OwnedFd,
        map: SharedMap,
        seed: u64,
        tag: u32,
        timeout: Duration,
    ) -> Arena {
        let (usage_retention, known) = (UsageRetention::default(), AtomicU64::new(SIZE_MIN));
        Arena { path, tag, seed, timeout, usage_retention, file, map, known }
    }

    /// Shows other processes that this one uses the file. Returns false if the file was removed in between.
    pub(crate) fn share(&self) -> bool {
        let is_shared = flock(&self.file, FlockOperation::LockShared).is_ok();
        let (open, named) = (fstat(&self.file), rustix::fs::stat(&self.path));
        let id = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        is_shared && named.is_ok_and(|named| open.is_ok_and(|open| id(open) == id(named)))
    }

    /// Removes the file if no other process [shares](Arena::share) it.
    pub(crate) fn remove_if_last(&self) {
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Returns a word that is read without the lock, or slept on.
    #[inline]
    pub(crate) fn word(&self, at: u64) -> &AtomicU64 {
        debug_assert!(at < SIZE_MIN, "these are there as long as the file is");
        &self.map.words(SIZE_MIN as usize)[at as usize]
    }

    /// Returns how many words the file may have.
    pub(crate) fn capacity(&self) -> u64 {
        self.map.len() as u64
    }

    /// Takes the lock. If its last owner died in a transaction, that is rolled back first.
    #[inline]
    pub(crate) fn begin(&self) -> Result<Tx<'_>, TxnAbort> {
        self.begin_within(self.timeout)
    }

    /// As [`begin`](Arena::begin), with a shorter timeout.
    #[inline]
    pub(crate) fn begin_within(&self, timeout: Duration) -> Result<Tx<'_>, TxnAbort> {
        lock::take(self.word(LOCK), self.tag, timeout)?;
        // From here on the lock is released on every path.
        let mut tx = Tx::locked(self);
        tx.repair()?;
        Ok(tx)
    }

    /// Returns the number of words that the file records as its size.
    #[inline]
    pub(crate) fn words(&self) -> Result<&[AtomicU64], TxnAbort> {
        let size = self.word(SIZE).load(Ordering::Relaxed);
        if size > self.known.load(Ordering::Relaxed) {
            self.look(size)?;
        }
        if size < SIZE_MIN {
            return Err(TxnAbort::Damaged("it says that it is smaller than the least of files"));
        }
        Ok(self.map.words(size as usize))
    }

    /// Checks that the file really has so many words: the system ends a process that touches a word behind the end.
    #[cold]
    fn look(&self, size: u64) -> Result<(), TxnAbort> {
        if size > self.capacity().min(CAPACITY_MAX) {
            return Err(TxnAbort::Damaged("it says that it is larger than it may be"));
        }
        let found =
            fstat(self.file.as_fd()).map_err(|_| TxnAbort::Damaged("it cannot be looked at"))?.st_size as u64;
        if found < size * WORD {
            return Err(TxnAbort::Damaged("it was cut off"));
        }
        self.known.fetch_max(size, Ordering::Relaxed);
        Ok(())
    }

    /// Grows the file to at least so many words, with some to spare, and returns how many it has then. The space is
    /// allocated: a later write to it cannot find that it is missing.
    pub(crate) fn grow(&self, from: u64, needed: u64) -> Result<u64, TxnAbort> {
        let most = self.capacity();
        if needed > most {
            return Err(TxnAbort::NoRoom);
        }
        let generous = needed.max(from + from.clamp(GROWTH_MIN, GROWTH_MAX)).min(most);
        for size in [generous, needed] {
            // The system does not return an error to a process that exceeds this bound, but ends it.
            let bound = getrlimit(Resource::Fsize).current;
            if bound.is_some_and(|bound| size * WORD > bound) {
                continue;
            }
            let mut tries = (0..INTERRUPTED_MAX)
                .map(|_| fallocate(&self.file, FallocateFlags::empty(), from * WORD, (size - from) * WORD));
            match tries.find(|tried| *tried != Err(Errno::INTR)).unwrap_or(Err(Errno::NOSPC)) {
                Ok(()) => {
                    self.known.fetch_max(size, Ordering::Relaxed);
                    return Ok(size);
                }
                Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::NOMEM) => {}
                Err(_) => return Err(TxnAbort::Damaged("its file cannot grow")),
            }
        }
        Err(TxnAbort::NoRoom)
    }
}

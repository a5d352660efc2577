//! The finished items of a journal, by id.

use std::fs::File;
use std::path::Path;

use super::ids::IdMap;
use super::line::{LineStatus, fingerprint_of};
use super::recognise::LineFacts;
use super::scan::Scan;
use super::{JournalError, OnFailed};

/// The finished items of a journal, and the items that the input of a run has had. No id is stored
/// as text (see [`IdMap`]).
#[derive(Debug, Default)]
pub struct Finished {
    on_failed: OnFailed,
    earlier: IdMap<FinishedEntry>,
    /// The ids that the input has had and the journal has not.
    read: IdMap<()>,
    failed: usize,
}

/// The stored facts of an item. There may be millions, so no byte is wasted on alignment.
#[derive(Clone, Copy, Debug, Default)]
struct FinishedEntry {
    fingerprint: [u8; 8],
    flags: u8,
}

const HAS_FINGERPRINT: u8 = 1;
const HAS_FAILED: u8 = 2;
/// The input of this run has had the item.
const WAS_READ: u8 = 4;

impl FinishedEntry {
    fn of(known: &LineFacts) -> FinishedEntry {
        let fingerprint = known.fingerprint.as_deref().and_then(fingerprint_of);
        let has_fingerprint = if fingerprint.is_some() { HAS_FINGERPRINT } else { 0 };
        let has_failed = if known.status == LineStatus::Failed { HAS_FAILED } else { 0 };
        let fingerprint = fingerprint.unwrap_or_default().to_ne_bytes();
        FinishedEntry { fingerprint, flags: has_fingerprint | has_failed }
    }

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn fingerprint(&self) -> Option<u64> {
        self.is(HAS_FINGERPRINT).then(|| u64::from_ne_bytes(self.fingerprint))
    }
}

/// What is known of an item of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenBefore {
    /// Nothing: the item is to be called.
    New,
    /// An earlier run finished it.
    Earlier {
        /// True if it failed there.
        has_failed: bool,
        /// True if its payload was another one then.
        has_changed: bool,
    },
    /// The input of this run has had it before.
    Again,
}

impl Finished {
    pub(super) fn new(on_failed: OnFailed) -> Finished {
        Finished { on_failed, ..Finished::default() }
    }

    /// Reads the finished items of a journal, which is neither locked nor changed.
    ///
    /// # Errors
    ///
    /// As of [`Journal::open`](super::Journal::open), except that it may be in use.
    pub fn load(path: impl AsRef<Path>, on_failed: OnFailed) -> Result<Finished, JournalError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|cause| JournalError::Io { path: path.into(), cause })?;
        let (mut scan, mut finished) = (Scan::new(path, &file)?, Finished::new(on_failed));
        while let Some(known) = scan.next()? {
            finished.insert(&known);
        }
        Ok(finished)
    }

    pub(super) fn len(&self) -> usize {
        self.earlier.len() - self.retried()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.earlier.get(id).is_some_and(|entry| !self.is_retried(entry))
    }

    pub(super) fn failed(&self) -> usize {
        self.failed - self.retried()
    }

    /// Returns how many items have failed and are to be retried.
    pub(super) fn retried(&self) -> usize {
        if self.on_failed == OnFailed::Retry { self.failed } else { 0 }
    }

    fn is_retried(&self, entry: FinishedEntry) -> bool {
        entry.is(HAS_FAILED) && self.on_failed == OnFailed::Retry
    }

    /// Adds the item of a line. Returns true if there was another line of its id.
    pub(super) fn insert(&mut self, known: &LineFacts) -> bool {
        let entry = FinishedEntry::of(known);
        let old = self.earlier.insert(&known.id, entry);
        self.failed += usize::from(entry.is(HAS_FAILED));
        self.failed -= usize::from(old.is_some_and(|old| old.is(HAS_FAILED)));
        old.is_some()
    }

    /// Returns what is known of an item of the input, and remembers that the input has it.
    pub fn check(&mut self, id: &str, fingerprint: Option<u64>) -> SeenBefore {
        let Some(entry) = self.earlier.get_mut(id) else {
            return if self.read.insert(id, ()).is_some() { SeenBefore::Again } else { SeenBefore::New };
        };
        let was_read = entry.is(WAS_READ);
        entry.flags |= WAS_READ;
        let entry = *entry;
        if was_read {
            return SeenBefore::Again;
        }
        if self.is_retried(entry) {
            return SeenBefore::New;
        }
        let both = entry.fingerprint().zip(fingerprint);
        SeenBefore::Earlier {
            has_failed: entry.is(HAS_FAILED),
            has_changed: both.is_some_and(|(a, b)| a != b),
        }
    }
}

//! The items that are finished, by id.

use std::collections::HashMap;

use super::line::{Status, fingerprint_of};
use super::recognise::Known;

/// The items that are finished.
#[derive(Debug, Default)]
pub(super) struct Finished(HashMap<Box<str>, Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    fingerprint: Option<u64>,
    has_failed: bool,
    /// The input of this run has had it.
    was_read: bool,
}

/// What is known of an item of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing: it is to be called.
    New,
    /// An earlier run finished it.
    Earlier {
        /// It failed there.
        has_failed: bool,
        /// Its payload was another one then.
        has_changed: bool,
    },
    /// The input of this run has had it before.
    Again,
}

impl Finished {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    pub(super) fn failed(&self) -> usize {
        self.0.values().filter(|entry| entry.has_failed).count()
    }

    /// Adds what a line says. Returns true if there was another line of this id.
    pub(super) fn insert(&mut self, known: Known) -> bool {
        let fingerprint = known.fingerprint.as_deref().and_then(fingerprint_of);
        let entry = Entry { fingerprint, has_failed: known.status == Status::Failed, was_read: false };
        self.0.insert(known.id.into_boxed_str(), entry).is_some()
    }

    /// Adds an item that this run has finished.
    pub(super) fn add(&mut self, id: &str, fingerprint: Option<u64>, has_failed: bool) {
        self.0.insert(id.into(), Entry { fingerprint, has_failed, was_read: true });
    }

    pub(super) fn remove_failed(&mut self) {
        self.0.retain(|_, entry| !entry.has_failed);
    }

    /// Says what is known of an item of the input, and remembers that the input has it.
    pub(super) fn read(&mut self, id: &str, fingerprint: Option<u64>) -> Seen {
        let Some(entry) = self.0.get_mut(id) else { return Seen::New };
        if std::mem::replace(&mut entry.was_read, true) {
            return Seen::Again;
        }
        let both = entry.fingerprint.zip(fingerprint);
        Seen::Earlier { has_failed: entry.has_failed, has_changed: both.is_some_and(|(a, b)| a != b) }
    }
}

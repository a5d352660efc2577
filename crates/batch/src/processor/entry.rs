//! What is known of each accepted item.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use tokio::task::AbortHandle;
use tollgate::Tick;

use super::dues::{Due, DueFor};
use crate::item::{ItemShared, Label};
use crate::pace::Load;
use crate::scope::StartedCall;

/// Where an item of the batch is kept.
pub(super) type ItemSlot = u32;

/// An item that was accepted and is not finished.
pub(super) struct ItemEntry<P, S, O> {
    pub(super) card: Arc<ItemShared<P, S>>,
    /// Which item of the input it was; no two have the same.
    pub(super) index: u64,
    pub(super) label: Label,
    pub(super) lane: usize,
    pub(super) load: u64,
    pub(super) cost_micros: u64,
    pub(super) payload_bytes: usize,
    pub(super) accepted: Tick,
    pub(super) calls: u32,
    pub(super) throttles: u32,
    pub(super) first_throttle: Option<Tick>,
    /// How often it failed: overloaded, transient, invalid.
    pub(super) failures: [u32; 3],
    /// In which place and which run of failures there it failed last.
    pub(super) failed_in: Option<(usize, u64)>,
    pub(super) tokens_used: u64,
    pub(super) cost_spent: u64,
    /// What the provider replied last to a call that was refused or brought nothing of use, if the handler passed it on.
    pub(super) rejected: Option<O>,
    pub(super) at: ItemPhase,
}

/// Where an item is.
pub(super) enum ItemPhase {
    /// In its queue.
    Waiting,
    /// In its queue since it met a 429.
    Parked,
    /// It pauses after a failure.
    Pausing,
    /// Under way.
    Flying(InFlight),
}

/// A call under way.
pub(super) struct InFlight {
    pub(super) call: StartedCall,
    pub(super) place: usize,
    pub(super) started: Tick,
    pub(super) abort: AbortHandle,
    /// How far it is, if something has to be reserved first.
    pub(super) stage: Option<Arc<AtomicU8>>,
    pub(super) cut: Option<AbortReason>,
}

/// Why a call was called off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbortReason {
    /// It took too long.
    Attempt,
    /// Its item took too long.
    Item,
    /// A cooldown began before it had started.
    Recalled,
}

impl<P, S, O> ItemEntry<P, S, O> {
    /// Which attempt the next call is, or the one under way.
    pub(super) fn attempt(&self) -> u32 {
        1 + self.failures.iter().sum::<u32>()
    }

    /// Whether it has not failed, unless in this run of failures.
    pub(super) fn is_blameless(&self, run: (usize, u64)) -> bool {
        self.attempt() == 1 && self.failed_in.is_none_or(|failed_in| failed_in == run)
    }

    /// Returns true if something happens to it when this is due.
    pub(super) fn expects(&self, due: &Due) -> bool {
        let is_meant = match (due.what, &self.at) {
            (DueFor::Retry, at) => matches!(at, ItemPhase::Pausing),
            (DueFor::Attempt(number), at) => matches!(at, ItemPhase::Flying(_)) && number == self.calls,
            (DueFor::Item, _) => true,
        };
        is_meant && self.index == due.index
    }

    pub(super) fn load(&self) -> Load {
        Load::tokens(self.load)
    }
}

/// Entries by slot.
pub(super) struct ItemEntries<P, S, O> {
    slots: Vec<Option<ItemEntry<P, S, O>>>,
    free: Vec<ItemSlot>,
}

impl<P, S, O> Default for ItemEntries<P, S, O> {
    fn default() -> ItemEntries<P, S, O> {
        ItemEntries { slots: Vec::new(), free: Vec::new() }
    }
}

impl<P, S, O> ItemEntries<P, S, O> {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, entry: ItemEntry<P, S, O>) -> ItemSlot {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(entry);
                slot
            }
            None => {
                self.slots.push(Some(entry));
                (self.slots.len() - 1) as ItemSlot
            }
        }
    }

    pub(super) fn get(&self, slot: ItemSlot) -> Option<&ItemEntry<P, S, O>> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: ItemSlot) -> Option<&mut ItemEntry<P, S, O>> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, slot: ItemSlot) -> Option<ItemEntry<P, S, O>> {
        let entry = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(entry)
    }

    /// The slots in use, by the order of the input.
    pub(super) fn slots(&self) -> Vec<ItemSlot> {
        let mut slots: Vec<(u64, ItemSlot)> = (0..self.slots.len() as ItemSlot)
            .filter_map(|slot| Some((self.get(slot)?.index, slot)))
            .collect();
        slots.sort_unstable();
        slots.into_iter().map(|(_, slot)| slot).collect()
    }
}

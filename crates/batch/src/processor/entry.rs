//! The accepted items of a batch that are not finished, and their phases.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use tokio::task::AbortHandle;
use tollgate::Tick;

use super::timers::{ItemTimer, TimerKind};
use crate::item::{ItemShared, Label};
use crate::pace::Load;
use crate::scope::StartedCall;

/// The index of an item in [`ItemEntries`].
pub(super) type ItemSlot = u32;

/// An accepted item that is not finished.
pub(super) struct ItemEntry<P, S, O> {
    pub(super) item: Arc<ItemShared<P, S>>,
    /// The index of the item in the input, which is unique.
    pub(super) index: u64,
    pub(super) label: Label,
    pub(super) queue: usize,
    pub(super) load: u64,
    pub(super) cost_micros: u64,
    pub(super) payload_bytes: usize,
    pub(super) accepted: Tick,
    pub(super) calls: u32,
    pub(super) throttles: u32,
    pub(super) first_throttle: Option<Tick>,
    /// How often the item failed: overloaded, transient, invalid.
    pub(super) failures: [u32; 3],
    /// The account in which the item failed last, and the number of the run of failures there.
    pub(super) failed_in: Option<(usize, u64)>,
    pub(super) tokens_used: u64,
    pub(super) cost_spent: u64,
    /// The last reply to a call that was refused or whose output was not usable, if the handler
    /// passed it on.
    pub(super) rejected: Option<O>,
    pub(super) phase: ItemPhase,
}

/// The phase of an item.
pub(super) enum ItemPhase {
    /// The item is queued.
    Waiting,
    /// The item is queued since it met a 429.
    Parked,
    /// The item pauses after a failure.
    Pausing,
    /// A call of the item is in flight.
    InFlight(InFlight),
}

/// A call in flight.
pub(super) struct InFlight {
    pub(super) call: StartedCall,
    pub(super) account: usize,
    pub(super) started: Tick,
    pub(super) abort: AbortHandle,
    /// The stage of the call, if it reserves something first.
    pub(super) stage: Option<Arc<AtomicU8>>,
    pub(super) abort_reason: Option<AbortReason>,
}

/// Why a call was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbortReason {
    /// The call took too long.
    Attempt,
    /// The item took too long.
    Item,
    /// A cooldown began before the call had started.
    Recalled,
}

impl<P, S, O> ItemEntry<P, S, O> {
    /// Returns the number of the attempt of the next call, or of the one in flight.
    pub(super) fn attempt(&self) -> u32 {
        1 + self.failures.iter().sum::<u32>()
    }

    /// Returns true if the item has not failed before, unless in this run of failures.
    pub(super) fn is_blameless(&self, run: (usize, u64)) -> bool {
        self.attempt() == 1 && self.failed_in.is_none_or(|failed_in| failed_in == run)
    }

    /// Returns true if the timer applies to the item in its phase.
    pub(super) fn expects(&self, timer: &ItemTimer) -> bool {
        let is_meant = match (timer.kind, &self.phase) {
            (TimerKind::Retry, at) => matches!(at, ItemPhase::Pausing),
            (TimerKind::Attempt(number), at) => matches!(at, ItemPhase::InFlight(_)) && number == self.calls,
            (TimerKind::Item, _) => true,
        };
        is_meant && self.index == timer.index
    }

    pub(super) fn load(&self) -> Load {
        Load::tokens(self.load)
    }
}

/// All entries, by slot.
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

    /// Returns the slots in use, in the order of the input.
    pub(super) fn slots(&self) -> Vec<ItemSlot> {
        let mut slots: Vec<(u64, ItemSlot)> = (0..self.slots.len() as ItemSlot)
            .filter_map(|slot| Some((self.get(slot)?.index, slot)))
            .collect();
        slots.sort_unstable();
        slots.into_iter().map(|(_, slot)| slot).collect()
    }
}

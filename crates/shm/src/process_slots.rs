//! Process slots: the processes that have waiters, the wake-up word of each, and its last heartbeat.
//!
//! A slot has the process, how many times it was assigned, the wake-up word, and the heartbeat. A waiter names the
//! slot and that number, so that no process is mistaken for one that had the slot before.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate_store::{Process, monotonic_nanos};

use crate::arena::Arena;
use crate::error::TxnAbort;
use crate::layout::{PROCESS_WORDS, PROCESSES, PROCESSES_MAX};
use crate::lock;
use crate::tx::Tx;
use crate::waiter_list;

const OWNER: u64 = 0;
const ASSIGNED: u64 = 1;
const WAKEUPS: u64 = 2;
const BEAT: u64 = 3;

/// How often a process that has waiters notes that it is awake.
pub(crate) const BEAT_EVERY: Duration = Duration::from_millis(200);

/// After how many milliseconds without a heartbeat other processes check whether a process has ended.
const SUSPECT_AFTER: u64 = 20;

/// After how many milliseconds without a heartbeat a process counts as stopped, so that others pass its waiters.
const SILENT_AFTER: u64 = 750;

/// How many slots are checked for one whose process has ended, when none is free.
const LOOKS_MAX: usize = 64;

/// A slot that was assigned to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessSlot(pub(crate) u64);

/// The liveness of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It runs, as far as is known.
    Awake,
    /// Its last heartbeat is a while ago. It may have ended; if not, it counts as awake.
    Unproven(Process),
    /// It is stopped, or has ended.
    Silent(Process),
    /// It has released the slot.
    Gone,
}

/// Returns the monotonic time in milliseconds, which is the same for all processes of the host and cannot be set.
fn monotonic() -> u64 {
    monotonic_nanos() / 1_000_000
}

impl ProcessSlot {
    fn new(number: u64, assigned: u64) -> ProcessSlot {
        ProcessSlot(number << 32 | assigned & 0xFFFF_FFFF)
    }

    /// Returns the word of the slot; `None` if there is no such slot.
    fn at(self) -> Option<u64> {
        let number = self.0 >> 32;
        (number < PROCESSES_MAX).then(|| PROCESSES + number * PROCESS_WORDS)
    }

    /// Returns the process of the slot, if it was not assigned to another since.
    fn owner(self, tx: &Tx<'_>) -> Result<Option<Process>, TxnAbort> {
        let Some(at) = self.at() else { return Ok(None) };
        let (owner, assigned) = (tx.get(at + OWNER)?, tx.get(at + ASSIGNED)?);
        let is_its = owner != 0 && assigned & 0xFFFF_FFFF == self.0 & 0xFFFF_FFFF;
        Ok(is_its.then(|| process_of(tx, owner)))
    }

    /// Returns the liveness of its process.
    pub(crate) fn liveness(self, tx: &Tx<'_>) -> Result<Liveness, TxnAbort> {
        let (Some(at), Some(owner)) = (self.at(), self.owner(tx)?) else { return Ok(Liveness::Gone) };
        let silence = monotonic().saturating_sub(tx.get(at + BEAT)?);
        Ok(match silence {
            SILENT_AFTER.. => Liveness::Silent(owner),
            SUSPECT_AFTER.. => Liveness::Unproven(owner),
            _ => Liveness::Awake,
        })
    }

    /// Notes that its process is awake.
    pub(crate) fn beat(self, arena: &Arena) {
        if let Some(at) = self.at() {
            arena.word(at + BEAT).store(monotonic(), Ordering::Relaxed);
        }
    }

    /// Returns the value of the wake-up word. A thread sleeps until it has another value.
    pub(crate) fn wakeups(self, arena: &Arena) -> u64 {
        self.at().map_or(0, |at| arena.word(at + WAKEUPS).load(Ordering::Acquire))
    }

    /// Sleeps until the wake-up word differs from `seen`, and no longer than `most`.
    pub(crate) fn sleep(self, arena: &Arena, seen: u64, most: Duration) {
        if let Some(at) = self.at() {
            lock::sleep(arena.word(at + WAKEUPS), seen, most);
        }
    }

    /// Wakes the process.
    pub(crate) fn wake(self, arena: &Arena) {
        if let Some(at) = self.at() {
            let wakeups = arena.word(at + WAKEUPS);
            wakeups.fetch_add(1, Ordering::Release);
            lock::wake(wakeups, u32::MAX);
        }
    }
}

fn process_of(tx: &Tx<'_>, owner: u64) -> Process {
    Process { tag: tx.arena.tag, pid: owner as u32, started: (owner >> 32) as u32 }
}

/// Assigns a slot to this process: a free one, or that of a process that has ended. Returns `None` if all are taken.
pub(crate) fn assign(tx: &mut Tx<'_>) -> Result<Option<ProcessSlot>, TxnAbort> {
    let Some(number) = free(tx)? else { return Ok(None) };
    let this = Process::this();
    let at = PROCESSES + number * PROCESS_WORDS;
    // What was noted for the process that had it before is of no use to this one.
    waiter_list::take_notes(tx, ProcessSlot::new(number, tx.get(at + ASSIGNED)?))?;
    let assigned = tx.add(at + ASSIGNED, 1)?;
    tx.set_root(at + OWNER, u64::from(this.started) << 32 | u64::from(this.pid))?;
    let slot = ProcessSlot::new(number, assigned);
    slot.beat(tx.arena);
    Ok(Some(slot))
}

fn free(tx: &Tx<'_>) -> Result<Option<u64>, TxnAbort> {
    let mut silent = Vec::new();
    for number in 0..PROCESSES_MAX {
        let at = PROCESSES + number * PROCESS_WORDS;
        let owner = tx.get(at + OWNER)?;
        if owner == 0 {
            return Ok(Some(number));
        }
        if silent.len() < LOOKS_MAX && monotonic().saturating_sub(tx.get(at + BEAT)?) >= SILENT_AFTER {
            silent.push((number, process_of(tx, owner)));
        }
    }
    Ok(silent.into_iter().find(|(_, process)| !process.is_there()).map(|(number, _)| number))
}

/// Releases a slot.
pub(crate) fn release(tx: &mut Tx<'_>, slot: ProcessSlot) -> Result<(), TxnAbort> {
    match (slot.owner(tx)?, slot.at()) {
        (Some(_), Some(at)) => tx.set_root(at + OWNER, 0),
        _ => Ok(()),
    }
}

//! Process slots: the processes that have waiters, the bell of each, and when each was last awake.
//!
//! A slot has the process, how often it was given, the bell, and the heartbeat. A waiter names the slot and how often it was
//! given by then, so that no process is mistaken for one that had the slot before.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate_store::{Process, monotonic_nanos};

use crate::arena::Arena;
use crate::error::TxnAbort;
use crate::layout::{PROCESS_WORDS, PROCESSES, PROCESSES_MAX};
use crate::lock;
use crate::tx::Tx;
use crate::waiter_list;

const WHO: u64 = 0;
const TIMES: u64 = 1;
const BELL: u64 = 2;
const BEAT: u64 = 3;

/// How often a process that has waiters notes that it is awake.
pub(crate) const BEAT_EVERY: Duration = Duration::from_millis(200);

/// After how many milliseconds without a heartbeat it is worth a look whether a process has ended.
const SUSPECT_AFTER: u64 = 20;

/// After how many milliseconds without a heartbeat a process counts as stopped, so that others pass its waiters.
const SILENT_AFTER: u64 = 750;

/// How many slots are looked at for one whose process has ended, when none is free.
const LOOKS_MAX: usize = 64;

/// A slot that was given to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessSlot(pub(crate) u64);

/// How a process looks to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It reacts, as far as is known.
    Awake,
    /// Its last heartbeat is a while ago. It may have ended; if not, it counts as awake.
    Unproven(Process),
    /// It is stopped, or has ended.
    Silent(Process),
    /// It gave the slot back.
    Gone,
}

/// The monotonic time in milliseconds, which is the same for all processes of the host and cannot be set.
fn monotonic() -> u64 {
    monotonic_nanos() / 1_000_000
}

impl ProcessSlot {
    fn new(number: u64, times: u64) -> ProcessSlot {
        ProcessSlot(number << 32 | times & 0xFFFF_FFFF)
    }

    /// Where it is; `None` if there is no such slot.
    fn at(self) -> Option<u64> {
        let number = self.0 >> 32;
        (number < PROCESSES_MAX).then(|| PROCESSES + number * PROCESS_WORDS)
    }

    /// Whose it is, if it was not given to another since.
    fn owner(self, tx: &Tx<'_>) -> Result<Option<Process>, TxnAbort> {
        let Some(at) = self.at() else { return Ok(None) };
        let (who, times) = (tx.get(at + WHO)?, tx.get(at + TIMES)?);
        let is_its = who != 0 && times & 0xFFFF_FFFF == self.0 & 0xFFFF_FFFF;
        Ok(is_its.then(|| process_of(tx, who)))
    }

    /// Returns how its process looks.
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

    /// What the bell says. A thread that knows that sleeps until it says something else.
    pub(crate) fn bell(self, arena: &Arena) -> u64 {
        self.at().map_or(0, |at| arena.word(at + BELL).load(Ordering::Acquire))
    }

    /// Sleeps until the bell rings, if it has not since it said `heard`, and no longer than `most`.
    pub(crate) fn sleep(self, arena: &Arena, heard: u64, most: Duration) {
        if let Some(at) = self.at() {
            lock::sleep(arena.word(at + BELL), heard, most);
        }
    }

    /// Rings the bell.
    pub(crate) fn ring(self, arena: &Arena) {
        if let Some(at) = self.at() {
            let bell = arena.word(at + BELL);
            bell.fetch_add(1, Ordering::Release);
            lock::wake(bell, u32::MAX);
        }
    }
}

fn process_of(tx: &Tx<'_>, who: u64) -> Process {
    Process { tag: tx.arena.tag, pid: who as u32, started: (who >> 32) as u32 }
}

/// Gives a slot to this process: a free one, or that of a process that has ended. Returns `None` if all are taken.
pub(crate) fn give(tx: &mut Tx<'_>) -> Result<Option<ProcessSlot>, TxnAbort> {
    let Some(number) = free(tx)? else { return Ok(None) };
    let this = Process::this();
    let at = PROCESSES + number * PROCESS_WORDS;
    // What was noted for the process that had it before is of no use to this one.
    waiter_list::take_notes(tx, ProcessSlot::new(number, tx.get(at + TIMES)?))?;
    let times = tx.add(at + TIMES, 1)?;
    tx.set_root(at + WHO, u64::from(this.started) << 32 | u64::from(this.pid))?;
    let slot = ProcessSlot::new(number, times);
    slot.beat(tx.arena);
    Ok(Some(slot))
}

fn free(tx: &Tx<'_>) -> Result<Option<u64>, TxnAbort> {
    let mut silent = Vec::new();
    for number in 0..PROCESSES_MAX {
        let at = PROCESSES + number * PROCESS_WORDS;
        let who = tx.get(at + WHO)?;
        if who == 0 {
            return Ok(Some(number));
        }
        if silent.len() < LOOKS_MAX && monotonic().saturating_sub(tx.get(at + BEAT)?) >= SILENT_AFTER {
            silent.push((number, process_of(tx, who)));
        }
    }
    Ok(silent.into_iter().find(|(_, process)| !process.is_there()).map(|(number, _)| number))
}

/// Takes a slot back.
pub(crate) fn take_back(tx: &mut Tx<'_>, slot: ProcessSlot) -> Result<(), TxnAbort> {
    match (slot.owner(tx)?, slot.at()) {
        (Some(_), Some(at)) => tx.set_root(at + WHO, 0),
        _ => Ok(()),
    }
}

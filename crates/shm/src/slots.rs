//! Processes that have waiters: who they are, and the bell of each.
//!
//! A slot is: the process, how often it was given, the bell. Whoever waits names the slot and how often it was given by
//! then, so that nobody is mistaken for one who had it before.

use std::sync::atomic::Ordering;

use tollgate_store::Process;

use crate::arena::Arena;
use crate::error::Stop;
use crate::layout::{PROCESS_WORDS, PROCESSES, PROCESSES_MAX};
use crate::line;
use crate::lock;
use crate::tx::Tx;

const WHO: u64 = 0;
const TIMES: u64 = 1;
const BELL: u64 = 2;

/// A slot that was given to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot(pub(crate) u64);

impl Slot {
    fn new(number: u64, times: u64) -> Slot {
        Slot(number << 32 | times & 0xFFFF_FFFF)
    }

    /// Where it is; `None` if there is no such slot.
    fn at(self) -> Option<u64> {
        let number = self.0 >> 32;
        (number < PROCESSES_MAX).then(|| PROCESSES + number * PROCESS_WORDS)
    }

    /// Whose it is, if it was not given to another since.
    pub(crate) fn owner(self, tx: &Tx<'_>) -> Result<Option<Process>, Stop> {
        let Some(at) = self.at() else { return Ok(None) };
        let (who, times) = (tx.get(at + WHO)?, tx.get(at + TIMES)?);
        let is_its = who != 0 && times & 0xFFFF_FFFF == self.0 & 0xFFFF_FFFF;
        let process = |who: u64| Process { tag: tx.arena.tag, pid: who as u32, started: (who >> 32) as u32 };
        Ok(is_its.then(|| process(who)))
    }

    /// What the bell says. Whoever has heard that sleeps until it says something else.
    pub(crate) fn bell(self, arena: &Arena) -> u64 {
        self.at().map_or(0, |at| arena.word(at + BELL).load(Ordering::Acquire))
    }

    /// Sleeps until the bell rings, if it has not since it said `heard`, and no longer than `most`.
    pub(crate) fn sleep(self, arena: &Arena, heard: u64, most: std::time::Duration) {
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

/// Gives a slot to this process: a free one, or that of a process that is gone. `None` if there is none.
pub(crate) fn give(tx: &mut Tx<'_>) -> Result<Option<Slot>, Stop> {
    let this = Process::this();
    let who = u64::from(this.started) << 32 | u64::from(this.pid);
    let mut free = None;
    for number in 0..PROCESSES_MAX {
        if tx.get(PROCESSES + number * PROCESS_WORDS + WHO)? == 0 {
            free = Some(number);
            break;
        }
    }
    let is_gone = |number: &u64| {
        let who = tx.get(PROCESSES + number * PROCESS_WORDS + WHO).unwrap_or(0);
        let process = Process { tag: this.tag, pid: who as u32, started: (who >> 32) as u32 };
        !process.is_there()
    };
    let Some(number) = free.or_else(|| (0..PROCESSES_MAX).find(is_gone)) else { return Ok(None) };
    let at = PROCESSES + number * PROCESS_WORDS;
    // What was noted for who had it before is nobody's any more.
    line::take_pokes(tx, Slot::new(number, tx.get(at + TIMES)?))?;
    let times = tx.add(at + TIMES, 1)?;
    tx.set_root(at + WHO, who)?;
    Ok(Some(Slot::new(number, times)))
}

/// Takes a slot back.
pub(crate) fn take_back(tx: &mut Tx<'_>, slot: Slot) -> Result<(), Stop> {
    match (slot.owner(tx)?, slot.at()) {
        (Some(_), Some(at)) => tx.set_root(at + WHO, 0),
        _ => Ok(()),
    }
}

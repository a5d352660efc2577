//! A transaction: changes under the lock, which the journal can undo until they are committed.
//!
//! Before a word is changed, where it is and what it was go to the journal. A commit is one store: it makes the journal
//! empty. A process that finds a journal that is not empty, because its writer has ended, plays it back. So if a
//! process is killed at any instant, the next one finds the state before or the state after.
//!
//! Words of a block that this transaction has allocated need no journal: no process can reach them before the commit.
//! For the same reason what is freed is only given to others with the commit.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::alloc::LEAST;
use crate::arena::Arena;
use crate::error::TxnAbort;
use crate::layout::{ARENA, JOURNAL, JOURNAL_MAX, JOURNAL_USED, LOCK, SIZE};
use crate::lock;

/// A transaction under the lock. If it is dropped before it is [committed](Tx::commit), all changes are undone.
pub(crate) struct Tx<'a> {
    pub(crate) arena: &'a Arena,
    words: &'a [AtomicU64],
    /// How many entries the journal has.
    used: u64,
    /// Blocks that are free once this is committed.
    pub(crate) freed: Vec<u64>,
}

/// Writes a word. All processes see writes in this order: what was written before is visible before it.
#[inline(always)]
fn store(word: &AtomicU64, value: u64) {
    #[cfg(feature = "write-points")]
    crate::failpoints::pass();
    word.store(value, Ordering::Release);
}

impl<'a> Tx<'a> {
    /// Makes a transaction for a thread that has just got the lock.
    #[inline]
    pub(crate) fn locked(arena: &'a Arena) -> Tx<'a> {
        Tx { arena, words: &[], used: 0, freed: Vec::new() }
    }

    /// Reads the size of the file, and rolls back the transaction of a process that ended in it.
    #[inline]
    pub(crate) fn repair(&mut self) -> Result<(), TxnAbort> {
        self.words = self.arena.words()?;
        self.used = self.get(JOURNAL_USED)?;
        if self.used != 0 {
            return self.undo();
        }
        Ok(())
    }

    /// Returns the value of a word.
    #[inline(always)]
    pub(crate) fn get(&self, at: u64) -> Result<u64, TxnAbort> {
        match self.words.get(at as usize) {
            Some(word) => Ok(word.load(Ordering::Relaxed)),
            None => Err(TxnAbort::Damaged("something in it is said to be where it does not reach")),
        }
    }

    /// Returns the block that a word links to, or 0. It is checked, so that a small offset from it stays in the memory
    /// and never reaches the words in front of the blocks.
    #[inline(always)]
    pub(crate) fn link_at(&self, at: u64) -> Result<u64, TxnAbort> {
        match self.get(at)? {
            0 => Ok(0),
            block => self.check_link(block),
        }
    }

    /// Returns the block that a word links to, which must not be 0.
    #[inline(always)]
    pub(crate) fn block_at(&self, at: u64) -> Result<u64, TxnAbort> {
        self.check_link(self.get(at)?)
    }

    #[inline(always)]
    fn check_link(&self, block: u64) -> Result<u64, TxnAbort> {
        match block > ARENA && block < self.words.len() as u64 {
            true => Ok(block),
            false => Err(TxnAbort::Damaged("something in it leads nowhere")),
        }
    }

    /// Returns how many blocks there are at most: a caller that follows more links is in a cycle.
    #[inline]
    pub(crate) fn steps_max(&self) -> u64 {
        self.words.len() as u64 / LEAST
    }

    /// Returns words of a block.
    #[inline(always)]
    pub(crate) fn slice(&self, at: u64, len: u64) -> Result<&'a [AtomicU64], TxnAbort> {
        let end = at.checked_add(len).filter(|_| at >= ARENA);
        let words = end.and_then(|end| self.words.get(at as usize..end as usize));
        words.ok_or(TxnAbort::Damaged("a part of it is said to be where it does not reach"))
    }

    /// Changes a word of a block.
    #[inline(always)]
    pub(crate) fn set(&mut self, at: u64, value: u64) -> Result<(), TxnAbort> {
        match at >= ARENA {
            true => self.change(at, value),
            false => Err(TxnAbort::Damaged("a block is said to be in front of all blocks")),
        }
    }

    /// Changes a word that is in front of the blocks.
    #[inline(always)]
    pub(crate) fn set_root(&mut self, at: u64, value: u64) -> Result<(), TxnAbort> {
        debug_assert!(at < JOURNAL && at != LOCK && at != JOURNAL_USED);
        self.change(at, value)
    }

    #[inline(always)]
    fn change(&mut self, at: u64, value: u64) -> Result<(), TxnAbort> {
        let old = self.get(at)?;
        if old == value {
            return Ok(());
        }
        if self.used >= JOURNAL_MAX {
            return Err(TxnAbort::TooMuch);
        }
        let entry = (JOURNAL + self.used * 2) as usize;
        store(&self.words[entry], at);
        store(&self.words[entry + 1], old);
        self.used += 1;
        store(&self.words[JOURNAL_USED as usize], self.used);
        store(&self.words[at as usize], value);
        Ok(())
    }

    /// Writes a word of a block that this transaction has allocated.
    #[inline(always)]
    pub(crate) fn set_new(&mut self, at: u64, value: u64) -> Result<(), TxnAbort> {
        let word = self.words.get(at as usize).filter(|_| at >= ARENA);
        store(
            word.ok_or(TxnAbort::Damaged("a new part of it is said to be where it does not reach"))?,
            value,
        );
        Ok(())
    }

    /// Writes a word that is not undone: one that only ever counts up.
    #[inline]
    pub(crate) fn count_up(&mut self, at: u64) -> Result<u64, TxnAbort> {
        let next = self.get(at)?.wrapping_add(1);
        store(&self.words[at as usize], next);
        Ok(next)
    }

    /// Adds to a word that is never below zero.
    pub(crate) fn add(&mut self, at: u64, difference: i64) -> Result<u64, TxnAbort> {
        let sum = self.get(at)?.checked_add_signed(difference);
        let sum = sum.ok_or(TxnAbort::Damaged("it counts less than nothing"))?;
        self.change(at, sum)?;
        Ok(sum)
    }

    /// Grows the file behind the last word.
    pub(crate) fn grow(&mut self, needed: u64) -> Result<(), TxnAbort> {
        let size = self.arena.grow(self.words.len() as u64, needed)?;
        self.set_root(SIZE, size)?;
        self.words = self.arena.words()?;
        Ok(())
    }

    /// Commits. After the one store in here, nothing is undone any more.
    #[inline]
    pub(crate) fn commit(&mut self) -> Result<(), TxnAbort> {
        self.free_all()?;
        if self.used != 0 {
            store(&self.words[JOURNAL_USED as usize], 0);
            self.used = 0;
        }
        Ok(())
    }

    /// Plays the journal back, the last entry first. It is idempotent: if a process ends here, the next one repeats it.
    #[cold]
    fn undo(&mut self) -> Result<(), TxnAbort> {
        if self.used > JOURNAL_MAX {
            return Err(TxnAbort::Damaged("its journal says that it is longer than it may be"));
        }
        for entry in (0..self.used).rev() {
            let (at, old) = (self.get(JOURNAL + entry * 2)?, self.get(JOURNAL + entry * 2 + 1)?);
            // No transaction changes these words, because they control the rollback itself.
            let is_kept = at == LOCK || at == JOURNAL_USED || (JOURNAL..ARENA).contains(&at);
            let word = self.words.get(at as usize).filter(|_| !is_kept);
            store(word.ok_or(TxnAbort::Damaged("its journal names what no journal has"))?, old);
        }
        store(&self.words[JOURNAL_USED as usize], 0);
        self.used = 0;
        // The size may have been undone as well.
        self.words = self.arena.words()?;
        Ok(())
    }
}

impl Drop for Tx<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.used != 0 {
            // What cannot be undone now, the next process undoes.
            let _ = self.undo();
        }
        lock::release(self.arena.word(LOCK));
    }
}

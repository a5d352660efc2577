//! Limits in the memory: each text once, by where it is, for as long as a bucket is under them.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use tollgate_core::Limits;

use crate::error::TxnAbort;
use crate::key::{KeyKind, MapKey};
use crate::layout::LIMITS_GONE;
use crate::ordered::MapNode;
use crate::tx::Tx;

/// How many limits a process remembers. Beyond that it begins anew.
const KNOWN_MAX: usize = 4_096;

/// Limits in the memory are: how many use them, the node whose key is their text.
pub(crate) const USERS: u64 = 0;
const TEXT: u64 = 1;
const WORDS: u64 = 2;

/// What a process knows about the limits in the memory, so that those in use are neither written out nor read again.
#[derive(Default)]
pub(crate) struct ShmLimitsCache {
    /// How many were gone by then: where one was that is gone there may be another.
    gone: u64,
    /// Whether the transaction in which something may have been learnt has not come to its end.
    is_uncertain: bool,
    by_block: HashMap<u64, Limits, FixedState>,
    /// By where they are in this process, which stays theirs while they are kept here.
    by_place: HashMap<usize, (Limits, u64), FixedState>,
}

/// The text of limits. Their version is kept apart, so that a new one of the same limits is no new text.
fn text_of(limits: &Limits) -> String {
    if limits.version() == 0 { limits.to_text() } else { limits.clone().at_version(0).to_text() }
}

fn key_of(text: &str) -> MapKey {
    MapKey::new(KeyKind::Limits).raw(text.as_bytes())
}

#[inline]
fn place_of(limits: &Limits) -> usize {
    limits.as_ptr() as usize
}

impl ShmLimitsCache {
    /// Forgets what may not be so any more: what was learnt in a transaction that came to nothing is not.
    #[inline]
    pub(crate) fn refresh(&mut self, tx: &Tx<'_>) -> Result<(), TxnAbort> {
        let gone = tx.get(LIMITS_GONE)?;
        if gone != self.gone || self.is_uncertain {
            self.clear();
            self.gone = gone;
        }
        self.is_uncertain = true;
        Ok(())
    }

    /// What was learnt is so: the transaction is committed.
    #[inline]
    pub(crate) fn confirm(&mut self) {
        self.is_uncertain = false;
    }

    fn clear(&mut self) {
        self.by_block.clear();
        self.by_place.clear();
    }

    /// Whether the limits in this block are known to be these.
    #[inline]
    pub(crate) fn are(&self, block: u64, limits: &Limits) -> bool {
        self.by_place.get(&place_of(limits)).is_some_and(|(_, known)| *known == block)
    }

    /// The limits in a block. `expected` are those they probably are: then they need not be read, and may have a calendar
    /// that only their owner knows.
    #[inline]
    pub(crate) fn get(
        &mut self,
        tx: &Tx<'_>,
        block: u64,
        expected: Option<&Limits>,
    ) -> Result<Limits, TxnAbort> {
        match expected {
            Some(expected) if self.are(block, expected) => Ok(expected.clone()),
            _ => self.read(tx, block, expected),
        }
    }

    fn read(&mut self, tx: &Tx<'_>, block: u64, expected: Option<&Limits>) -> Result<Limits, TxnAbort> {
        if let Some(limits) = self.by_block.get(&block) {
            let Some(expected) = expected.filter(|expected| limits == *expected) else {
                return Ok(limits.clone());
            };
            // From now on it is seen at a glance that they are the same.
            self.learn(block, expected);
            return Ok(expected.clone());
        }
        let key = tx.key_of(MapNode(tx.block_at(block + TEXT)?))?;
        let text = key.split_first().and_then(|(_, text)| str::from_utf8(text).ok());
        let text = text.ok_or(TxnAbort::Damaged("limits are no text"))?;
        let limits = match expected.filter(|limits| text_of(limits) == text) {
            Some(limits) => limits.clone(),
            None => Limits::from_text(text, &|text| tollgate_calendar::parse(text).ok())
                .map_err(|why| TxnAbort::Unreadable(format!("limits cannot be read: {why}")))?,
        };
        self.learn(block, &limits);
        Ok(limits)
    }

    /// The block of these limits, with one user more. They are put there if they are not.
    pub(crate) fn put(&mut self, tx: &mut Tx<'_>, limits: &Limits) -> Result<u64, TxnAbort> {
        let block = match self.by_place.get(&place_of(limits)) {
            Some((_, block)) => *block,
            None => {
                let block = find_or_make(tx, limits)?;
                self.learn(block, limits);
                block
            }
        };
        tx.add(block + USERS, 1)?;
        Ok(block)
    }

    /// Counts one user less. Limits without users are removed.
    pub(crate) fn drop_user(&mut self, tx: &mut Tx<'_>, block: u64) -> Result<(), TxnAbort> {
        if tx.add(block + USERS, -1)? == 0 {
            let key = MapKey::from_bytes(&tx.key_of(MapNode(tx.block_at(block + TEXT)?))?);
            tx.remove(&key)?;
            tx.free(block);
            self.clear();
            self.gone = tx.get(LIMITS_GONE)?.wrapping_add(1);
            tx.set_root(LIMITS_GONE, self.gone)?;
        }
        Ok(())
    }

    fn learn(&mut self, block: u64, limits: &Limits) {
        if self.by_place.len() >= KNOWN_MAX {
            self.clear();
        }
        self.by_block.insert(block, limits.clone());
        self.by_place.insert(place_of(limits), (limits.clone(), block));
    }
}

fn find_or_make(tx: &mut Tx<'_>, limits: &Limits) -> Result<u64, TxnAbort> {
    let key = key_of(&text_of(limits));
    if let Some((node, _)) = tx.find(&key)? {
        return tx.block_of(node);
    }
    let block = tx.alloc(WORDS)?;
    let node = tx.insert(&key, block)?;
    tx.set_new(block + USERS, 0)?;
    tx.set_new(block + TEXT, node.0)?;
    Ok(block)
}

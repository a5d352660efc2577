//! Limits in the memory: each text is stored once, in a block that is freed with its last user.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use tollgate_core::Limits;
use tollgate_store::txn::MeteredBucket;

use crate::error::TxnAbort;
use crate::key::{KeyKind, MapKey};
use crate::layout::LIMITS_GONE;
use crate::ordered::MapNode;
use crate::tx::Tx;

/// How many limits a process caches. Beyond that the cache is cleared.
const KNOWN_MAX: usize = 4_096;

/// The block of limits has the number of users, and the node whose key is their text.
pub(crate) const USERS: u64 = 0;
const TEXT: u64 = 1;
const WORDS: u64 = 2;

/// Caches the limits in the memory for a process, so that those in use are neither written nor read again.
#[derive(Default)]
pub(crate) struct ShmLimitsCache {
    /// How many limits had been removed when the cache was filled: the block of removed limits may have others now.
    gone: u64,
    /// Whether the transaction in which something may have been cached is not committed yet.
    is_uncertain: bool,
    by_block: HashMap<u64, Limits, FixedState>,
    /// By their address in this process, which stays theirs while they are cached here.
    by_place: HashMap<usize, (Limits, u64), FixedState>,
    /// The address and the block of `by_place` that were looked up last: one call asks for them several times.
    last: (usize, u64),
    /// The bucket that was written last: the next one under the same limits is read into its memory, with no allocation and
    /// no count of users of the limits.
    spare: Option<MeteredBucket>,
}

/// Returns the text of limits. Their version is stored separately, so that a new version of the same limits has the
/// same text.
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
    /// Clears the cache if limits were removed since, or if it was filled in a transaction that was rolled back.
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

    /// Confirms the cache: the transaction is committed.
    #[inline]
    pub(crate) fn confirm(&mut self) {
        self.is_uncertain = false;
    }

    fn clear(&mut self) {
        self.by_block.clear();
        self.by_place.clear();
        self.last = (0, 0);
    }

    /// Returns whether the limits in this block are known to be these.
    #[inline]
    pub(crate) fn are(&mut self, block: u64, limits: &Limits) -> bool {
        let place = place_of(limits);
        if self.last == (place, block) {
            return true;
        }
        let are_they = self.by_place.get(&place).is_some_and(|(_, known)| *known == block);
        if are_they {
            self.last = (place, block);
        }
        are_they
    }

    /// Returns the limits in a block. `expected` are the limits that they probably are: if so, they need not be parsed,
    /// and may have a calendar that only the caller knows.
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

    /// Returns a bucket under the limits in a block, to be read into. `expected` are the limits that they probably are.
    #[inline]
    pub(crate) fn bucket(
        &mut self,
        tx: &Tx<'_>,
        block: u64,
        expected: Option<&Limits>,
    ) -> Result<MeteredBucket, TxnAbort> {
        if let Some(expected) = expected
            && self.are(block, expected)
            && let Some(spare) = self.spare.take_if(|spare| spare.stored.limits.same(expected))
        {
            return Ok(spare);
        }
        Ok(MeteredBucket::fresh(&self.get(tx, block, expected)?))
    }

    /// Keeps a bucket for the next one to be read into.
    #[inline]
    pub(crate) fn keep(&mut self, bucket: MeteredBucket) {
        self.spare = Some(bucket);
    }

    fn read(&mut self, tx: &Tx<'_>, block: u64, expected: Option<&Limits>) -> Result<Limits, TxnAbort> {
        if let Some(limits) = self.by_block.get(&block) {
            let Some(expected) = expected.filter(|expected| limits == *expected) else {
                return Ok(limits.clone());
            };
            // From now on a comparison of addresses shows that they are the same.
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

    /// Returns the block of these limits, which is created if need be, and counts one more user.
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
        self.last = (0, 0);
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

//! The table of buckets: chains that grow in number one at a time, so that no call pays for all of them.
//!
//! With n chains, a hash belongs to the chain of its low bits: as many as count past n, or one fewer if there is no
//! such chain yet. The buckets of a new chain were all in one other chain, so adding it moves only those. Chains are in
//! segments, each as large as all before it together, so that none ever moves.

use crate::error::TxnAbort;
use crate::key::MapKey;
use crate::layout::{BUCKETS, CHAINS, SEGMENTS, SEGMENTS_MAX, hash};
use crate::ordered::MapNode;
use crate::tx::Tx;

/// How many chains there are at first.
const CHAINS_MIN: u64 = 64;

/// The words of an entry that belong to the table: the next entry of its chain, its hash, the node that has its key.
pub(crate) const NEXT: u64 = 0;
pub(crate) const HASH: u64 = 1;
pub(crate) const NODE: u64 = 2;

impl Tx<'_> {
    /// Makes an empty table.
    pub(crate) fn make_table(&mut self) -> Result<(), TxnAbort> {
        self.make_segment(0, CHAINS_MIN)?;
        self.set_root(CHAINS, CHAINS_MIN)
    }

    /// Returns the hash of the key of a bucket.
    #[inline]
    pub(crate) fn hash_of(&self, key: &MapKey) -> u64 {
        key.with_words(|words, len| hash(self.arena.seed, words, len))
    }

    /// Returns the entry with this key.
    #[inline]
    pub(crate) fn find_entry(&self, key: &MapKey) -> Result<Option<u64>, TxnAbort> {
        key.with_words(|words, len| self.find_words(words, len))
    }

    #[inline]
    fn find_words(&self, words: &[u64], len: u64) -> Result<Option<u64>, TxnAbort> {
        let hash = hash(self.arena.seed, words, len);
        let mut entry = self.link_at(self.chain_of(hash)?)?;
        for _ in 0..self.steps_max() {
            if entry == 0 {
                return Ok(None);
            }
            if self.get(entry + HASH)? == hash {
                let node = MapNode(self.block_at(entry + NODE)?);
                if self.compare_words(node, words, len)?.is_eq() {
                    return Ok(Some(entry));
                }
            }
            entry = self.link_at(entry + NEXT)?;
        }
        Err(circle())
    }

    /// Puts a new entry into its chain.
    pub(crate) fn link_entry(&mut self, entry: u64, hash: u64, node: MapNode) -> Result<(), TxnAbort> {
        let chain = self.chain_of(hash)?;
        self.set_new(entry + NEXT, self.get(chain)?)?;
        self.set_new(entry + HASH, hash)?;
        self.set_new(entry + NODE, node.0)?;
        self.set(chain, entry)?;
        if self.add(BUCKETS, 1)? > self.get(CHAINS)? {
            self.split()?;
        }
        Ok(())
    }

    /// Replaces an entry of a chain by another.
    pub(crate) fn relink_entry(&mut self, old: u64, new: u64) -> Result<(), TxnAbort> {
        let link = self.link_to(old)?;
        for at in [NEXT, HASH, NODE] {
            self.set_new(new + at, self.get(old + at)?)?;
        }
        self.set(link, new)
    }

    /// Removes an entry from its chain.
    pub(crate) fn unlink_entry(&mut self, entry: u64) -> Result<(), TxnAbort> {
        let link = self.link_to(entry)?;
        self.set(link, self.get(entry + NEXT)?)?;
        self.add(BUCKETS, -1)?;
        Ok(())
    }

    /// Returns the entries of a chain.
    pub(crate) fn entries(&self, chain: u64) -> Result<Vec<u64>, TxnAbort> {
        let mut entries = Vec::new();
        let mut entry = self.link_at(self.chain(chain)?)?;
        while entry != 0 {
            entries.push(entry);
            if entries.len() as u64 > self.steps_max() {
                return Err(circle());
            }
            entry = self.link_at(entry + NEXT)?;
        }
        Ok(entries)
    }

    /// Returns the word that links to an entry.
    fn link_to(&self, entry: u64) -> Result<u64, TxnAbort> {
        let mut link = self.chain_of(self.get(entry + HASH)?)?;
        for _ in 0..self.steps_max() {
            match self.link_at(link)? {
                found if found == entry => return Ok(link),
                0 => return Err(TxnAbort::Damaged("a bucket is not in its chain")),
                other => link = other + NEXT,
            }
        }
        Err(circle())
    }

    #[inline]
    fn chain_of(&self, hash: u64) -> Result<u64, TxnAbort> {
        self.chain(number(hash, self.get(CHAINS)?))
    }

    /// Returns the word of the first entry of a chain.
    #[inline]
    fn chain(&self, number: u64) -> Result<u64, TxnAbort> {
        let (segment, place) = place_of(number);
        if segment >= SEGMENTS_MAX {
            return Err(TxnAbort::Damaged("it has more chains than it can have"));
        }
        Ok(self.block_at(SEGMENTS + segment)? + place)
    }

    /// Adds a chain.
    fn split(&mut self) -> Result<(), TxnAbort> {
        let chains = self.get(CHAINS)?;
        let (segment, place) = place_of(chains);
        if segment >= SEGMENTS_MAX {
            return Ok(());
        }
        if place == 0 && self.get(SEGMENTS + segment)? == 0 {
            self.make_segment(segment, chains)?;
        }
        let old = number(chains, chains);
        let moving = self.entries(old)?;
        self.set_root(CHAINS, chains + 1)?;
        let (mut stays, mut goes) = (self.chain(old)?, self.chain(chains)?);
        for entry in moving {
            let last = match number(self.get(entry + HASH)?, chains + 1) == old {
                true => &mut stays,
                false => &mut goes,
            };
            self.set(*last, entry)?;
            *last = entry + NEXT;
        }
        self.set(stays, 0)?;
        self.set(goes, 0)
    }

    fn make_segment(&mut self, segment: u64, chains: u64) -> Result<(), TxnAbort> {
        let block = self.alloc(chains)?;
        for at in block..block + chains {
            self.set_new(at, 0)?;
        }
        self.set_root(SEGMENTS + segment, block)
    }
}

fn circle() -> TxnAbort {
    TxnAbort::Damaged("a chain of buckets goes round in a circle")
}

/// Returns the chain of a hash, if there are `chains` of them.
#[inline]
fn number(hash: u64, chains: u64) -> u64 {
    let chains = chains.clamp(CHAINS_MIN, 1 << 40);
    let mask = u64::MAX >> chains.leading_zeros();
    let number = hash & mask;
    if number < chains { number } else { number & mask >> 1 }
}

/// Returns the segment of a chain, and its index in it.
#[inline]
fn place_of(number: u64) -> (u64, u64) {
    if number < CHAINS_MIN {
        return (0, number);
    }
    let power = u64::from(number.ilog2());
    (power - u64::from(CHAINS_MIN.ilog2()) + 1, number - (1 << power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_has_a_chain_and_a_new_chain_takes_from_one_only() {
        for chains in CHAINS_MIN..600 {
            let old = number(chains, chains);
            for hash in 0..2_000u64 {
                let (before, after) = (number(hash, chains), number(hash, chains + 1));
                assert!(before < chains && after <= chains);
                assert!(before == after || before == old && after == chains, "{hash} of {chains}");
            }
        }
    }

    #[test]
    fn chains_have_places_of_their_own() {
        let mut seen = std::collections::HashSet::new();
        for number in 0..5_000 {
            let (segment, place) = place_of(number);
            let size = if segment == 0 { CHAINS_MIN } else { CHAINS_MIN << (segment - 1) };
            assert!(place < size);
            assert!(seen.insert((segment, place)));
        }
    }
}

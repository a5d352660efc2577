//! The block allocator: sizes in steps of a quarter of a power of two, and a free list for each size.
//!
//! In front of each block is a word with its size. It is written when the block is cut from unused memory, and never
//! changes.

use crate::error::TxnAbort;
use crate::layout::{ARENA, BUMP, FREE, SIZES_MAX};
use crate::tx::Tx;

/// The smallest block.
pub(crate) const LEAST: u64 = 4;

/// Returns the number of the smallest size with room for `words` words.
fn size_for(words: u64) -> u64 {
    if words <= LEAST {
        return 0;
    }
    let last = words - 1;
    let power = u64::from(last.ilog2());
    let quarter = last >> (power - 2) & 3;
    (power - 2) * 4 + quarter + 1
}

/// Returns how many words blocks of a size have.
pub(crate) fn words_of(size: u64) -> u64 {
    match size.checked_sub(1) {
        None => LEAST,
        Some(above) => {
            let (power, quarter) = (above / 4 + 2, above % 4);
            (1 << power) + ((quarter + 1) << (power - 2))
        }
    }
}

impl Tx<'_> {
    /// Allocates a block with room for so many words, whose contents are undefined.
    pub(crate) fn alloc(&mut self, words: u64) -> Result<u64, TxnAbort> {
        if words > self.arena.capacity() {
            return Err(TxnAbort::NoRoom);
        }
        let size = size_for(words);
        if size >= SIZES_MAX {
            return Err(TxnAbort::NoRoom);
        }
        let first = self.link_at(FREE + size)?;
        if first != 0 {
            self.check_block(first, Some(size))?;
            let next = self.link_at(first)?;
            self.set_root(FREE + size, next)?;
            // The first word is the link of the free list if this is undone, so it goes to the journal. All other words
            // are free to write.
            self.set(first, !next)?;
            return Ok(first);
        }
        let (bump, words) = (self.get(BUMP)?, words_of(size));
        let end = bump.checked_add(1 + words).filter(|_| bump >= ARENA);
        let end = end.ok_or(TxnAbort::Damaged("what was never used is said to be where it cannot be"))?;
        if self.slice(bump, 1 + words).is_err() {
            self.grow(end)?;
        }
        self.set_root(BUMP, end)?;
        self.set_new(bump, size)?;
        Ok(bump + 1)
    }

    /// Frees a block, once this is committed.
    pub(crate) fn free(&mut self, block: u64) {
        self.freed.push(block);
    }

    /// Puts the freed blocks into the free lists.
    #[inline]
    pub(crate) fn free_all(&mut self) -> Result<(), TxnAbort> {
        while let Some(block) = self.freed.pop() {
            let size = self.check_block(block, None)?;
            let first = self.get(FREE + size)?;
            self.set(block, first)?;
            self.set_root(FREE + size, block)?;
        }
        Ok(())
    }

    /// Returns how many words a block has.
    pub(crate) fn room_of(&self, block: u64) -> Result<u64, TxnAbort> {
        Ok(words_of(self.check_block(block, None)?))
    }

    /// Checks that a block exists, and that it has the expected size if one is given. Returns its size.
    fn check_block(&self, block: u64, expected: Option<u64>) -> Result<u64, TxnAbort> {
        let size =
            block.checked_sub(1).map_or(Err(TxnAbort::Damaged("a block is nowhere")), |at| self.get(at))?;
        if size >= SIZES_MAX || expected.is_some_and(|expected| size != expected) {
            return Err(TxnAbort::Damaged("a block has a size that there is none of"));
        }
        self.slice(block, words_of(size))?;
        Ok(size)
    }

    /// Allocates a block with these bytes in it, behind their number.
    pub(crate) fn alloc_bytes(&mut self, bytes: &[u8]) -> Result<u64, TxnAbort> {
        let block = self.alloc(1 + words_for(bytes.len() as u64))?;
        self.set_new(block, bytes.len() as u64)?;
        for (index, chunk) in bytes.chunks(8).enumerate() {
            self.set_new(block + 1 + index as u64, word_of(chunk))?;
        }
        Ok(block)
    }

    /// Puts other bytes in a block, or in a new one if they do not fit.
    pub(crate) fn replace_bytes(&mut self, block: u64, bytes: &[u8]) -> Result<u64, TxnAbort> {
        if 1 + words_for(bytes.len() as u64) > self.room_of(block)? {
            self.free(block);
            return self.alloc_bytes(bytes);
        }
        self.set(block, bytes.len() as u64)?;
        for (index, chunk) in bytes.chunks(8).enumerate() {
            self.set(block + 1 + index as u64, word_of(chunk))?;
        }
        Ok(block)
    }

    /// Returns the bytes of a block.
    pub(crate) fn bytes(&self, block: u64) -> Result<Vec<u8>, TxnAbort> {
        let len = self.get(block)?;
        if words_for(len) >= self.room_of(block)? {
            return Err(TxnAbort::Damaged("more is said to be in a block than it has room for"));
        }
        let mut bytes = Vec::with_capacity(len as usize + 8);
        for word in self.slice(block + 1, words_for(len))? {
            bytes.extend(word.load(std::sync::atomic::Ordering::Relaxed).to_be_bytes());
        }
        bytes.truncate(len as usize);
        Ok(bytes)
    }
}

/// Returns how many words so many bytes take.
pub(crate) fn words_for(bytes: u64) -> u64 {
    bytes.div_ceil(8)
}

/// Returns up to eight bytes as a word, the first of them the highest, so that words compare as bytes do.
#[inline]
pub(crate) fn word_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(whole) => u64::from_be_bytes(*whole),
        None => {
            let mut padded = [0; 8];
            let len = bytes.len().min(8);
            padded[..len].copy_from_slice(&bytes[..len]);
            u64::from_be_bytes(padded)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_room_for_what_it_is_for_and_little_more() {
        for words in (1..5_000).chain([1 << 20, (1 << 20) + 1, 1 << 33]) {
            let size = size_for(words);
            assert!(words_of(size) >= words, "{words}");
            assert!(words_of(size) <= (words + words / 4 + 1).max(LEAST), "{words}");
            assert!(size == 0 || words_of(size - 1) < words, "{words}");
            assert!(size < SIZES_MAX);
        }
    }

    #[test]
    fn words_compare_as_their_bytes_do() {
        let texts: [&[u8]; 6] = [b"", b"a", b"ab", b"b", b"b\xFF", b"\xFF"];
        for pair in texts.windows(2) {
            assert!(word_of(pair[0]) < word_of(pair[1]), "{pair:?}");
        }
    }
}

//! Integrity check: every link is valid, and every block has exactly one owner.

use std::collections::{HashMap, HashSet};

use crate::alloc::words_of;
use crate::error::TxnAbort;
use crate::key::{KeyKind, MapKey};
use crate::layout::{
    ARENA, BUCKETS, BUMP, CALLS, CHAINS, FREE, HEAD, SEGMENTS, SEGMENTS_MAX, SIZES_MAX, WAITING,
};
use crate::limits::{ShmLimitsCache, USERS};
use crate::ordered::{BEFORE, HEIGHT_MAX, MapNode};
use crate::row::{self, RowParts};
use crate::table::NODE;
use crate::tx::Tx;

/// The blocks and limits that the check has found.
#[derive(Default)]
struct CheckFindings {
    /// Blocks that are in use.
    blocks: HashSet<u64>,
    /// How many users each set of limits has.
    limits: HashMap<u64, u64>,
    counts: HashMap<u8, u64>,
    nodes: HashMap<u64, u64>,
}

impl CheckFindings {
    fn block(&mut self, block: u64) -> Result<(), TxnAbort> {
        if self.blocks.insert(block) { Ok(()) } else { Err(TxnAbort::Damaged("a block is used twice")) }
    }

    fn count(&self, kind: KeyKind) -> u64 {
        self.counts.get(&(kind as u8)).copied().unwrap_or(0)
    }
}

/// Checks everything, and returns the first error.
pub(crate) fn check(tx: &Tx<'_>, known: &mut ShmLimitsCache) -> Result<(), TxnAbort> {
    let mut found = CheckFindings::default();
    check_order(tx, &mut found)?;
    check_kinds(tx, known, &mut found)?;
    check_table(tx, &mut found)?;
    for (block, users) in &found.limits {
        if tx.get(block + USERS)? != *users {
            return Err(TxnAbort::Damaged("limits are used by others than they say"));
        }
    }
    let counts = [
        (BUCKETS, KeyKind::Bucket),
        (CALLS, KeyKind::Call),
        (CALLS, KeyKind::CallAt),
        (WAITING, KeyKind::Waiter),
    ];
    for (at, kind) in counts {
        if tx.get(at)? != found.count(kind) {
            return Err(TxnAbort::Damaged("something is counted wrong"));
        }
    }
    check_blocks(tx, &mut found)
}

/// Checks the ordered map: keys are in order in both directions, and every level links nodes of the level below.
fn check_order(tx: &Tx<'_>, found: &mut CheckFindings) -> Result<(), TxnAbort> {
    let head = tx.block_at(HEAD)?;
    found.block(head)?;
    let (mut before, mut last, mut place) = (head, Vec::new(), 0);
    while let Some(node) = tx.link(before, 0)? {
        let key = tx.key_of(node)?;
        if key <= last || tx.get(node.0 + BEFORE)? != before {
            return Err(TxnAbort::Damaged("its keys are out of order"));
        }
        place += 1;
        found.block(node.0)?;
        found.nodes.insert(node.0, place);
        *found.counts.entry(key[0]).or_default() += 1;
        (before, last) = (node.0, key);
    }
    for level in 1..HEIGHT_MAX {
        let (mut at, mut place) = (head, 0);
        while let Some(node) = tx.link(at, level)? {
            let next = found.nodes.get(&node.0).copied().unwrap_or(0);
            let (_, height) = tx.shape(node)?;
            if next <= place || height <= level {
                return Err(TxnAbort::Damaged("a link leads to nothing, or back"));
            }
            (at, place) = (node.0, next);
        }
    }
    Ok(())
}

/// Checks the values of the nodes of each kind.
fn check_kinds(tx: &Tx<'_>, known: &mut ShmLimitsCache, found: &mut CheckFindings) -> Result<(), TxnAbort> {
    for kind in KeyKind::ALL {
        tx.scan(&MapKey::new(kind), None, false, |node, _| {
            let has_block = matches!(
                kind,
                KeyKind::Bucket | KeyKind::OfResource | KeyKind::Limits | KeyKind::Call | KeyKind::Record
            );
            let value = if has_block { tx.block_of(node)? } else { 0 };
            match kind {
                KeyKind::Bucket => {
                    let (blocks, limits) = row::blocks(tx, value)?;
                    blocks.into_iter().try_for_each(|block| found.block(block))?;
                    limits.into_iter().for_each(|limits| *found.limits.entry(limits).or_default() += 1);
                    row::read(tx, known, value, None, RowParts::BucketAndUsage)?;
                }
                KeyKind::OfResource if !found.blocks.contains(&value) => {
                    return Err(TxnAbort::Damaged("a resource has a bucket that is not there"));
                }
                KeyKind::Limits | KeyKind::Call | KeyKind::Record => found.block(value)?,
                _ => {}
            }
            Ok(true)
        })?;
    }
    Ok(())
}

/// Checks the table: every bucket is in its chain.
fn check_table(tx: &Tx<'_>, found: &mut CheckFindings) -> Result<(), TxnAbort> {
    let mut entries = 0;
    for chain in 0..tx.get(CHAINS)? {
        for entry in tx.entries(chain)? {
            let node = MapNode(tx.block_at(entry + NODE)?);
            let key = MapKey::from_bytes(&tx.key_of(node)?);
            if tx.value(node)? != entry || tx.find_entry(&key)? != Some(entry) {
                return Err(TxnAbort::Damaged("a bucket is not where it is looked for"));
            }
            entries += 1;
        }
    }
    if entries != found.count(KeyKind::Bucket) {
        return Err(TxnAbort::Damaged("a bucket is in no chain"));
    }
    let segments =
        (SEGMENTS..SEGMENTS + SEGMENTS_MAX).map(|at| tx.link_at(at)).collect::<Result<Vec<_>, _>>()?;
    segments.into_iter().filter(|segment| *segment != 0).try_for_each(|segment| found.block(segment))
}

/// Checks that every block is either in use or free, and is listed once.
fn check_blocks(tx: &Tx<'_>, found: &mut CheckFindings) -> Result<(), TxnAbort> {
    for size in 0..SIZES_MAX {
        let mut block = tx.link_at(FREE + size)?;
        while block != 0 {
            found.block(block)?;
            if tx.get(block - 1)? != size {
                return Err(TxnAbort::Damaged("a free block is in the list of another size"));
            }
            block = tx.link_at(block)?;
        }
    }
    let (mut at, end) = (ARENA, tx.get(BUMP)?);
    while at < end {
        if !found.blocks.remove(&(at + 1)) {
            return Err(TxnAbort::Damaged("a block is neither used nor free"));
        }
        let size = tx.get(at)?;
        if size >= SIZES_MAX {
            return Err(TxnAbort::Damaged("a block has a size that there is none of"));
        }
        at += 1 + words_of(size);
    }
    if at != end || !found.blocks.is_empty() {
        return Err(TxnAbort::Damaged("a block is where there is none"));
    }
    Ok(())
}

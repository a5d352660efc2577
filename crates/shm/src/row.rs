//! Encodes buckets as entries of the memory.
//!
//! An entry is: the three words of the [table](crate::table); its limits; their version; what kind of state and for how
//! many limits there is room; the stamp of a bucket of credits, or where the bytes of another are; the limits that its
//! usage is counted in; the hour and the number of takes; then the credits, then the amounts that were used.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Bucket, Limits, Tick};
use tollgate_store::txn::MeteredBucket;
use tollgate_store::usage::{Caller, Sums};
use tollgate_store::{Key, StoredBucket};

use crate::error::TxnAbort;
use crate::key::{KeyKind, MapKey};
use crate::limits::ShmLimitsCache;
use crate::ordered::MapNode;
use crate::table::NODE;
use crate::tx::Tx;

const LIMITS: u64 = 3;
const VERSION: u64 = 4;
const SHAPE: u64 = 5;
/// The stamp of a bucket of credits, or the block with the state of another.
const STATE: u64 = 6;
const USAGE_LIMITS: u64 = 7;
/// The hour in the high half, the number of takes in the low one.
const USAGE_HOUR: u64 = 8;
const NUMBERS: u64 = 9;

/// Set if the state is in a block of its own.
const IN_BLOCK: u64 = 1 << 32;

/// The most limits that an entry has room for.
const ROOM_MAX: u64 = tollgate_core::BUCKET_LIMITS_MAX as u64;

/// How many numbers are read to the stack.
const FEW: usize = 8;

/// Which parts of a row are read and written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowParts {
    Bucket,
    BucketAndUsage,
}

/// Returns the key of a bucket in the ordered map and in the table.
#[inline]
pub(crate) fn bucket_key(namespace: &str, key: &Key) -> MapKey {
    MapKey::new(KeyKind::Bucket).part(namespace).raw(key.as_bytes())
}

/// Returns the entry of a bucket, if it has one. Its key is made where it is used: it is large, and reading it right after it was written
/// in pieces, as moving it does, would stall.
#[inline]
pub(crate) fn find(tx: &Tx<'_>, namespace: &str, key: &Key) -> Result<Option<u64>, TxnAbort> {
    let mut map_key = MapKey::new(KeyKind::Bucket);
    map_key.push_part(namespace);
    map_key.push(key.as_bytes());
    tx.find_entry(&map_key)
}

/// Returns the key of a bucket in the index by resource, if it has a resource.
pub(crate) fn resource_key(namespace: &str, key: &Key) -> Option<MapKey> {
    let (_, resource) = key.pair()?;
    Some(MapKey::new(KeyKind::OfResource).part(namespace).part(resource).raw(key.as_bytes()))
}

/// Reads the bucket of an entry; its limits are probably those `expected`.
#[inline]
pub(crate) fn read(
    tx: &Tx<'_>,
    known: &mut ShmLimitsCache,
    entry: u64,
    expected: Option<&Limits>,
    parts: RowParts,
) -> Result<MeteredBucket, TxnAbort> {
    let mut bucket = known.bucket(tx, tx.block_at(entry + LIMITS)?, expected)?;
    read_bucket(tx, entry, &mut bucket.stored)?;
    match parts {
        RowParts::Bucket => bucket.usage = None,
        RowParts::BucketAndUsage => read_usage(tx, known, entry, &mut bucket)?,
    }
    Ok(bucket)
}

/// Writes a bucket into its entry, or into another one in its place that has more room.
#[inline]
pub(crate) fn write(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    entry: u64,
    bucket: &MeteredBucket,
    parts: RowParts,
) -> Result<(), TxnAbort> {
    let room = room_needed(bucket);
    let entry = if room > room_of(tx, entry)? { move_entry(tx, entry, room)? } else { entry };
    set_limits(tx, known, entry + LIMITS, Some(&bucket.stored.limits))?;
    tx.set(entry + VERSION, bucket.stored.version)?;
    write_bucket(tx, entry, &bucket.stored)?;
    match parts {
        RowParts::Bucket => Ok(()),
        RowParts::BucketAndUsage => write_usage(tx, known, entry, bucket.usage.as_ref()),
    }
}

/// Makes an entry for a bucket that has none.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    (namespace, key): (&str, &Key),
    bucket: &MeteredBucket,
) -> Result<(), TxnAbort> {
    let room = room_needed(bucket);
    let entry = tx.alloc(NUMBERS + room * 2)?;
    (entry..entry + NUMBERS + room * 2).try_for_each(|at| tx.set_new(at, 0))?;
    tx.set_new(entry + SHAPE, room)?;
    let table_key = bucket_key(namespace, key);
    let hash = tx.hash_of(&table_key);
    let node = tx.insert(&table_key, entry)?;
    if let Some(key) = resource_key(namespace, key) {
        tx.insert(&key, entry)?;
    }
    tx.link_entry(entry, hash, node)?;
    write(tx, known, entry, bucket, RowParts::BucketAndUsage)
}

fn room_needed(bucket: &MeteredBucket) -> u64 {
    let usage = bucket.usage.as_ref().map_or(0, |sums| sums.amounts().len());
    bucket.stored.limits.len().max(usage) as u64
}

/// Removes a bucket, with its usage.
pub(crate) fn remove(tx: &mut Tx<'_>, known: &mut ShmLimitsCache, entry: u64) -> Result<(), TxnAbort> {
    let (namespace, key) = address(tx, entry)?;
    tx.unlink_entry(entry)?;
    tx.remove(&bucket_key(&namespace, &key))?;
    if let Some(key) = resource_key(&namespace, &key) {
        tx.remove(&key)?;
    }
    if tx.get(entry + SHAPE)? & IN_BLOCK != 0 {
        let state = tx.block_at(entry + STATE)?;
        tx.free(state);
    }
    for at in [LIMITS, USAGE_LIMITS] {
        set_limits(tx, known, entry + at, None)?;
    }
    tx.free(entry);
    Ok(())
}

/// Returns the namespace and the key of a bucket.
pub(crate) fn address(tx: &Tx<'_>, entry: u64) -> Result<(String, Key), TxnAbort> {
    address_of(&tx.key_of(MapNode(tx.block_at(entry + NODE)?))?)
        .ok_or(TxnAbort::Damaged("the key of a bucket is none"))
}

/// Decodes the key of a bucket in the ordered map.
pub(crate) fn address_of(key: &[u8]) -> Option<(String, Key)> {
    let mut parts = crate::key::KeyParts::of(key)?;
    let namespace = parts.part()?;
    Some((namespace, Key::from_bytes(parts.rest())))
}

/// Returns the blocks that belong to a bucket: its entry, and its state if that has a block; and the limits that it
/// uses.
pub(crate) fn blocks(tx: &Tx<'_>, entry: u64) -> Result<(Vec<u64>, Vec<u64>), TxnAbort> {
    let is_in_block = tx.get(entry + SHAPE)? & IN_BLOCK != 0;
    let mut blocks = vec![entry];
    blocks.extend(is_in_block.then(|| tx.block_at(entry + STATE)).transpose()?);
    let limits = [tx.link_at(entry + LIMITS)?, tx.link_at(entry + USAGE_LIMITS)?];
    Ok((blocks, limits.into_iter().filter(|limits| *limits != 0).collect()))
}

/// Returns whether the bucket has usage that is in no record yet.
pub(crate) fn has_usage(tx: &Tx<'_>, entry: u64) -> Result<bool, TxnAbort> {
    Ok(tx.get(entry + USAGE_LIMITS)? != 0)
}

/// Returns for how many limits an entry has room.
#[inline]
fn room_of(tx: &Tx<'_>, entry: u64) -> Result<u64, TxnAbort> {
    let room = tx.get(entry + SHAPE)? & (IN_BLOCK - 1);
    if room > ROOM_MAX {
        return Err(TxnAbort::Damaged("a bucket has more limits than any has"));
    }
    Ok(room)
}

#[inline]
fn read_bucket(tx: &Tx<'_>, entry: u64, stored: &mut StoredBucket) -> Result<(), TxnAbort> {
    let unreadable = |why| TxnAbort::Unreadable(format!("a bucket cannot be read: {why}"));
    let StoredBucket { limits, version, bucket } = stored;
    *version = tx.get(entry + VERSION)?;
    let state = tx.get(entry + STATE)?;
    if tx.get(entry + SHAPE)? & IN_BLOCK != 0 {
        let state = tx.block_at(entry + STATE)?;
        *bucket = Bucket::from_bytes(limits, &tx.bytes(state)?).map_err(unreadable)?;
        return Ok(());
    }
    let len = limits.len();
    if len as u64 > room_of(tx, entry)? {
        return Err(TxnAbort::Damaged("a bucket has less room than it has limits"));
    }
    with_numbers(tx, entry + NUMBERS, len, |credits| {
        bucket.set_credits(limits, Tick::from_micros(state), credits).map_err(unreadable)
    })?
}

/// Calls `use_numbers` with so many words of an entry as numbers.
#[inline]
fn with_numbers<R>(
    tx: &Tx<'_>,
    at: u64,
    len: usize,
    use_numbers: impl FnOnce(&[i64]) -> R,
) -> Result<R, TxnAbort> {
    let words = tx.slice(at, len as u64)?;
    let number = |word: &AtomicU64| word.load(Ordering::Relaxed) as i64;
    let mut few = [0; FEW];
    match few.get_mut(..len) {
        Some(numbers) => {
            numbers.iter_mut().zip(words).for_each(|(to, word)| *to = number(word));
            Ok(use_numbers(numbers))
        }
        None => Ok(use_numbers(&words.iter().map(number).collect::<Vec<_>>())),
    }
}

#[inline]
fn write_bucket(tx: &mut Tx<'_>, entry: u64, stored: &StoredBucket) -> Result<(), TxnAbort> {
    let shape = tx.get(entry + SHAPE)?;
    let in_block = shape & IN_BLOCK != 0;
    let state = if in_block { tx.block_at(entry + STATE)? } else { 0 };
    let Some(credits) = stored.bucket.credits() else {
        let bytes = stored.bucket.to_bytes();
        let block = if in_block { tx.replace_bytes(state, &bytes)? } else { tx.alloc_bytes(&bytes)? };
        tx.set(entry + STATE, block)?;
        return tx.set(entry + SHAPE, shape | IN_BLOCK);
    };
    if in_block {
        tx.free(state);
        tx.set(entry + SHAPE, shape & !IN_BLOCK)?;
    }
    tx.set(entry + STATE, stored.bucket.stamp().as_micros())?;
    let numbers = entry + NUMBERS..;
    numbers
        .zip(credits.iter().take(stored.limits.len()))
        .try_for_each(|(at, credit)| tx.set(at, *credit as u64))
}

#[inline]
fn read_usage(
    tx: &Tx<'_>,
    known: &mut ShmLimitsCache,
    entry: u64,
    bucket: &mut MeteredBucket,
) -> Result<(), TxnAbort> {
    let block = tx.link_at(entry + USAGE_LIMITS)?;
    if block == 0 {
        bucket.usage = None;
        return Ok(());
    }
    let MeteredBucket { stored, usage } = bucket;
    let there = usage.take_if(|sums| known.are(block, sums.limits()));
    let mut sums = match there {
        Some(sums) => sums,
        None => Sums::new(&known.get(tx, block, Some(&stored.limits))?, Tick::ZERO, Caller::Own),
    };
    let hour = tx.get(entry + USAGE_HOUR)?;
    let (room, len) = (room_of(tx, entry)?, sums.limits().len());
    if len as u64 > room {
        return Err(TxnAbort::Damaged("usage has less room than it has limits"));
    }
    with_numbers(tx, entry + NUMBERS + room, len, |amounts| {
        sums.restore((hour >> 32) as u32, hour as u32, amounts);
    })?;
    *usage = Some(sums);
    Ok(())
}

#[inline]
fn write_usage(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    entry: u64,
    usage: Option<&Sums>,
) -> Result<(), TxnAbort> {
    let usage = usage.filter(|sums| !sums.is_empty());
    set_limits(tx, known, entry + USAGE_LIMITS, usage.map(Sums::limits))?;
    let Some(sums) = usage else { return Ok(()) };
    tx.set(entry + USAGE_HOUR, u64::from(sums.hour()) << 32 | u64::from(sums.events()))?;
    let amounts = entry + NUMBERS + room_of(tx, entry)?..;
    amounts.zip(sums.amounts()).try_for_each(|(at, amount)| tx.set(at, *amount as u64))
}

/// Sets the limits that a word names, and counts their users.
#[inline]
fn set_limits(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    at: u64,
    limits: Option<&Limits>,
) -> Result<(), TxnAbort> {
    let old = tx.link_at(at)?;
    if limits.is_some_and(|limits| old != 0 && known.are(old, limits)) || limits.is_none() && old == 0 {
        return Ok(());
    }
    // First the new ones: should they be the old ones, they are not removed in between.
    let new = limits.map_or(Ok(0), |limits| known.put(tx, limits))?;
    tx.set(at, new)?;
    if old == 0 { Ok(()) } else { known.drop_user(tx, old) }
}

/// Moves a bucket to an entry with more room.
fn move_entry(tx: &mut Tx<'_>, old: u64, room: u64) -> Result<u64, TxnAbort> {
    let (namespace, key) = address(tx, old)?;
    let had = room_of(tx, old)?;
    let new = tx.alloc(NUMBERS + room * 2)?;
    for at in 0..NUMBERS + room * 2 {
        tx.set_new(new + at, 0)?;
    }
    for at in [LIMITS, VERSION, STATE, USAGE_LIMITS, USAGE_HOUR] {
        tx.set_new(new + at, tx.get(old + at)?)?;
    }
    tx.set_new(new + SHAPE, tx.get(old + SHAPE)? & IN_BLOCK | room)?;
    for at in 0..had {
        tx.set_new(new + NUMBERS + at, tx.get(old + NUMBERS + at)?)?;
        tx.set_new(new + NUMBERS + room + at, tx.get(old + NUMBERS + had + at)?)?;
    }
    tx.relink_entry(old, new)?;
    for key in [Some(bucket_key(&namespace, &key)), resource_key(&namespace, &key)].iter().flatten() {
        let (node, _) = tx.find(key)?.ok_or(TxnAbort::Damaged("a bucket is missing in an index"))?;
        tx.set_value(node, new)?;
    }
    tx.free(old);
    Ok(new)
}

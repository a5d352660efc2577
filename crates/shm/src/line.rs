//! The line in front of a bucket, as the memory has it.
//!
//! Who waits is a key in the ordered map: the bucket, then the rank, so that the first in line is the first key. Its value
//! is the slot of its process. Another key counts how many stand in the line. One who is to ask again is noted under its
//! process in the transaction that gave back, so that a giver who is killed before it can ring leaves word.

use tollgate_core::Tick;
use tollgate_store::{Key as BucketKey, Rank};

use crate::error::Stop;
use crate::key::{Key, Kind, Parts};
use crate::layout::WAITING;
use crate::slots::Slot;
use crate::tx::Tx;

/// A bucket.
pub(crate) type Address<'a> = (&'a str, &'a BucketKey);

/// One who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) rank: Rank,
    pub(crate) slot: Slot,
}

/// Whom to tell once the transaction is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    /// One of this process.
    Here,
    /// The process that has this slot.
    There(Slot),
}

fn line_of((namespace, key): Address<'_>) -> Key {
    let bytes = key.as_bytes();
    // Behind its length, so that no bucket stands in the line of one that begins like it.
    Key::new(Kind::Waiter).part(namespace).raw(&(bytes.len() as u32).to_be_bytes()).raw(bytes)
}

fn waiter_key(address: Address<'_>, rank: Rank) -> Key {
    line_of(address).raw(&rank.due.as_micros().to_be_bytes()).raw(&rank.ticket.to_be_bytes())
}

fn count_key((namespace, key): Address<'_>) -> Key {
    Key::new(Kind::Line).part(namespace).raw(key.as_bytes())
}

fn pokes_of(slot: Slot) -> Key {
    Key::new(Kind::Poke).raw(&slot.0.to_be_bytes())
}

/// How many stand in a line.
pub(crate) fn length(tx: &Tx<'_>, address: Address<'_>) -> Result<u64, Stop> {
    Ok(tx.find(&count_key(address))?.map_or(0, |(_, count)| count))
}

/// Joins a line.
pub(crate) fn join(tx: &mut Tx<'_>, address: Address<'_>, waiter: Waiter) -> Result<(), Stop> {
    let key = waiter_key(address, waiter.rank);
    if tx.find(&key)?.is_some() {
        return Ok(());
    }
    tx.insert(&key, waiter.slot.0)?;
    tx.add(WAITING, 1)?;
    match tx.find(&count_key(address))? {
        Some((node, count)) => tx.set_value(node, count.saturating_add(1)),
        None => tx.insert(&count_key(address), 1).map(drop),
    }
}

/// Leaves a line, and answers whether it stood in it.
pub(crate) fn leave(tx: &mut Tx<'_>, address: Address<'_>, rank: Rank) -> Result<bool, Stop> {
    if tx.remove(&waiter_key(address, rank))?.is_none() {
        return Ok(false);
    }
    tx.add(WAITING, -1)?;
    match tx.find(&count_key(address))? {
        Some((node, count)) if count > 1 => tx.set_value(node, count - 1)?,
        Some(_) => drop(tx.remove(&count_key(address))?),
        None => {}
    }
    Ok(true)
}

/// The first in a line.
pub(crate) fn first(tx: &Tx<'_>, address: Address<'_>) -> Result<Option<Waiter>, Stop> {
    let line = line_of(address);
    let Some((node, key)) = tx.first(&line)? else { return Ok(None) };
    let rank = Parts::behind(&key, &line).and_then(|mut parts| Some((parts.number()?, parts.number()?)));
    let (due, ticket) = rank.ok_or(Stop::Damaged("one who waits has no rank"))?;
    let rank = Rank { due: Tick::from_micros(u64::from_be_bytes(due)), ticket: u64::from_be_bytes(ticket) };
    Ok(Some(Waiter { rank, slot: Slot(tx.value(node)?) }))
}

/// Lets the first in a line ask again, those aside who are gone. Answers whom to tell.
pub(crate) fn poke(tx: &mut Tx<'_>, address: Address<'_>, own: Option<Slot>) -> Result<Option<Tell>, Stop> {
    while let Some(Waiter { rank, slot }) = first(tx, address)? {
        if Some(slot) == own {
            return Ok(Some(Tell::Here));
        }
        let poke = pokes_of(slot).part(address.0).raw(address.1.as_bytes());
        if tx.find(&poke)?.is_none() {
            tx.insert(&poke, 0)?;
            return Ok(Some(Tell::There(slot)));
        }
        // It was poked before and has not looked: it has much to do, or it is gone.
        if slot.owner(tx)?.is_some_and(|process| process.is_there()) {
            return Ok(Some(Tell::There(slot)));
        }
        tx.remove(&poke)?;
        leave(tx, address, rank)?;
    }
    Ok(None)
}

/// The lines whose first is to ask again in the process that has this slot, which knows it from now on.
pub(crate) fn take_pokes(tx: &mut Tx<'_>, slot: Slot) -> Result<Vec<(String, BucketKey)>, Stop> {
    let (beginning, mut keys) = (pokes_of(slot), Vec::new());
    tx.scan(&beginning, None, false, |_, key| {
        keys.push(key);
        Ok(keys.len() < POKES_AT_ONCE)
    })?;
    let mut pokes = Vec::new();
    for key in keys {
        tx.remove(&Key::from_bytes(&key))?;
        let parts = Parts::behind(&key, &beginning);
        let address = parts.and_then(|mut parts| Some((parts.part()?, BucketKey::from_bytes(parts.rest()))));
        pokes.push(address.ok_or(Stop::Damaged("one who is poked waits for nothing"))?);
    }
    Ok(pokes)
}

/// How many lines a process hears of at once.
pub(crate) const POKES_AT_ONCE: usize = 256;

/// How many waiters of processes that are gone are taken out at once.
pub(crate) const GONE_AT_ONCE: usize = 256;

/// Takes out waiters of processes that are gone, of whatever bucket, some at a time. Answers how many they were.
pub(crate) fn bury(tx: &mut Tx<'_>, mut is_gone: impl FnMut(Slot, &Tx<'_>) -> bool) -> Result<usize, Stop> {
    let mut gone = Vec::new();
    tx.scan(&Key::new(Kind::Waiter), None, false, |node, key| {
        if is_gone(Slot(tx.value(node)?), tx) {
            gone.push(key);
        }
        Ok(gone.len() < GONE_AT_ONCE)
    })?;
    for key in &gone {
        let (namespace, bucket, rank) =
            parse_waiter(key).ok_or(Stop::Damaged("one who waits does not say for what"))?;
        leave(tx, (&namespace, &bucket), rank)?;
    }
    Ok(gone.len())
}

fn parse_waiter(key: &[u8]) -> Option<(String, BucketKey, Rank)> {
    let mut parts = Parts::of(key)?;
    let namespace = parts.part()?;
    let len = u32::from_be_bytes(parts.number()?) as usize;
    let (bucket, rank) = parts.rest().split_at_checked(len)?;
    let (due, ticket) = rank.split_first_chunk()?;
    let (due, ticket) = (u64::from_be_bytes(*due), u64::from_be_bytes(ticket.try_into().ok()?));
    Some((namespace, BucketKey::from_bytes(bucket), Rank { due: Tick::from_micros(due), ticket }))
}

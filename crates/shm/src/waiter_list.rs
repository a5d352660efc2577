//! The waiters of all processes for a limit of a bucket, stored in the ordered map.
//!
//! A waiter is a key in the ordered map: the bucket, the limit, then the rank, so that the head of a queue is its first
//! key. Its value is the slot of its process. Another key counts the waiters of a queue. A notification is noted under
//! the slot of the waiter's process in the transaction that gave back, so that the note stays if the notifying process
//! is killed before it can wake the other.

use tollgate_core::Tick;
use tollgate_store::{Key, QueueKey, Rank};

use crate::error::TxnAbort;
use crate::key::{KeyKind, KeyParts, MapKey};
use crate::layout::WAITING;
use crate::process_slots::{Liveness, ProcessSlot};
use crate::tx::Tx;

/// How many notes a process takes at once.
pub(crate) const NOTES_AT_ONCE: usize = 256;

/// How many waiters whose process may have ended are checked before others are served.
const SUSPECTS_MAX: usize = 32;

/// A waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaiterEntry {
    pub(crate) rank: Rank,
    pub(crate) slot: ProcessSlot,
}

/// Which process to notify once the transaction is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotifyTarget {
    /// This process.
    Here,
    /// The process that has this slot.
    There(ProcessSlot),
}

/// The head of a queue, as far as heartbeats tell.
pub(crate) struct QueueHead {
    /// The first waiter whose process is awake.
    pub(crate) waiter: Option<WaiterEntry>,
    /// Waiters in front of it, or the waiter itself, whose process may have ended.
    pub(crate) suspects: Vec<(Rank, Liveness)>,
}

fn bucket_part(kind: KeyKind, namespace: &str, bucket: &Key) -> MapKey {
    let bytes = bucket.as_bytes();
    // Behind its length, so that no bucket has a key that is a prefix of another's.
    MapKey::new(kind).part(namespace).raw(&(bytes.len() as u32).to_be_bytes()).raw(bytes)
}

fn queue_part(kind: KeyKind, key: &QueueKey) -> MapKey {
    bucket_part(kind, &key.namespace, &key.bucket).part(&key.limit)
}

fn waiter_key(key: &QueueKey, rank: Rank) -> MapKey {
    let due = rank.due.as_micros().to_be_bytes();
    queue_part(KeyKind::Waiter, key).raw(&due).raw(&rank.ticket.to_be_bytes())
}

fn notes_of(slot: ProcessSlot) -> MapKey {
    MapKey::new(KeyKind::Note).raw(&slot.0.to_be_bytes())
}

/// Returns how many waiters are in a queue.
pub(crate) fn length(tx: &Tx<'_>, key: &QueueKey) -> Result<u64, TxnAbort> {
    Ok(tx.find(&queue_part(KeyKind::Queue, key))?.map_or(0, |(_, count)| count))
}

/// Returns the limits of a bucket that have a queue.
pub(crate) fn limits(tx: &Tx<'_>, namespace: &str, bucket: &Key) -> Result<Vec<Box<str>>, TxnAbort> {
    let (beginning, mut limits) = (bucket_part(KeyKind::Queue, namespace, bucket), Vec::new());
    tx.scan(&beginning, None, false, |_, key| {
        let limit = KeyParts::behind(&key, &beginning).and_then(|mut parts| parts.part());
        limits.push(limit.ok_or(TxnAbort::Damaged("a queue is for no limit"))?.into());
        Ok(true)
    })?;
    Ok(limits)
}

/// Adds a waiter to a queue.
pub(crate) fn join(tx: &mut Tx<'_>, key: &QueueKey, waiter: WaiterEntry) -> Result<(), TxnAbort> {
    let place = waiter_key(key, waiter.rank);
    if tx.find(&place)?.is_some() {
        return Ok(());
    }
    tx.insert(&place, waiter.slot.0)?;
    tx.add(WAITING, 1)?;
    let count = queue_part(KeyKind::Queue, key);
    match tx.find(&count)? {
        Some((node, waiting)) => tx.set_value(node, waiting.saturating_add(1)),
        None => tx.insert(&count, 1).map(drop),
    }
}

/// Removes a waiter from a queue. Returns true if it was in it.
pub(crate) fn leave(tx: &mut Tx<'_>, key: &QueueKey, rank: Rank) -> Result<bool, TxnAbort> {
    if tx.remove(&waiter_key(key, rank))?.is_none() {
        return Ok(false);
    }
    tx.add(WAITING, -1)?;
    let count = queue_part(KeyKind::Queue, key);
    match tx.find(&count)? {
        Some((node, waiting)) if waiting > 1 => tx.set_value(node, waiting - 1)?,
        Some(_) => drop(tx.remove(&count)?),
        None => {}
    }
    Ok(true)
}

/// Finds the head of a queue. Waiters of this process, which has the slot `own`, are awake.
pub(crate) fn head(tx: &Tx<'_>, key: &QueueKey, own: Option<ProcessSlot>) -> Result<QueueHead, TxnAbort> {
    let queue = queue_part(KeyKind::Waiter, key);
    let mut head = QueueHead { waiter: None, suspects: Vec::new() };
    tx.scan(&queue, None, false, |node, key| {
        let rank =
            KeyParts::behind(&key, &queue).and_then(|mut parts| Some((parts.number()?, parts.number()?)));
        let (due, ticket) = rank.ok_or(TxnAbort::Damaged("a waiter has no rank"))?;
        let due = Tick::from_micros(u64::from_be_bytes(due));
        let waiter = WaiterEntry {
            rank: Rank { due, ticket: u64::from_be_bytes(ticket) },
            slot: ProcessSlot(tx.value(node)?),
        };
        let liveness = if Some(waiter.slot) == own { Liveness::Awake } else { waiter.slot.liveness(tx)? };
        if liveness != Liveness::Awake && head.suspects.len() < SUSPECTS_MAX {
            head.suspects.push((waiter.rank, liveness));
        }
        if let Liveness::Awake | Liveness::Unproven(_) = liveness {
            head.waiter = Some(waiter);
        }
        Ok(head.waiter.is_none())
    })?;
    Ok(head)
}

/// Notes that the head of a queue is to ask the store again. Returns which process to notify.
pub(crate) fn note(
    tx: &mut Tx<'_>,
    key: &QueueKey,
    own: Option<ProcessSlot>,
) -> Result<Option<NotifyTarget>, TxnAbort> {
    let Some(WaiterEntry { slot, .. }) = head(tx, key, own)?.waiter else { return Ok(None) };
    if Some(slot) == own {
        return Ok(Some(NotifyTarget::Here));
    }
    let note = notes_of(slot).part(&key.namespace).part(&key.limit).raw(key.bucket.as_bytes());
    if tx.find(&note)?.is_none() {
        tx.insert(&note, 0)?;
    }
    Ok(Some(NotifyTarget::There(slot)))
}

/// Takes the notes of the process that has this slot: the queues whose head, in that process, is to ask again.
pub(crate) fn take_notes(tx: &mut Tx<'_>, slot: ProcessSlot) -> Result<Vec<QueueKey>, TxnAbort> {
    let (beginning, mut keys) = (notes_of(slot), Vec::new());
    tx.scan(&beginning, None, false, |_, key| {
        keys.push(key);
        Ok(keys.len() < NOTES_AT_ONCE)
    })?;
    let mut notes = Vec::new();
    for key in keys {
        tx.remove(&MapKey::from_bytes(&key))?;
        let queue = KeyParts::behind(&key, &beginning).and_then(|mut parts| {
            let (namespace, limit) = (parts.part()?.into(), parts.part()?.into());
            Some(QueueKey { namespace, limit, bucket: Key::from_bytes(parts.rest()) })
        });
        notes.push(queue.ok_or(TxnAbort::Damaged("a note is for no queue"))?);
    }
    Ok(notes)
}

//! The wait queues that processes share, as [`WaitQueues`] use them, and the thread that listens for this process.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use tollgate_core::{Span, Tick};
use tollgate_store::{
    Clock, Freed, Mutex, PerProcess, Process, QueueFull, QueueKey, Rank, SharedQueues, Transaction,
    WaitQueues,
};

use crate::ShmOpenError;
use crate::arena::Arena;
use crate::builder::ShmStoreBuilder;
use crate::error::TxnAbort;
use crate::layout::{TICKETS, WAITING};
use crate::map;
use crate::open;
use crate::process_slots::{self, BEAT_EVERY, Liveness, ProcessSlot};
use crate::tx::Tx;
use crate::waiter_list::{self, NOTES_AT_ONCE, NotifyTarget, QueueHead, WaiterEntry};

/// How many times the listening thread finds no waiter before it ends: a process that waited once often waits again.
const IDLE_LOOKS: u32 = 5;

/// Behind how many others a waiter is far from the head, and how many checks its process then skips: processes with
/// waiters near the head check instead, so that not all processes do.
const FAR_BEHIND: u64 = 32;
const FAR_LOOKS: u32 = 5;

/// How long the liveness of a process is cached.
const TRUSTED_FOR: Span = Span::from_millis(20);

/// How long to wait for the lock of wait queues of another store.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a file that another process removes while it is opened is opened again.
const OPENS_MAX: u32 = 16;

/// How large the file of wait queues of another store may grow: room for about two hundred thousand waiters.
const QUEUES_CAPACITY: u64 = 64 << 20;

/// The wait queues in one memory, as one process has them.
pub(crate) struct ShmWaitQueues {
    arena: Arc<Arena>,
    removed_by: Option<u64>,
    local: OnceLock<Weak<WaitQueues>>,
    these: PerProcess<Mutex<ProcessQueues>>,
}

/// The state of this process, which a forked child does not have.
#[derive(Default)]
struct ProcessQueues {
    slot: Option<ProcessSlot>,
    /// In how many queues waiters of this process are.
    waiting: usize,
    is_listening: bool,
    /// Waiters of this process that were found to be at the head.
    heads: HashMap<QueueKey, Rank>,
    /// The process that was last found alive, and when.
    seen: Option<(Process, Tick)>,
    /// Queues that a waiter has left while the memory could not be locked. Waiters behind it must not wait for it.
    unfinished: Vec<(QueueKey, Rank)>,
}

/// Returns a number that differs in a forked child.
pub(crate) fn generation() -> u64 {
    // The page was mapped when the store was opened.
    map::generation().unwrap_or_default()
}

/// Opens wait queues in a file of their own, for a store that keeps its buckets elsewhere on this host. The contents
/// matter only to running processes: a file of an earlier boot, or a damaged one, is replaced, and the last process
/// that closes the queues removes it.
///
/// # Errors
///
/// [`ShmOpenError`] with the path and what is wrong with it.
///
/// # Examples
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tollgate-queues-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let path = folder.join("limits-queue");
/// let queues = tollgate_shm::wait_queues(&path)?;
/// drop(queues);
/// assert!(!path.exists(), "the last process has removed it");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn wait_queues(path: &Path) -> Result<Arc<WaitQueues>, ShmOpenError> {
    let settings = ShmStoreBuilder::at(path).capacity(QUEUES_CAPACITY).timeout(LOCK_TIMEOUT);
    for _ in 0..OPENS_MAX {
        let arena = match open::open(&settings) {
            Err(error) if is_of_no_use(&error) => {
                // Another process may have replaced it in between; then both replace a file that has no waiters yet.
                let _ = std::fs::remove_file(path);
                continue;
            }
            opened => opened?,
        };
        if arena.share() {
            return Ok(ShmWaitQueues::open(Arc::new(arena), Some(generation())).1);
        }
    }
    Err(ShmOpenError::Failed(path.into(), "it is made and removed over and over".into()))
}

/// Returns whether a file of wait queues can be replaced: it is of an earlier boot, of another version, or damaged.
fn is_of_no_use(error: &ShmOpenError) -> bool {
    matches!(
        error,
        ShmOpenError::OtherHost(_)
            | ShmOpenError::Damaged(..)
            | ShmOpenError::OtherLayout { .. }
            | ShmOpenError::CutOff { .. }
            | ShmOpenError::Empty(_)
    )
}

impl ShmWaitQueues {
    /// Opens the shared queues of a memory, and the wait queues of this process that use them. The process `removed_by`
    /// removes the file when it is the last to use it.
    pub(crate) fn open(arena: Arc<Arena>, removed_by: Option<u64>) -> (Arc<ShmWaitQueues>, Arc<WaitQueues>) {
        let these = PerProcess::new(generation());
        let queues = Arc::new(ShmWaitQueues { arena, removed_by, local: OnceLock::new(), these });
        let local = Arc::new(WaitQueues::shared_by(Arc::new(QueueHandle(Arc::clone(&queues)))));
        let _ = queues.local.set(Arc::downgrade(&local));
        (queues, local)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.arena.word(WAITING).load(Ordering::Acquire) == 0
    }

    /// Returns the slot of this process, if it has one.
    pub(crate) fn slot(&self) -> Option<ProcessSlot> {
        self.with_this(|this| this.slot)
    }

    fn with_this<R>(&self, look: impl FnOnce(&mut ProcessQueues) -> R) -> R {
        look(&mut self.these.get(generation()).lock())
    }

    fn local(&self) -> Option<Arc<WaitQueues>> {
        self.local.get().and_then(Weak::upgrade)
    }

    /// Runs `work` in a transaction. Returns `None` if that fails: callers then poll or retry, and the next call for a
    /// bucket reports the error.
    fn work<T>(&self, work: impl FnOnce(&mut Tx<'_>) -> Result<T, TxnAbort>) -> Option<T> {
        let worked = self.arena.begin().and_then(|mut tx| {
            let done = work(&mut tx)?;
            tx.commit()?;
            Ok(done)
        });
        worked.ok()
    }

    /// Records in the transaction of a call which processes to notify of what it frees.
    pub(crate) fn note(
        &self,
        tx: &mut Tx<'_>,
        call: &Transaction<'_>,
        own: Option<ProcessSlot>,
    ) -> Result<Vec<(QueueKey, NotifyTarget)>, TxnAbort> {
        let mut targets = Vec::new();
        for freed in call.steps.iter().filter_map(Freed::by) {
            targets.extend(note_freed(tx, &freed, own)?);
        }
        Ok(targets)
    }

    /// Notifies the recorded processes, once the transaction is committed.
    pub(crate) fn notify_noted(&self, targets: &[(QueueKey, NotifyTarget)]) {
        for (key, target) in targets {
            match target {
                NotifyTarget::There(slot) => slot.wake(&self.arena),
                NotifyTarget::Here => self.local().iter().for_each(|local| local.notify_local(key)),
            }
        }
    }

    /// Counts a waiter of this process. Returns its slot, which it gets if it has none, and starts the listening thread.
    fn enlist(self: &Arc<Self>) -> Option<ProcessSlot> {
        let slot = match self.slot() {
            Some(slot) => slot,
            None => {
                let assigned = self.work(process_slots::assign).flatten()?;
                let slot = self.with_this(|this| *this.slot.get_or_insert(assigned));
                if slot != assigned {
                    self.work(|tx| process_slots::release(tx, assigned));
                }
                slot
            }
        };
        slot.beat(&self.arena);
        let needs_listener = self.with_this(|this| {
            this.waiting += 1;
            !std::mem::replace(&mut this.is_listening, true)
        });
        if needs_listener {
            let (arena, queues) = (Arc::clone(&self.arena), Arc::downgrade(self));
            let listener = thread::Builder::new().name("tollgate-waiters".into());
            if listener.spawn(move || listen(&arena, &queues, slot)).is_err() {
                self.with_this(|this| this.is_listening = false);
            }
        }
        Some(slot)
    }

    fn retire(&self) {
        self.with_this(|this| this.waiting = this.waiting.saturating_sub(1));
    }

    /// Takes the notes for this process, and notifies the waiters that they name.
    fn take_notes(&self, local: &WaitQueues, slot: ProcessSlot) {
        loop {
            let notes = self.work(|tx| waiter_list::take_notes(tx, slot)).unwrap_or_default();
            notes.iter().for_each(|key| local.notify_local(key));
            if notes.len() < NOTES_AT_ONCE {
                return;
            }
        }
    }

    /// Notifies waiters of this process that are at the head and were not notified by another process: those ahead of
    /// them were stopped or have ended, or this process was stopped when it was its turn. Returns whether all waiters
    /// are far from the head.
    fn check_heads(&self, local: &WaitQueues) -> bool {
        let keys = local.keys();
        // A waiter that is about to join counts as near.
        let mut is_far = !keys.is_empty();
        for key in keys {
            let (head, own) = (self.head(&key), local.local_head(&key));
            let behind = head.zip(own).map_or(0, |(head, own)| own.ticket.saturating_sub(head.ticket));
            is_far &= behind > FAR_BEHIND;
            let head = head.filter(|head| own == Some(*head));
            let known = self.with_this(|this| match head {
                Some(head) => this.heads.insert(key.clone(), head),
                None => this.heads.remove(&key),
            });
            if head.is_some() && head != known {
                local.notify_local(&key);
            }
        }
        is_far
    }

    /// Returns the head of a queue. Waiters of processes that have ended are removed.
    fn head(&self, key: &QueueKey) -> Option<Rank> {
        if self.is_empty() {
            return None;
        }
        let own = self.slot();
        loop {
            let QueueHead { waiter, suspects } = self.work(|tx| waiter_list::head(tx, key, own))?;
            let has_ended = |liveness: &Liveness| match liveness {
                Liveness::Awake => false,
                Liveness::Unproven(process) | Liveness::Silent(process) => !self.is_there(*process),
                Liveness::Gone => true,
            };
            let mut ended = suspects.iter().filter(|(_, liveness)| has_ended(liveness)).peekable();
            if ended.peek().is_none() {
                return waiter.map(|waiter| waiter.rank);
            }
            self.work(|tx| ended.try_for_each(|(rank, _)| waiter_list::leave(tx, key, *rank).map(drop)))?;
        }
    }

    /// Returns whether a process exists. The answer is cached for a moment.
    fn is_there(&self, process: Process) -> bool {
        let now = Clock::system().now();
        let is_trusted = |(seen, at): (Process, Tick)| seen == process && now.since(at) < TRUSTED_FOR;
        if self.with_this(|this| this.seen.is_some_and(is_trusted)) {
            return true;
        }
        let is_there = process.is_there();
        if is_there {
            self.with_this(|this| this.seen = Some((process, now)));
        }
        is_there
    }

    /// Leaves a queue. Returns false if it cannot be reached.
    fn leave(&self, key: &QueueKey, rank: Rank) -> bool {
        let own = self.with_this(|this| {
            if this.heads.get(key) == Some(&rank) {
                this.heads.remove(key);
            }
            this.slot
        });
        let target = self.work(|tx| {
            let was_head = waiter_list::head(tx, key, own)?.waiter.is_none_or(|head| head.rank >= rank);
            let was_there = waiter_list::leave(tx, key, rank)?;
            if was_head && was_there {
                Ok((true, waiter_list::note(tx, key, own)?))
            } else {
                Ok((was_there, None))
            }
        });
        let Some((was_there, target)) = target else { return false };
        if was_there {
            self.retire();
        }
        let noted: Vec<(QueueKey, NotifyTarget)> =
            target.into_iter().map(|target| (key.clone(), target)).collect();
        self.notify_noted(&noted);
        true
    }

    /// Leaves the queues that could not be reached when they were to be left.
    fn finish_leaving(&self) {
        let unfinished = self.with_this(|this| std::mem::take(&mut this.unfinished));
        for (key, rank) in unfinished {
            if !self.leave(&key, rank) {
                self.with_this(|this| this.unfinished.push((key, rank)));
            }
        }
    }
}

fn note_freed(
    tx: &mut Tx<'_>,
    freed: &Freed,
    own: Option<ProcessSlot>,
) -> Result<Vec<(QueueKey, NotifyTarget)>, TxnAbort> {
    let limits = match &freed.limits {
        Some(limits) => limits.clone(),
        None => waiter_list::limits(tx, &freed.namespace, &freed.bucket)?,
    };
    let mut targets = Vec::new();
    for limit in limits {
        let key = QueueKey { namespace: freed.namespace.clone(), bucket: freed.bucket.clone(), limit };
        targets.extend(waiter_list::note(tx, &key, own)?.map(|target| (key, target)));
    }
    Ok(targets)
}

/// The queues as a trait object that can start the listening thread.
struct QueueHandle(Arc<ShmWaitQueues>);

impl SharedQueues for QueueHandle {
    #[inline]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn next_ticket(&self) -> u64 {
        self.0.arena.word(TICKETS).fetch_add(1, Ordering::Relaxed)
    }

    fn generation(&self) -> u64 {
        generation()
    }

    fn join(&self, key: &QueueKey, rank: Rank, max: usize) -> Result<bool, QueueFull> {
        let Some(slot) = self.0.enlist() else { return Ok(false) };
        let joined = self.0.work(|tx| {
            let waiting = usize::try_from(waiter_list::length(tx, key)?).unwrap_or(usize::MAX);
            if waiting >= max {
                return Ok(Err(QueueFull { waiting, max }));
            }
            waiter_list::join(tx, key, WaiterEntry { rank, slot })?;
            Ok(Ok(waiter_list::head(tx, key, Some(slot))?.waiter))
        });
        match joined {
            Some(Ok(head)) => {
                if head.is_some_and(|head| head.rank == rank) {
                    // It asks the store once it has joined, so it need not be notified that it is at the head.
                    self.0.with_this(|this| this.heads.insert(key.clone(), rank));
                }
                Ok(true)
            }
            Some(Err(full)) => {
                self.0.retire();
                Err(full)
            }
            None => {
                self.0.retire();
                Ok(false)
            }
        }
    }

    fn leave(&self, key: &QueueKey, rank: Rank) {
        if !self.0.leave(key, rank) {
            // The listening thread goes on trying: this waiter still counts.
            self.0.with_this(|this| this.unfinished.push((key.clone(), rank)));
        }
    }

    fn head(&self, key: &QueueKey) -> Option<Rank> {
        self.0.head(key)
    }

    fn notify(&self, freed: &Freed) {
        let own = self.0.slot();
        let targets = self.0.work(|tx| note_freed(tx, freed, own));
        self.0.notify_noted(&targets.unwrap_or_default());
    }
}

/// Sleeps on the wake-up word of a slot for as long as this process has waiters, and writes its heartbeat.
fn listen(arena: &Arena, queues: &Weak<ShmWaitQueues>, slot: ProcessSlot) {
    let (mut idle, mut seen, mut unchecked) = (0, None, 0);
    loop {
        let wakeups = slot.wakeups(arena);
        slot.beat(arena);
        let Some(queues) = queues.upgrade() else { return };
        let Some(local) = queues.local() else { return };
        queues.finish_leaving();
        // The check of the heads finds notes of a process that was killed before it could wake this one.
        if seen.replace(wakeups) != Some(wakeups) {
            queues.take_notes(&local, slot);
            unchecked = 0;
        }
        if unchecked > 0 {
            unchecked -= 1;
        } else if queues.check_heads(&local) {
            unchecked = FAR_LOOKS - 1;
        }
        let is_done = queues.with_this(|this| {
            idle = if this.waiting == 0 { idle + 1 } else { 0 };
            // The next waiter starts another thread.
            this.is_listening = idle <= IDLE_LOOKS;
            !this.is_listening
        });
        if is_done {
            return;
        }
        drop((queues, local));
        slot.sleep(arena, wakeups, BEAT_EVERY);
    }
}

impl Drop for ShmWaitQueues {
    fn drop(&mut self) {
        if let Some(slot) = self.slot() {
            self.work(|tx| {
                waiter_list::take_notes(tx, slot)?;
                process_slots::release(tx, slot)
            });
            // So that dropping need not wait for the listening thread.
            slot.wake(&self.arena);
        }
        if self.removed_by == Some(generation()) {
            self.arena.remove_if_last();
        }
    }
}

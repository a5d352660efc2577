//! The lines that processes share, as a [`Room`] uses them, and the thread that hears the bell of this process.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate_core::{Span, Tick};
use tollgate_store::{
    Call, Census, Clock, Key as BucketKey, Op, PerProcess, Rank, Room, RoomFull, SharedLines, Step,
};

use crate::arena::Arena;
use crate::error::Stop;
use crate::layout::{TICKETS, WAITING};
use crate::line::{self, Address, POKES_AT_ONCE, Tell, Waiter};
use crate::map;
use crate::slots::{self, Slot};
use crate::tx::Tx;

/// How long one who waits behind others of processes that died may wait in vain: so often a process that has waiters looks
/// whether those ahead of them are still there.
pub(crate) const TENDED_EVERY: Duration = Duration::from_millis(100);

/// How long it is taken for granted that a process is still there which was just seen.
const TRUSTED_FOR: Span = Span::from_millis(20);

/// How often the thread that hears the bell looks in vain before it ends: who waits once waits again.
const IDLE_LOOKS: u32 = 10;

/// The lines in front of the buckets of one memory, as one process has them.
pub(crate) struct Lines {
    arena: Arc<Arena>,
    room: OnceLock<Weak<Room>>,
    these: PerProcess<Mutex<This>>,
}

/// What is of this process, and of none that was forked off.
#[derive(Default)]
struct This {
    slot: Option<Slot>,
    /// In how many lines somebody of this process stands.
    standing: usize,
    /// Whether the thread is there that hears the bell.
    has_ear: bool,
    /// Who was seen last, and when.
    seen: Option<(Slot, Tick)>,
    /// Who has left a line that could not be reached: whoever stands behind must not wait for it.
    owed: Vec<(Box<str>, BucketKey, Rank)>,
}

/// A number that is another one in a process that was forked off.
pub(crate) fn generation() -> u64 {
    // It was found when the store was opened.
    map::generation().unwrap_or_default()
}

impl Lines {
    pub(crate) fn new(arena: Arc<Arena>) -> Arc<Lines> {
        let these = PerProcess::new(generation());
        let lines = Lines { arena, room: OnceLock::new(), these };
        if !lines.is_quiet() {
            lines.bury();
        }
        Arc::new(lines)
    }

    /// Which room is told. Said once.
    pub(crate) fn tell(&self, room: &Arc<Room>) {
        let _ = self.room.set(Arc::downgrade(room));
    }

    /// The slot of this process, if it has one.
    pub(crate) fn slot(&self) -> Option<Slot> {
        self.with_this(|this| this.slot)
    }

    /// What is of this process.
    fn with_this<R>(&self, look: impl FnOnce(&mut This) -> R) -> R {
        look(&mut self.these.get(generation()).lock())
    }

    fn work<T>(&self, work: impl FnOnce(&mut Tx<'_>) -> Result<T, Stop>) -> Option<T> {
        let worked = self.arena.begin().and_then(|mut tx| {
            let done = work(&mut tx)?;
            tx.commit()?;
            Ok(done)
        });
        // Who cannot reach the lines looks again by itself; what is wrong is said to who asks for a bucket.
        worked.ok()
    }

    /// Notes in the transaction of a call whom it lets ask again.
    pub(crate) fn note(
        &self,
        tx: &mut Tx<'_>,
        call: &Call<'_>,
        own: Option<Slot>,
    ) -> Result<Vec<Tells>, Stop> {
        let frees = |step: &&Step<'_>| !matches!(step.op, Op::Take { .. } | Op::Renew(_));
        let mut tells = Vec::new();
        for (index, step) in call.steps.iter().enumerate().filter(|(_, step)| frees(step)) {
            let tell = line::poke(tx, (step.place.namespace, step.place.key), own)?;
            tells.extend(tell.map(|tell| Tells { step: index, tell }));
        }
        Ok(tells)
    }

    /// Tells those whom a call lets ask again, once it is committed.
    pub(crate) fn tell_noted(&self, call: &Call<'_>, tells: &[Tells]) {
        for Tells { step, tell } in tells {
            let place = &call.steps[*step].place;
            self.tell_one((place.namespace, place.key), *tell);
        }
    }

    fn tell_one(&self, (namespace, key): Address<'_>, tell: Tell) {
        match (tell, self.room.get().and_then(Weak::upgrade)) {
            (Tell::There(slot), _) => slot.ring(&self.arena),
            (Tell::Here, Some(room)) => room.poke_here(namespace, key),
            (Tell::Here, None) => {}
        }
    }

    /// One of this process stands in one line less.
    fn retire(&self) {
        self.with_this(|this| this.standing = this.standing.saturating_sub(1));
    }

    /// One of this process stands in one line more: answers its slot, which it gets if it has none, and lets a thread hear
    /// its bell.
    fn enlist(self: &Arc<Self>) -> Option<Slot> {
        let slot = match self.slot() {
            Some(slot) => slot,
            None => {
                let given = self.work(slots::give).flatten()?;
                let kept = self.with_this(|this| *this.slot.get_or_insert(given));
                if kept != given {
                    self.work(|tx| slots::take_back(tx, given));
                }
                kept
            }
        };
        let is_deaf = self.with_this(|this| {
            this.standing += 1;
            !std::mem::replace(&mut this.has_ear, true)
        });
        if is_deaf {
            let (arena, lines) = (Arc::clone(&self.arena), Arc::downgrade(self));
            let ear = thread::Builder::new().name("tollgate-bell".into());
            if ear.spawn(move || hear(&arena, &lines, slot)).is_err() {
                self.with_this(|this| this.has_ear = false);
            }
        }
        Some(slot)
    }

    /// Hears what was noted for this process, and pokes those who are meant.
    fn heed(&self, room: &Room, slot: Slot) {
        loop {
            let pokes = self.work(|tx| line::take_pokes(tx, slot)).unwrap_or_default();
            pokes.iter().for_each(|(namespace, key)| room.poke_here(namespace, key));
            if pokes.len() < POKES_AT_ONCE {
                return;
            }
        }
    }

    /// Looks whether those who are first in the lines of this process are still there.
    fn tend(&self, room: &Room) {
        for (namespace, key) in room.addresses() {
            self.first(&namespace, &key);
        }
    }

    /// Takes out the waiters of processes that are gone, of all buckets.
    fn bury(&self) {
        let mut census = Census::default();
        loop {
            let buried = self.work(|tx| {
                line::bury(tx, |slot, tx| match slot.owner(tx) {
                    Ok(owner) => owner.is_none_or(|process| census.has_ended(process)),
                    Err(_) => false,
                })
            });
            if buried.is_none_or(|buried| buried < line::GONE_AT_ONCE) {
                return;
            }
        }
    }

    /// Whether the process of one who waits is still there.
    fn is_there(&self, slot: Slot) -> Option<bool> {
        let now = Clock::system().now();
        let is_trusted = self.with_this(|this| match this.seen {
            Some((seen, at)) => seen == slot && now.since(at) < TRUSTED_FOR,
            None => false,
        });
        if is_trusted {
            return Some(true);
        }
        let owner = self.work(|tx| slot.owner(tx))?;
        let is_there = owner.is_some_and(|process| process.is_there());
        if is_there {
            self.with_this(|this| this.seen = Some((slot, now)));
        }
        Some(is_there)
    }
}

/// Whom a step lets ask again.
pub(crate) struct Tells {
    step: usize,
    tell: Tell,
}

/// Lines that can start the thread that hears for them.
pub(crate) struct SharedByAll(pub(crate) Arc<Lines>);

impl Lines {
    pub(crate) fn is_quiet(&self) -> bool {
        self.arena.word(WAITING).load(Ordering::Acquire) == 0
    }

    fn first(&self, namespace: &str, key: &BucketKey) -> Option<Rank> {
        if self.is_quiet() {
            return None;
        }
        let (own, address) = (self.slot(), (namespace, key));
        loop {
            let Waiter { rank, slot } = self.work(|tx| line::first(tx, address)).flatten()?;
            if Some(slot) == own || self.is_there(slot)? {
                return Some(rank);
            }
            // It may have been taken out by another in the meantime, and whoever was behind it poked.
            let tell = self.work(|tx| {
                if !line::leave(tx, address, rank)? {
                    return Ok(None);
                }
                line::poke(tx, address, own)
            });
            if let Some(tell) = tell? {
                self.tell_one(address, tell);
            }
        }
    }

    /// Leaves a line; `false` if it cannot be reached.
    fn leave(&self, address: Address<'_>, rank: Rank) -> bool {
        let own = self.slot();
        let tell = self.work(|tx| {
            let was_first = line::first(tx, address)?.is_some_and(|first| first.rank == rank);
            let stood = line::leave(tx, address, rank)?;
            if was_first && stood { line::poke(tx, address, own) } else { Ok(None) }
        });
        let Some(tell) = tell else { return false };
        self.retire();
        tell.into_iter().for_each(|tell| self.tell_one(address, tell));
        true
    }

    /// Leaves the lines that could not be reached when they were to be left.
    fn make_up(&self) {
        let owed = self.with_this(|this| std::mem::take(&mut this.owed));
        for (namespace, key, rank) in owed {
            if !self.leave((&namespace, &key), rank) {
                self.with_this(|this| this.owed.push((namespace, key, rank)));
            }
        }
    }

    fn poke(&self, namespace: &str, key: &BucketKey) {
        let (own, address) = (self.slot(), (namespace, key));
        if let Some(Some(tell)) = self.work(|tx| line::poke(tx, address, own)) {
            self.tell_one(address, tell);
        }
    }
}

impl SharedLines for SharedByAll {
    #[inline]
    fn is_quiet(&self) -> bool {
        self.0.is_quiet()
    }

    fn number(&self) -> u64 {
        self.0.arena.word(TICKETS).fetch_add(1, Ordering::Relaxed)
    }

    fn generation(&self) -> u64 {
        generation()
    }

    fn join(&self, namespace: &str, key: &BucketKey, rank: Rank, max: usize) -> Result<(), RoomFull> {
        // Where as many processes wait as may, this one looks again by itself.
        let Some(slot) = self.0.enlist() else { return Ok(()) };
        let address = (namespace, key);
        let joined = self.0.work(|tx| {
            let waiting = usize::try_from(line::length(tx, address)?).unwrap_or(usize::MAX);
            if waiting >= max {
                return Ok(Err(RoomFull { waiting, max }));
            }
            line::join(tx, address, Waiter { rank, slot }).map(Ok)
        });
        let joined = joined.unwrap_or(Ok(()));
        if joined.is_err() {
            self.0.retire();
        }
        joined
    }

    fn leave(&self, namespace: &str, key: &BucketKey, rank: Rank) {
        if !self.0.leave((namespace, key), rank) {
            // The thread that hears the bell goes on trying: this one still counts as standing.
            self.0.with_this(|this| this.owed.push((namespace.into(), key.clone(), rank)));
        }
    }

    fn first(&self, namespace: &str, key: &BucketKey) -> Option<Rank> {
        self.0.first(namespace, key)
    }

    fn poke(&self, namespace: &str, key: &BucketKey) {
        self.0.poke(namespace, key);
    }
}

/// Hears the bell of a slot for as long as somebody waits.
fn hear(arena: &Arena, lines: &Weak<Lines>, slot: Slot) {
    let mut idle = 0;
    loop {
        let heard = slot.bell(arena);
        let Some(lines) = lines.upgrade() else { return };
        let Some(room) = lines.room.get().and_then(Weak::upgrade) else { return };
        lines.make_up();
        lines.heed(&room, slot);
        lines.tend(&room);
        let is_done = lines.with_this(|this| {
            idle = if this.standing == 0 { idle + 1 } else { 0 };
            // Who comes from here on starts another thread.
            this.has_ear = idle <= IDLE_LOOKS;
            !this.has_ear
        });
        if is_done {
            return;
        }
        drop((lines, room));
        slot.sleep(arena, heard, TENDED_EVERY);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Some(slot) = self.slot() {
            self.work(|tx| {
                line::take_pokes(tx, slot)?;
                slots::take_back(tx, slot)
            });
            // So that the thread which hears it need not be waited for.
            slot.ring(&self.arena);
        }
    }
}

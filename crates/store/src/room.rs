//! The room in which callers of one process wait for the buckets of a store.
//!
//! A cell in memory grants to its waiters itself. A bucket in a file or across a network cannot, and a chain of
//! buckets is more than one cell; so here the waiters stand in line for the buckets that denied them, and whoever is
//! first in all the lines it stands in asks the store again: when its time has come, or when something was given
//! back.
//!
//! Why nobody waits for each other in a circle: ranks are in one order for all lines, so the least of them is first
//! wherever it stands. Why nobody is overtaken: a newcomer looks at the lines of all its buckets before it asks, and
//! one who waits joins the line of the bucket that denies it longest, at the place of its arrival. One who is held up by
//! one bucket does not hold up those who only want another. Who takes from a child takes from its parent as well, so
//! while somebody is first in line for the parent nobody takes what it needs of the child.
//!
//! Why no wake-up is lost: who waits is in line before it asks the store. Whatever is given back after that finds the
//! line, and who is poked asks again.
//!
//! Where processes share a store, they can share the lines as well: see [`SharedLines`]. Then one who waits stands in the
//! line of its process and in that of all processes at the same place, and must be first in both.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use tollgate_core::Tick;

use crate::queue::Rank;
use crate::sync::Mutex;
use crate::{Alarm, Call, Clock, Key, Op, PerProcess, Priority, SharedLines, Step, generation};

type Address = (Box<str>, Key);
type Line = BTreeMap<Rank, Arc<Spot>>;

/// The lines in front of the buckets of one store.
pub struct Room {
    tickets: AtomicU64,
    shared: Option<Arc<dyn SharedLines>>,
    halls: PerProcess<Hall>,
}

/// The lines of one process.
#[derive(Default)]
struct Hall {
    waiting: AtomicUsize,
    lines: Mutex<HashMap<Address, Line>>,
}

/// Too many wait for one bucket already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} wait for this bucket already, and at most {max} may; slow down or raise waiters_max")]
pub struct RoomFull {
    /// How many wait.
    pub waiting: usize,
    /// How many may.
    pub max: usize,
}

/// A place in line. Dropping it gives it up, and the next is looked at.
pub struct Ticket<'a> {
    room: &'a Room,
    hall: &'a Hall,
    rank: Rank,
    spot: Arc<Spot>,
    stands: Vec<Address>,
}

/// One who waits, as seen by those who wake it.
struct Spot(Mutex<Called>);

#[derive(Default)]
struct Called {
    poked: bool,
    waker: Option<Waker>,
    /// When it will ask again by itself; who is denied because of it can be told.
    due: Option<Tick>,
    /// The next alarm that is set.
    armed: Option<Tick>,
}

impl Spot {
    /// Marks it to ask again, and answers whom to wake once no lock is held.
    fn poke(&self) -> Option<Waker> {
        let mut called = self.0.lock();
        called.poked = true;
        called.waker.take()
    }
}

impl Alarm for Spot {
    fn ring(self: Arc<Self>, at: Tick, _: &Clock) {
        let waker = {
            let mut called = self.0.lock();
            called.armed = called.armed.filter(|armed| *armed != at);
            called.poked = true;
            called.waker.take()
        };
        wake(waker);
    }
}

impl Default for Room {
    fn default() -> Room {
        Room::new(None)
    }
}

impl Room {
    fn new(shared: Option<Arc<dyn SharedLines>>) -> Room {
        let process = process_of(shared.as_deref());
        Room { tickets: AtomicU64::new(0), shared, halls: PerProcess::new(process) }
    }

    /// The lines of this process.
    #[inline]
    fn hall(&self) -> &Hall {
        self.halls.get(process_of(self.shared.as_deref()))
    }

    /// A room whose lines several processes share.
    pub fn shared_by(lines: Arc<dyn SharedLines>) -> Room {
        Room::new(Some(lines))
    }

    /// Whether several processes share the lines, so that whoever gives back in one of them pokes who waits in another.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Whether nobody waits for anything. One look, so that the common case pays nothing.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.hall().waiting.load(Ordering::Acquire) == 0
            && self.shared.as_ref().is_none_or(|shared| shared.is_quiet())
    }

    /// How many wait in this process.
    pub fn waiting(&self) -> usize {
        self.hall().waiting.load(Ordering::Acquire)
    }

    /// The first in the line of a bucket, in whatever process.
    fn first_of_all(&self, namespace: &str, key: &Key) -> Option<Rank> {
        self.shared.as_ref()?.first(namespace, key)
    }

    /// The buckets that somebody waits for in this process. For those who [share](SharedLines) the lines.
    pub fn addresses(&self) -> Vec<(Box<str>, Key)> {
        self.hall().lines.lock().keys().cloned().collect()
    }

    /// Whether somebody waits for a bucket whom a newcomer may not overtake; if so, when that one will ask again, if
    /// it is known.
    pub fn is_ahead(
        &self,
        namespace: &str,
        key: &Key,
        priority: Priority,
        now: Tick,
    ) -> Option<Option<Tick>> {
        if self.is_quiet() {
            return None;
        }
        let newcomer = Rank::newcomer(priority, now);
        let due = || {
            let lines = self.hall().lines.lock();
            let line = lines.get(&(namespace.into(), key.clone()))?;
            let (_, first) = line.first_key_value().filter(|(rank, _)| **rank < newcomer)?;
            Some(first.0.lock().due)
        };
        // When one of another process asks again is not known here.
        due().or_else(|| self.first_of_all(namespace, key).filter(|first| *first < newcomer).map(|_| None))
    }

    /// Whether anybody waits for a bucket.
    pub fn has_line(&self, namespace: &str, key: &Key) -> bool {
        if self.is_quiet() {
            return false;
        }
        let is_here = self.hall().lines.lock().contains_key(&(namespace.into(), key.clone()));
        is_here || self.first_of_all(namespace, key).is_some()
    }

    /// How many wait for a bucket.
    pub fn waiting_for(&self, namespace: &str, key: &Key) -> usize {
        if self.is_quiet() {
            return 0;
        }
        self.hall().lines.lock().get(&(namespace.into(), key.clone())).map_or(0, BTreeMap::len)
    }

    /// Something was given back to a bucket: whoever is first in its line asks again, in whatever process.
    pub fn poke(&self, namespace: &str, key: &Key) {
        if self.is_quiet() {
            return;
        }
        match &self.shared {
            Some(shared) => shared.poke(namespace, key),
            None => self.poke_here(namespace, key),
        }
    }

    /// Whoever is first in the line of a bucket in this process asks again. For those who [share](SharedLines) the lines.
    pub fn poke_here(&self, namespace: &str, key: &Key) {
        let first = first_of(&self.hall().lines.lock(), &(namespace.into(), key.clone()));
        wake(first.and_then(|spot| spot.poke()));
    }

    /// A call was applied: whoever is first in line for a bucket that it gave back to asks again.
    pub fn poke_freed(&self, call: &Call<'_>) {
        if self.is_quiet() {
            return;
        }
        let frees = |step: &&Step<'_>| !matches!(step.op, Op::Take { .. } | Op::Renew(_));
        call.steps.iter().filter(frees).for_each(|step| self.poke(step.place.namespace, step.place.key));
    }

    /// Limits may have changed: whoever is first in any line asks again.
    pub fn poke_all(&self) {
        if self.is_quiet() {
            return;
        }
        let first = |line: &Line| line.first_key_value().map(|(_, spot)| Arc::clone(spot));
        let all: Vec<Arc<Spot>> = self.hall().lines.lock().values().filter_map(first).collect();
        all.into_iter().for_each(|spot| wake(spot.poke()));
    }

    /// A place for one who comes at `now`. It stands in no line yet.
    pub fn ticket(&self, priority: Priority, now: Tick) -> Ticket<'_> {
        let number = match &self.shared {
            Some(shared) => shared.number(),
            None => self.tickets.fetch_add(1, Ordering::Relaxed),
        };
        let spot = Arc::new(Spot(Mutex::new(Called::default())));
        let rank = Rank::new(priority, now, number);
        Ticket { room: self, hall: self.hall(), rank, spot, stands: Vec::new() }
    }
}

/// The number of this process, by which a process that was forked off has no waiters of its parent.
#[inline]
fn process_of(shared: Option<&dyn SharedLines>) -> u64 {
    shared.map_or_else(|| generation().into(), SharedLines::generation)
}

fn first_of(lines: &HashMap<Address, Line>, address: &Address) -> Option<Arc<Spot>> {
    lines.get(address)?.first_key_value().map(|(_, spot)| Arc::clone(spot))
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Ticket<'_> {
    /// Joins the lines of these buckets, those it stands in already aside. Answers whether there were any others.
    ///
    /// # Errors
    ///
    /// [`RoomFull`] if one of them has `max` in it; it has joined none then.
    pub fn stand<'k>(
        &mut self,
        namespace: &str,
        keys: impl IntoIterator<Item = &'k Key>,
        max: usize,
    ) -> Result<bool, RoomFull> {
        let new: Vec<Address> = keys.into_iter().map(|key| (namespace.into(), key.clone())).collect();
        let new: Vec<Address> = new.into_iter().filter(|address| !self.stands.contains(address)).collect();
        self.join_shared(&new, max)?;
        let mut lines = self.hall.lines.lock();
        let length = |address: &Address| lines.get(address).map_or(0, BTreeMap::len);
        if let Some(waiting) = new.iter().map(length).find(|waiting| *waiting >= max) {
            drop(lines);
            self.leave_shared(&new);
            return Err(RoomFull { waiting, max });
        }
        if self.stands.is_empty() && !new.is_empty() {
            self.hall.waiting.fetch_add(1, Ordering::AcqRel);
        }
        let is_new = !new.is_empty();
        for address in new {
            lines.entry(address.clone()).or_default().insert(self.rank, Arc::clone(&self.spot));
            self.stands.push(address);
        }
        Ok(is_new)
    }

    /// Joins the lines that processes share, all of them or none.
    fn join_shared(&self, addresses: &[Address], max: usize) -> Result<(), RoomFull> {
        let Some(shared) = &self.room.shared else { return Ok(()) };
        for (index, (namespace, key)) in addresses.iter().enumerate() {
            if let Err(full) = shared.join(namespace, key, self.rank, max) {
                self.leave_shared(&addresses[..index]);
                return Err(full);
            }
        }
        Ok(())
    }

    fn leave_shared(&self, addresses: &[Address]) {
        if let Some(shared) = &self.room.shared {
            addresses.iter().for_each(|(namespace, key)| shared.leave(namespace, key, self.rank));
        }
    }

    /// Leaves all lines but those of these buckets. Should it come back to one, its place is that of its arrival.
    pub fn stand_only(&mut self, namespace: &str, keys: &[&Key]) {
        let is_kept = |address: &Address| *address.0 == *namespace && keys.contains(&&address.1);
        let (kept, left): (Vec<Address>, Vec<Address>) = self.stands.drain(..).partition(is_kept);
        self.stands = kept;
        self.leave(&left);
        if self.stands.is_empty() && !left.is_empty() {
            self.hall.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Takes it out of lines, and has whoever is first then look again.
    fn leave(&self, addresses: &[Address]) {
        let mut next = Vec::new();
        let mut lines = self.hall.lines.lock();
        for address in addresses {
            let Some(line) = lines.get_mut(address) else { continue };
            let was_first = line.first_key_value().is_some_and(|(rank, _)| *rank == self.rank);
            line.remove(&self.rank);
            if line.is_empty() {
                lines.remove(address);
            } else if was_first {
                next.extend(first_of(&lines, address));
            }
        }
        drop(lines);
        self.leave_shared(addresses);
        next.into_iter().for_each(|spot| wake(spot.poke()));
    }

    /// Whether it may ask the store for these buckets: it is first in every line it stands in, and nobody is ahead of
    /// it in theirs. Where somebody is, it joins the line.
    ///
    /// # Errors
    ///
    /// [`RoomFull`].
    pub fn may_ask(&mut self, namespace: &str, keys: &[Key], max: usize) -> Result<bool, RoomFull> {
        if self.room.is_quiet() {
            return Ok(true);
        }
        let is_held_up = |key: &&Key| {
            let first_here = {
                let lines = self.hall.lines.lock();
                let line = lines.get(&(namespace.into(), (*key).clone()));
                line.and_then(|line| line.first_key_value()).map(|(first, _)| *first)
            };
            let is_ahead = |first: Rank| first < self.rank;
            first_here.is_some_and(is_ahead) || self.room.first_of_all(namespace, key).is_some_and(is_ahead)
        };
        let held_up: Vec<&Key> = keys.iter().filter(is_held_up).collect();
        self.stand(namespace, held_up, max)?;
        Ok(self.is_first())
    }

    fn is_first(&self) -> bool {
        let lines = self.hall.lines.lock();
        let is_first = |address: &Address| {
            lines
                .get(address)
                .and_then(|line| line.first_key_value())
                .is_some_and(|(rank, _)| *rank == self.rank)
        };
        let is_first_here = self.stands.iter().all(is_first);
        drop(lines);
        // Where the lines of all cannot be seen, those of this process have to do.
        let is_first = |first: Rank| first == self.rank;
        let mut stands = self.stands.iter();
        is_first_here && stands.all(|(name, key)| self.room.first_of_all(name, key).is_none_or(is_first))
    }

    /// Whether it stands in any line.
    pub fn stands(&self) -> bool {
        !self.stands.is_empty()
    }

    /// Forgets what it was poked for so far: whoever asks the store from now on hears of it there.
    pub fn listen(&self) {
        self.spot.0.lock().poked = false;
    }

    /// Waits until it was poked since it last [listened](Ticket::listen), or until `due`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing: it can be waited again.
    pub async fn poked(&self, clock: &Clock, due: Option<Tick>) {
        self.set_alarm(clock, due);
        poll_fn(|context| {
            // Dropped when the lock is free: the last waker of a task may drop anything.
            let _replaced;
            let mut called = self.spot.0.lock();
            if called.poked {
                return Poll::Ready(());
            }
            _replaced = called.waker.replace(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Sets an alarm for `due` unless one is set that comes first: those who are often poked must not pile them up.
    fn set_alarm(&self, clock: &Clock, due: Option<Tick>) {
        let mut called = self.spot.0.lock();
        called.due = due;
        let Some(due) = due.filter(|due| called.armed.is_none_or(|armed| *due < armed)) else { return };
        called.armed = Some(due);
        drop(called);
        let spot: Arc<dyn Alarm> = self.spot.clone();
        let alarm: Weak<dyn Alarm> = Arc::downgrade(&spot);
        clock.alarm(due, alarm);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        // In a process that was forked off, its place is that of the parent.
        if self.stands.is_empty() || !std::ptr::eq(self.hall, self.room.hall()) {
            return;
        }
        self.leave(&self.stands);
        self.hall.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

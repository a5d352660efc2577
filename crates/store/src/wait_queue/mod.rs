//! Wait queues: where the callers of one process wait for limits of buckets that cannot grant by themselves.
//!
//! A cell in memory grants to its waiters itself. A bucket in a file or across a network cannot, and a chain of
//! buckets is more than one cell. So a caller that a store denied joins the queue of the limit it is short of, and the
//! head of the queue asks the store again: when its time has come, or when it is notified that something was given back.
//!
//! - No deadlock: ranks are in one order for all queues, so the least of them is at the head wherever it waits.
//! - No overtaking: a newcomer looks at the queues of all limits it takes from before it asks, and joins those in which a
//!   waiter is ahead of it. A waiter holds back no demand that takes from other limits.
//! - No starvation: a waiter stays in the queues it joined because it was short, so its share of those limits grows.
//! - No lost notification: a waiter is in its queues before it asks. What is given back after that finds it there.
//! - No waiting for a waiter that does not react, because its future is not polled or its process is stopped: others pass
//!   it within a second, until it reacts.
//!
//! Where processes share a store, they can share the queues as well: see [`SharedQueues`]. A store across a network keeps the
//! order itself: each take says where its caller stands, see [`QueuePlace`].

mod guard;
mod key;
mod local;
mod place;
mod shared;
mod waiter;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Tick, Usage};

pub use guard::QueueGuard;
pub use key::{Freed, QueueKey};
use local::LocalQueues;
pub use place::{Claim, QueuePlace};
pub use shared::SharedQueues;

use crate::cell_queue::Rank;
use crate::{BucketRef, Clock, Key, PerProcess, Priority, Transaction, generation};

/// The wait queues in front of the limits of one store.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_store::{Clock, Freed, Key, Priority, QueueKey, WAITERS_MAX, WaitQueues};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (queues, bucket) = (WaitQueues::default(), Key::new(&["user-1"]));
/// let mut waiter = queues.guard(&Clock::system(), Priority::Normal, Tick::from_secs(10));
/// let key = QueueKey { namespace: "app".into(), bucket: bucket.clone(), limit: "rpm".into() };
/// waiter.enqueue([key], WAITERS_MAX)?;
/// assert!(queues.has_waiter("app", &bucket));
/// // A store that gives back to a bucket notifies the head of each of its queues.
/// queues.notify(&Freed::all("app", &bucket));
/// waiter.notified(None).await;
/// # Ok::<(), tollgate_store::QueueFull>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WaitQueues {
    tickets: AtomicU64,
    shared: Option<Arc<dyn SharedQueues>>,
    local: PerProcess<Arc<LocalQueues>>,
}

/// Too many callers wait for one limit already.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_store::{Clock, Key, Priority, QueueFull, QueueKey, WaitQueues};
///
/// let (queues, clock) = (WaitQueues::default(), Clock::system());
/// let key = QueueKey { namespace: "app".into(), bucket: Key::new(&["user-1"]), limit: "rpm".into() };
/// let mut first = queues.guard(&clock, Priority::Normal, Tick::from_secs(10));
/// first.enqueue([key.clone()], 1)?;
/// let mut second = queues.guard(&clock, Priority::Normal, Tick::from_secs(11));
/// assert_eq!(second.enqueue([key], 1), Err(QueueFull { waiting: 1, max: 1 }));
/// # Ok::<(), QueueFull>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{waiting} callers wait for this limit already, and at most {max} may; slow down or raise waiters_max"
)]
pub struct QueueFull {
    /// The number of callers that wait.
    pub waiting: usize,
    /// The number of callers that may.
    pub max: usize,
}

impl Default for WaitQueues {
    fn default() -> WaitQueues {
        WaitQueues::new(None)
    }
}

impl WaitQueues {
    fn new(shared: Option<Arc<dyn SharedQueues>>) -> WaitQueues {
        let process = process_of(shared.as_deref());
        WaitQueues { tickets: AtomicU64::new(0), shared, local: PerProcess::new(process) }
    }

    /// Returns queues that are part of those of several processes.
    pub fn shared_by(shared: Arc<dyn SharedQueues>) -> WaitQueues {
        WaitQueues::new(Some(shared))
    }

    /// The queues of this process.
    #[inline]
    fn local(&self) -> &Arc<LocalQueues> {
        self.local.get(process_of(self.shared.as_deref()))
    }

    /// Returns true if waiters in other processes are notified as well.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns true if no caller waits for anything. A load or two, so that an uncontended caller pays nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting() == 0 && self.shared.as_ref().is_none_or(|shared| shared.is_empty())
    }

    /// Returns how many callers wait in this process.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.local().waiting.load(Ordering::Acquire)
    }

    /// Returns how many callers of this process wait for a limit of a bucket.
    pub fn waiting_for(&self, namespace: &str, bucket: &Key) -> usize {
        if self.is_empty() { 0 } else { self.local().waiting_for(namespace, bucket) }
    }

    /// Returns true if a waiter of this process is expected to act: it was notified, or it is asking the store.
    pub fn is_busy(&self) -> bool {
        self.waiting() > 0 && self.local().is_busy()
    }

    /// Returns true if a caller of this process waits for a limit of a bucket.
    pub fn has_waiter(&self, namespace: &str, bucket: &Key) -> bool {
        self.waiting() > 0 && self.local().has_waiter(namespace, bucket)
    }

    /// Returns the queues that have a waiter in this process. For implementations of [`SharedQueues`].
    pub fn keys(&self) -> Vec<QueueKey> {
        self.local().keys()
    }

    fn shared_head(&self, key: &QueueKey) -> Option<Rank> {
        self.shared.as_ref()?.head(key)
    }

    /// Returns `Some` if a waiter is ahead of a newcomer of this priority, with the time at which it polls again, if known.
    pub fn ahead_of(&self, key: &QueueKey, priority: Priority, now: Tick) -> Option<Option<Tick>> {
        if self.is_empty() {
            return None;
        }
        let newcomer = Rank::newcomer(priority, now);
        match self.local().head(key).filter(|head| head.rank < newcomer) {
            Some(head) => Some(head.due()),
            // When a waiter of another process polls again is not known here.
            None => self.shared_head(key).filter(|head| *head < newcomer).map(|_| None),
        }
    }

    /// Notifies the heads of the queues of limits that have more room, in all processes.
    pub fn notify(&self, freed: &Freed) {
        if self.is_empty() {
            return;
        }
        match &self.shared {
            Some(shared) => shared.notify(freed),
            None => self.local().notify(freed),
        }
    }

    /// Notifies the head of a queue if it is in this process. For implementations of [`SharedQueues`].
    pub fn notify_local(&self, key: &QueueKey) {
        if let Some(head) = self.local().head(key) {
            head.notify();
        }
    }

    /// Returns the rank of the head of a queue in this process. For implementations of [`SharedQueues`].
    pub fn local_head(&self, key: &QueueKey) -> Option<Rank> {
        self.local().head(key).map(|head| head.rank)
    }

    /// Returns the first `max` ranks behind a waiter in a queue of this process, in order.
    pub fn behind(&self, key: &QueueKey, rank: Rank, max: usize) -> Vec<Rank> {
        self.local().behind(key, rank, max)
    }

    /// Notifies the heads of the queues of what a call has freed that was applied.
    pub fn notify_freed(&self, call: &Transaction<'_>) {
        if !self.is_empty() {
            call.steps.iter().filter_map(Freed::by).for_each(|freed| self.notify(&freed));
        }
    }

    /// Notifies those that wait for what is free once what was taken is settled with what was used. Costs next to nothing if
    /// none waits.
    #[inline]
    pub fn notify_settled(&self, place: &BucketRef<'_>, usage: &Usage<'_>) {
        if !self.is_empty() {
            Freed::by_settling(place, usage).iter().for_each(|freed| self.notify(freed));
        }
    }

    /// Notifies the head of every queue of this process, because limits may have changed.
    pub fn notify_all(&self) {
        if !self.is_empty() {
            self.local().notify_all();
        }
    }

    /// Returns a place for a caller that came at `since`. It is in no queue yet, and its alarms go by `clock`.
    pub fn guard(&self, clock: &Clock, priority: Priority, since: Tick) -> QueueGuard<'_> {
        let ticket = match &self.shared {
            Some(shared) => shared.next_ticket(),
            None => self.tickets.fetch_add(1, Ordering::Relaxed),
        };
        let local = self.local();
        self.shared.iter().for_each(|shared| local.share(shared));
        QueueGuard::new(self, local, clock, Rank::new(priority, since, ticket))
    }
}

/// The number of this process. A forked child has another, and none of the waiters of its parent.
#[inline]
fn process_of(shared: Option<&dyn SharedQueues>) -> u64 {
    shared.map_or_else(|| generation().into(), SharedQueues::generation)
}

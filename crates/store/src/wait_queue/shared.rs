//! Wait queues that several processes share.

use super::{Freed, QueueFull, QueueKey};
use crate::cell_queue::Rank;

/// The wait queues of all processes that share a store.
///
/// [`WaitQueues`](crate::WaitQueues) that are [shared](crate::WaitQueues::shared_by) keep the queues of their own process, and
/// each waiter is in the queue of all processes as well, under the same rank. A waiter asks the store when it is at the
/// head of both.
///
/// # Examples
///
/// ```
/// use std::collections::{BTreeSet, HashMap};
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::{Arc, Mutex, MutexGuard};
/// use tollgate_core::Tick;
/// use tollgate_store::{Clock, Freed, Key, Priority, QueueFull, QueueKey, Rank, SharedQueues, WaitQueues};
///
/// /// Queues in a map, where a store would use memory that its processes share.
/// #[derive(Default)]
/// struct MapQueues(Mutex<HashMap<QueueKey, BTreeSet<Rank>>>, AtomicU64);
///
/// impl MapQueues {
///     fn lock(&self) -> MutexGuard<'_, HashMap<QueueKey, BTreeSet<Rank>>> {
///         self.0.lock().expect("no thread panics while it has the lock")
///     }
/// }
///
/// impl SharedQueues for MapQueues {
///     fn is_empty(&self) -> bool {
///         self.lock().values().all(BTreeSet::is_empty)
///     }
///
///     fn next_ticket(&self) -> u64 {
///         self.1.fetch_add(1, Ordering::Relaxed)
///     }
///
///     fn generation(&self) -> u64 {
///         tollgate_store::generation().into()
///     }
///
///     fn join(&self, key: &QueueKey, rank: Rank, max: usize) -> Result<bool, QueueFull> {
///         let mut queues = self.lock();
///         let queue = queues.entry(key.clone()).or_default();
///         let waiting = queue.len();
///         if waiting >= max { Err(QueueFull { waiting, max }) } else { Ok(queue.insert(rank)) }
///     }
///
///     fn leave(&self, key: &QueueKey, rank: Rank) {
///         self.lock().entry(key.clone()).or_default().remove(&rank);
///         // Here the process of the next head would be notified.
///     }
///
///     fn head(&self, key: &QueueKey) -> Option<Rank> {
///         self.lock().get(key)?.first().copied()
///     }
///
///     fn notify(&self, _: &Freed) {
///         // Here the processes of the heads would be notified.
///     }
/// }
///
/// let shared = Arc::new(MapQueues::default());
/// let processes = [(); 2].map(|()| WaitQueues::shared_by(shared.clone()));
/// let key = QueueKey { namespace: "app".into(), bucket: Key::new(&["user-1"]), limit: "rpm".into() };
/// let mut waiter = processes[0].guard(&Clock::system(), Priority::Normal, Tick::from_secs(10));
/// waiter.enqueue([key.clone()], 100)?;
/// // A caller of the other process is behind it.
/// let mut other = processes[1].guard(&Clock::system(), Priority::Normal, Tick::from_secs(11));
/// assert!(!other.may_ask(&[key], 100)?);
/// # Ok::<(), QueueFull>(())
/// ```
pub trait SharedQueues: Send + Sync {
    /// Returns true if no process has a waiter. One load, so that an uncontended caller pays nothing.
    fn is_empty(&self) -> bool;

    /// Returns a ticket number, increasing across all processes.
    fn next_ticket(&self) -> u64;

    /// Returns a number that is another one in a forked child, which has none of the waiters of its parent.
    fn generation(&self) -> u64;

    /// Adds a waiter to a queue. Returns false if that is not possible now: such a waiter must poll.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] if `max` waiters of all processes are in it.
    fn join(&self, key: &QueueKey, rank: Rank, max: usize) -> Result<bool, QueueFull>;

    /// Removes a waiter from a queue. If it was at the head, the next head is notified.
    fn leave(&self, key: &QueueKey, rank: Rank);

    /// Returns the head of a queue. A waiter of a process that does not react is passed over.
    fn head(&self, key: &QueueKey) -> Option<Rank>;

    /// Notifies the heads of the queues of limits that have more room.
    fn notify(&self, freed: &Freed);
}

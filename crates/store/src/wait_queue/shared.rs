//! Wait queues that several processes share.

use super::{Freed, QueueFull, QueueKey};
use crate::cell_queue::Rank;

/// The wait queues of all processes that share a store.
///
/// [`WaitQueues`](crate::WaitQueues) that are [shared](crate::WaitQueues::shared_by) keep the queues of their own process, and
/// each waiter is in the queue of all processes as well, under the same rank. A waiter asks the store when it is at the
/// head of both.
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

//! The places of one caller in wait queues.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use tollgate_core::Tick;

use super::local::LocalQueues;
use super::waiter::Waiter;
use super::{QueueFull, QueueKey, WaitQueues};
use crate::Clock;
use crate::cell_queue::Rank;

/// The places of one caller in wait queues. Dropping it gives them up, and notifies the next.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_store::{Clock, Key, Priority, QueueKey, WAITERS_MAX, WaitQueues};
///
/// let (queues, clock) = (WaitQueues::default(), Clock::system());
/// let key = QueueKey { namespace: "app".into(), bucket: Key::new(&["user-1"]), limit: "rpm".into() };
/// let mut first = queues.guard(&clock, Priority::Normal, Tick::from_secs(10));
/// let mut second = queues.guard(&clock, Priority::Normal, Tick::from_secs(11));
/// for guard in [&mut first, &mut second] {
///     guard.enqueue([key.clone()], WAITERS_MAX)?;
/// }
/// assert!(first.may_ask(&[key.clone()], WAITERS_MAX)?);
/// assert!(!second.may_ask(&[key.clone()], WAITERS_MAX)?);
/// drop(first);
/// assert!(second.may_ask(&[key], WAITERS_MAX)?, "it is at the head now");
/// # Ok::<(), tollgate_store::QueueFull>(())
/// ```
pub struct QueueGuard<'a> {
    queues: &'a WaitQueues,
    local: &'a Arc<LocalQueues>,
    waiter: Arc<Waiter>,
    places: Vec<GuardPlace>,
}

struct GuardPlace {
    key: QueueKey,
    /// True if it is in the shared queue, if there is one. Otherwise no other process notifies it, and it must poll.
    is_listed: bool,
}

impl<'a> QueueGuard<'a> {
    pub(super) fn new(
        queues: &'a WaitQueues,
        local: &'a Arc<LocalQueues>,
        clock: &Clock,
        rank: Rank,
    ) -> QueueGuard<'a> {
        let waiter = Arc::new(Waiter::new(rank, clock.clone(), local));
        QueueGuard { queues, local, waiter, places: Vec::new() }
    }

    /// Returns the rank of the caller, which is the same in all queues.
    pub fn rank(&self) -> Rank {
        self.waiter.rank
    }

    /// Returns true if the caller is in a queue.
    pub fn is_queued(&self) -> bool {
        !self.places.is_empty()
    }

    /// Returns true if the caller is notified of all that it waits for; otherwise it must poll.
    pub fn is_notified_of_all(&self) -> bool {
        self.places.iter().all(|place| place.is_listed)
    }

    /// Joins the queues that the caller is not in yet. Returns true if there were any.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] if one of them has `max` waiters; none has been joined then.
    pub fn enqueue(
        &mut self,
        keys: impl IntoIterator<Item = QueueKey>,
        max: usize,
    ) -> Result<bool, QueueFull> {
        let is_new = |key: &QueueKey| self.places.iter().all(|place| place.key != *key);
        let new: Vec<QueueKey> = keys.into_iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(false);
        }
        let listed = self.join_shared(&new, max)?;
        if let Err(full) = self.local.join(&new, &self.waiter, max) {
            self.leave_shared(&new);
            return Err(full);
        }
        if self.places.is_empty() {
            self.local.waiting.fetch_add(1, Ordering::AcqRel);
        }
        self.places.extend(new.into_iter().zip(listed).map(|(key, is_listed)| GuardPlace { key, is_listed }));
        Ok(true)
    }

    /// Joins the shared queues, all of them or none. Returns which of them it is in.
    fn join_shared(&self, keys: &[QueueKey], max: usize) -> Result<Vec<bool>, QueueFull> {
        let Some(shared) = &self.queues.shared else { return Ok(vec![true; keys.len()]) };
        let mut listed = Vec::with_capacity(keys.len());
        for key in keys {
            match shared.join(key, self.rank(), max) {
                Ok(is_listed) => listed.push(is_listed),
                Err(full) => {
                    self.leave_shared(&keys[..listed.len()]);
                    return Err(full);
                }
            }
        }
        Ok(listed)
    }

    fn leave_shared<'k>(&self, keys: impl IntoIterator<Item = &'k QueueKey>) {
        if let Some(shared) = &self.queues.shared {
            keys.into_iter().for_each(|key| shared.leave(key, self.rank()));
        }
    }

    /// Leaves all queues but these. Should the caller come back to one, its place is that of its arrival.
    pub fn retain_only(&mut self, keys: &[QueueKey]) {
        let is_kept = |place: &GuardPlace| keys.contains(&place.key);
        let (kept, left): (Vec<GuardPlace>, Vec<GuardPlace>) = self.places.drain(..).partition(is_kept);
        self.places = kept;
        self.leave(&left);
        if self.places.is_empty() && !left.is_empty() {
            self.local.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn leave(&self, places: &[GuardPlace]) {
        self.local.leave(places.iter().map(|place| &place.key), self.rank());
        self.leave_shared(places.iter().map(|place| &place.key));
    }

    /// Returns true if the caller may ask the store for these limits: it is at the head of every queue it is in, and no
    /// waiter is ahead of it in the queues of the limits. It joins those in which one is.
    ///
    /// # Errors
    ///
    /// [`QueueFull`].
    pub fn may_ask(&mut self, keys: &[QueueKey], max: usize) -> Result<bool, QueueFull> {
        if self.queues.is_empty() {
            return Ok(true);
        }
        let held_back: Vec<QueueKey> = keys.iter().filter(|key| self.is_held_back(key)).cloned().collect();
        self.enqueue(held_back, max)?;
        Ok(self.places.iter().all(|place| !self.is_held_back(&place.key)))
    }

    /// Returns true if a waiter is ahead of it in a queue. One that is not in the shared queue goes by that of this process, and
    /// by its age.
    fn is_held_back(&self, key: &QueueKey) -> bool {
        let is_ahead = |head: Rank| head < self.rank();
        self.local.head(key).is_some_and(|head| is_ahead(head.rank))
            || self.queues.shared_head(key).is_some_and(is_ahead)
    }

    /// Forgets earlier notifications, because the caller is about to ask the store, which knows what they were for.
    pub fn clear_notification(&mut self, max: usize) {
        if self.waiter.clear_notification() {
            self.places.iter_mut().for_each(|place| place.is_listed = false);
        }
        // It was passed over, or the shared queues could not be reached.
        if let Some(shared) = &self.queues.shared {
            for place in self.places.iter_mut().filter(|place| !place.is_listed) {
                place.is_listed = shared.join(&place.key, self.waiter.rank, max).unwrap_or(false);
            }
        }
    }

    /// Waits until the caller was notified since it last [forgot](QueueGuard::clear_notification) that, or until `due`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing: it can be waited again.
    pub async fn notified(&self, due: Option<Tick>) {
        self.waiter.set_alarm(due);
        poll_fn(|context| match self.waiter.is_notified(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        // In a forked child its places are those of the parent.
        if self.places.is_empty() || !Arc::ptr_eq(self.local, self.queues.local()) {
            return;
        }
        self.leave(&self.places);
        self.local.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

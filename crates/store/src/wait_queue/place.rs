//! Queue places: how a caller stands among the waiters of all processes, for stores that keep that order themselves.

use super::QueueKey;
use crate::Priority;
use crate::cell_queue::Rank;

/// The place of a caller among the waiters for what it takes. The default is that of a newcomer.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_store::{Claim, Key, Priority, QueueKey, QueuePlace, Rank};
///
/// let newcomer = QueuePlace { priority: Priority::Batch, ..QueuePlace::default() };
/// assert!(newcomer.rank.is_none() && newcomer.claims.is_empty());
///
/// let limit = QueueKey { namespace: "app".into(), bucket: Key::new(&["user-1"]), limit: "rpm".into() };
/// let rank = Rank { due: Tick::from_secs(10), ticket: 1 };
/// let claims = vec![Claim { limit, followers: Vec::new() }];
/// let waiter = QueuePlace { rank: Some(rank), claims, ..newcomer };
/// assert_eq!(waiter.claims.len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct QueuePlace {
    /// A newcomer's rank is the time of the store plus the patience of its priority.
    pub priority: Priority,
    /// The rank of a caller that waits; `None` for a newcomer.
    pub rank: Option<Rank>,
    /// The limits that it claims.
    pub claims: Vec<Claim>,
}

/// A limit that a waiter claims, with the waiters of its process that claim it as well.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_store::{Claim, Clock, Key, Priority, QueueKey, WAITERS_MAX, WaitQueues};
///
/// let (queues, clock) = (WaitQueues::default(), Clock::system());
/// let limit = QueueKey { namespace: "app".into(), bucket: Key::new(&["user-1"]), limit: "rpm".into() };
/// let guard = |secs| queues.guard(&clock, Priority::Normal, Tick::from_secs(secs));
/// let (mut head, mut second) = (guard(10), guard(11));
/// head.enqueue([limit.clone()], WAITERS_MAX)?;
/// second.enqueue([limit.clone()], WAITERS_MAX)?;
/// let claim = Claim { followers: queues.behind(&limit, head.rank(), 8), limit };
/// assert_eq!(claim.followers, [second.rank()]);
/// # Ok::<(), tollgate_store::QueueFull>(())
/// ```
#[derive(Clone, Debug)]
pub struct Claim {
    /// The limit.
    pub limit: QueueKey,
    /// The ranks of waiters behind it, in order. They do not ask the store before it has been served.
    pub followers: Vec<Rank>,
}

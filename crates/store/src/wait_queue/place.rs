//! Queue places: how a caller stands among the waiters of all processes, for stores that keep that order themselves.

use super::QueueKey;
use crate::Priority;
use crate::cell_queue::Rank;

/// The place of a caller among the waiters for what it takes. The default is that of a newcomer.
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
#[derive(Clone, Debug)]
pub struct Claim {
    /// The limit.
    pub limit: QueueKey,
    /// The ranks of waiters behind it, in order. They do not ask the store before it has been served.
    pub followers: Vec<Rank>,
}

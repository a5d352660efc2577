//! Lines that processes share.

use crate::queue::Rank;
use crate::{Key, RoomFull};

/// The lines in front of buckets that several processes share: for stores that can wake one who waits in another.
///
/// A [`Room`](crate::Room) that is [shared](crate::Room::shared_by) keeps the line of its own process, and everybody in it
/// stands in the one of all processes as well, at the same place. Who may ask the store is who is first in both. Where the
/// store cannot be reached, a line is as good as not there: who waits looks again by itself now and then.
pub trait SharedLines: Send + Sync {
    /// Whether nobody waits in any process. One look, so that the common case pays nothing.
    fn is_quiet(&self) -> bool;

    /// A number for one who comes, greater than all before it in whatever process.
    fn number(&self) -> u64;

    /// A number that is another one in a process that was forked off: it has none of the waiters of its parent.
    fn generation(&self) -> u64;

    /// Joins the line of a bucket.
    ///
    /// # Errors
    ///
    /// [`RoomFull`] if `max` stand in it already, in whatever process.
    fn join(&self, namespace: &str, key: &Key, rank: Rank, max: usize) -> Result<(), RoomFull>;

    /// Leaves the line of a bucket. If it was first, whoever is first then is poked.
    fn leave(&self, namespace: &str, key: &Key, rank: Rank);

    /// The first in the line of a bucket, those aside who are seen to be gone.
    fn first(&self, namespace: &str, key: &Key) -> Option<Rank>;

    /// Something was given back to a bucket: whoever is first in its line asks again, in whatever process.
    fn poke(&self, namespace: &str, key: &Key);
}

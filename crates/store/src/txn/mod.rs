//! Transactions on stored buckets: every step is decided before anything is changed.
//!
//! [`apply`] is for stores that load buckets, decide by the core and write the buckets back. How they load and write is
//! what they implement of [`BucketTxn`]. The memory store decides on cells that it has locked, with their waiters, and
//! shares only parts of this.

mod apply;
mod bucket_txn;

pub(crate) use apply::used_by;
pub use apply::{Applied, apply};
pub use bucket_txn::{BucketTxn, MeteredBucket, TxnBucket};

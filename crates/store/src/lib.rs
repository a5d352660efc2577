//! Where buckets live, and how callers wait for them.
//!
//! A store makes the pure functions of `tollgate-core` atomic and nothing else: no arithmetic happens here. The
//! memory store is the fastest of them and the one in which waiting is at home; [`Store`] is what every other
//! one implements, and the suites of `tollgate-conformance` prove a store equal to the core.

mod acquire;
mod activity;
mod arc_impls;
mod backend;
mod block_on;
mod bucket_cell;
mod cell_queue;
mod chain;
mod clock;
mod codec;
mod fault;
mod forgotten;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod join_all;
mod key;
mod local_bucket;
mod locked;
mod memory;
mod metered;
mod owned_txn;
mod per_process;
#[cfg(all(feature = "workers", not(loom)))]
pub mod prefetch;
mod process;
mod random;
mod random_id;
pub mod records;
mod reply;
mod retry;
mod store;
mod stored_bucket;
mod sync;
#[cfg(not(loom))]
mod timer;
pub mod txn;
pub mod usage;
mod wait_queue;
#[cfg(all(feature = "workers", not(loom)))]
pub mod workers;

pub use acquire::{Granted, WaitError, WaitFuture, WaitRequest};
pub use activity::Activity;
pub use backend::{Backend, BucketStatus, FORGET_MAX, Scope};
pub use block_on::{may_block, poll_blocking};
pub use bucket_cell::{BucketCell, LeaseTerm};
pub use cell_queue::{PRIORITY_OFFSET, Priority, Rank, WAITERS_MAX};
pub use chain::{CHAIN_MAX, CellChain, ChainError, PLAIN_CHAIN_MAX, PlainStep};
pub use clock::{Alarm, Clock, ClockWords, Correction, HostClock, ManualClock, Sleep, StoreClock};
pub use codec::{decode_outcome, encode_outcome};
pub use fault::{Fault, FaultStore};
pub use forgotten::{FORGOTTEN_KEPT, forgotten_keys, forgotten_write, is_forgotten};
pub use join_all::join_all;
pub use key::Key;
pub use local_bucket::LocalBucket;
pub use memory::{Memory, MemoryBuilder, NamespaceTable};
pub use owned_txn::OwnedTransaction;
pub use per_process::PerProcess;
pub use process::{LivenessCache, Process, new_holder_id, new_living_holder};
pub use random::{SplitMix64, random_u64};
pub use random_id::random_id;
pub use reply::Reply;
pub use retry::{Backoff, Jitter, Retry};
pub use store::{
    BucketRef, Op, OpId, OutcomeCallback, Reach, Step, StepOutcome, Store, StoreError, Taken, Transaction,
    TxnOutcome,
};
pub use stored_bucket::StoredBucket;
pub use tollgate_sys::{Condvar, Mutex, MutexGuard, NoFork, generation, monotonic_nanos};
pub use wait_queue::{Claim, Freed, QueueFull, QueueGuard, QueueKey, QueuePlace, SharedQueues, WaitQueues};

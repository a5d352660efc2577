//! Aggregator of the stream of the table.
//!
//! It learns from the stream which buckets have changed, not by how much: every item counts its own usage and remembers
//! how much of it was written down, and writing it down moves both in one transaction. So records may come twice, in any
//! order and in any batches, to any number of aggregators, and usage is the same. Without an aggregator nothing is lost
//! either: a call that reads usage adds what is not written down yet.
//!
//! | in the stream | what is done |
//! |---|---|
//! | a bucket was made or changed, and has something that is not written down | it is written down, once for each batch |
//! | a bucket has expired | its remaining usage is written down, and marked as done in the same transaction |
//! | an audit event has expired | it is archived |
//! | an item is written nearly as often as a partition bears | its bucket is put into twice as many items |
//!
//! Buckets are not refilled. In the original that keeps them on the fast path; here the write that takes adds the
//! credit for the time since the last write itself, so a refill would be a useless write.

mod aggregator;
mod archive;
mod batch;
mod json;
mod outcome;
mod reader;
mod record;
mod sdk;
mod write_rate;

pub use aggregator::Aggregator;
pub use archive::{Archive, ArchiveError, Folder};
pub use outcome::{BatchOutcome, FailedRecord};
pub use reader::{StreamBatch, StreamProgress, StreamReader, StreamStart};
pub use record::{EventKind, StreamRecord};

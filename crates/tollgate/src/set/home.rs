//! Where a set lives.

use std::sync::Arc;

use tollgate_store::Cell;

use super::remote::Remote;

/// Where the bucket of a set is. Decided once, when the set is built.
pub(crate) enum Home {
    /// In this set, for the threads and tasks that share it.
    Here(Arc<Cell>),
    /// In a store, for everybody who opens the set there.
    There(Box<Remote>),
}

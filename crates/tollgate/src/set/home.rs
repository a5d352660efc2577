//! Where a set lives.

use std::sync::Arc;

use tollgate_core::Limits;
use tollgate_store::{Cell, PerProcess, generation};

use super::remote::Remote;

/// Where the bucket of a set is.
pub(crate) enum Home<'a> {
    /// In this set, for the threads and tasks that share it.
    Here(&'a Arc<Cell>),
    /// In a store, for everybody who opens the set there.
    There(&'a Remote),
}

/// What a set keeps of where it lives. Decided once, when the set is built.
pub(super) enum Address {
    /// A process that was forked off has a bucket of its own, which begins as that of its parent stood.
    Here(PerProcess<Arc<Cell>>),
    There(Box<Remote>),
}

impl Address {
    pub(super) fn here(cell: Arc<Cell>) -> Address {
        Address::Here(PerProcess::of(generation().into(), cell))
    }

    /// Where the bucket is for this process. `limits` are those that the set was built with.
    #[inline(always)]
    pub(super) fn home(&self, limits: &Limits) -> Home<'_> {
        match self {
            Address::Here(cells) => Home::Here(cells.get_or(generation().into(), |parent| {
                parent.of_a_fork().unwrap_or_else(|| super::fresh_cell(limits))
            })),
            Address::There(remote) => Home::There(remote),
        }
    }
}

//! Where a set is: in this process, or in a store.

use std::sync::Arc;

use tollgate_core::Limits;
use tollgate_store::{BucketCell, PerProcess, generation};

use super::remote::StoredBacking;

/// Where the bucket of a set is.
pub(crate) enum Backing<'a> {
    /// In this set, for the threads and tasks that share it.
    Local(&'a Arc<BucketCell>),
    /// In a store, for all callers that open the set there.
    Stored(&'a StoredBacking),
}

/// Where the bucket of a set is. Decided once, when the set is built.
pub(super) enum SetAddress {
    /// A process that was forked off has a bucket of its own, which begins as that of its parent stood.
    Local(PerProcess<Arc<BucketCell>>),
    Stored(Box<StoredBacking>),
}

impl SetAddress {
    pub(super) fn local(cell: Arc<BucketCell>) -> SetAddress {
        SetAddress::Local(PerProcess::of(generation().into(), cell))
    }

    /// Where the bucket is for this process. `limits` are those that the set was built with.
    #[inline(always)]
    pub(super) fn backing(&self, limits: &Limits) -> Backing<'_> {
        match self {
            SetAddress::Local(cells) => Backing::Local(cells.get_or(generation().into(), |parent| {
                parent.of_a_fork().unwrap_or_else(|| super::fresh_cell(limits))
            })),
            SetAddress::Stored(remote) => Backing::Stored(remote),
        }
    }
}

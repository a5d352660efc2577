//! What those do who can do without the store while it is away.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Span, Tick};
use tollgate_store::{Clock, Memory};

/// How long a store that did not answer is left alone by those who can do without it.
const LEFT_ALONE_FOR: Span = Span::from_secs(1);

/// Whether the store is away, and the memory that stands in for it.
#[derive(Default)]
pub(crate) struct StoreHealth {
    /// Until when a store that did not answer is left alone.
    until: AtomicU64,
    local: OnceLock<Memory>,
}

impl StoreHealth {
    /// Returns whether the store did not answer a moment ago, so that a caller that can do without it need not ask.
    pub(crate) fn is_recent(&self, now: Tick) -> bool {
        now.as_micros() < self.until.load(Ordering::Relaxed)
    }

    /// The store did not answer.
    pub(crate) fn note(&self, now: Tick) {
        self.until.fetch_max((now + LEFT_ALONE_FOR).as_micros(), Ordering::Relaxed);
    }

    /// The memory that stands in for the store.
    pub(crate) fn local(&self, clock: &Clock) -> &Memory {
        self.local.get_or_init(|| Memory::builder().clock(clock.clone()).build())
    }
}

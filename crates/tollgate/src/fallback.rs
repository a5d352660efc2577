//! Fallback while the store is unavailable.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Span, Tick};
use tollgate_store::{Clock, Memory};

/// How long a store that did not answer is not asked by callers that have a fallback.
const RETRY_AFTER: Span = Span::from_secs(1);

/// Whether the store is unavailable, and the memory that replaces it meanwhile.
#[derive(Default)]
pub(crate) struct StoreHealth {
    /// Until when a store that did not answer is not asked.
    unavailable_until: AtomicU64,
    local: OnceLock<Memory>,
}

impl StoreHealth {
    /// Returns the answer of the store; what `fall_back` offers instead, if the store is unavailable or was a moment ago.
    ///
    /// # Cancel safety
    ///
    /// As that of `answer`.
    pub(crate) async fn or_fall_back<T, E>(
        &self,
        clock: &Clock,
        answer: impl Future<Output = Result<T, E>>,
        is_unavailable: impl Fn(&E) -> bool,
        fall_back: impl Fn() -> Result<Option<T>, E>,
    ) -> Result<T, E> {
        if self.is_unavailable(clock.now())
            && let Some(offered) = fall_back()?
        {
            return Ok(offered);
        }
        match answer.await {
            Err(error) if is_unavailable(&error) => {
                self.mark_unavailable(clock.now());
                fall_back()?.ok_or(error)
            }
            answer => answer,
        }
    }

    fn is_unavailable(&self, now: Tick) -> bool {
        now.as_micros() < self.unavailable_until.load(Ordering::Relaxed)
    }

    fn mark_unavailable(&self, now: Tick) {
        self.unavailable_until.fetch_max((now + RETRY_AFTER).as_micros(), Ordering::Relaxed);
    }

    /// Returns the memory that replaces the store.
    pub(crate) fn local_store(&self, clock: &Clock) -> &Memory {
        self.local.get_or_init(|| Memory::builder().clock(clock.clone()).build())
    }
}

//! Which outcomes of a job are tried again.

use std::sync::Arc;
use std::time::Duration;

use tollgate_store::random_u64;

use crate::Retry;

type WantsMore<E> = dyn Fn(&E) -> bool + Send + Sync;
type IsValid<T> = dyn Fn(&T) -> bool + Send + Sync;

/// How often a job is tried, and after which outcomes.
pub(super) struct RetryRule<T, E> {
    pub(super) retry: Retry,
    pub(super) on_error: Option<Arc<WantsMore<E>>>,
    pub(super) is_valid: Option<Arc<IsValid<T>>>,
}

/// What to do about what came out of a try.
pub(super) enum RetryVerdict<T, E> {
    /// It counts.
    Keep(Result<T, E>),
    /// It was not valid, and was the last.
    Invalid,
    /// It is tried again after this pause. What came out is gone.
    Again(Duration),
}

impl<T, E> RetryRule<T, E> {
    pub(super) fn never() -> RetryRule<T, E> {
        RetryRule { retry: Retry::never(), on_error: None, is_valid: None }
    }

    /// What to do about what came out of the `tries`th try.
    pub(super) fn judge(&self, tries: u32, result: Result<T, E>) -> RetryVerdict<T, E> {
        let is_valid = |value: &T| self.is_valid.as_ref().is_none_or(|is_valid| is_valid(value));
        let wants_more = |error: &E| self.on_error.as_ref().is_none_or(|wants_more| wants_more(error));
        let is_final = match &result {
            Ok(value) => is_valid(value),
            Err(error) => !wants_more(error),
        };
        if is_final {
            return RetryVerdict::Keep(result);
        }
        match self.retry.pause_after(tries, random_u64()) {
            Some(pause) => RetryVerdict::Again(pause),
            None if result.is_ok() => RetryVerdict::Invalid,
            None => RetryVerdict::Keep(result),
        }
    }
}

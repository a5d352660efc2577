//! Retry policies, deadlines and budgets of a batch.

use std::time::Duration;

use tollgate::{Jitter, Retry, Span};

use crate::outcome::FailureClass;

/// The retry policies, deadlines and budgets that apply to the items of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) overloaded: Retry,
    pub(crate) transient: Retry,
    pub(crate) invalid: Retry,
    pub(crate) throttle_budget: Span,
    pub(crate) slow_start: Option<Span>,
    pub(crate) attempt_deadline: Option<Span>,
    pub(crate) item_deadline: Option<Span>,
    pub(crate) batch_deadline: Option<Span>,
    pub(crate) tokens_max: Option<u64>,
    pub(crate) cost_micros_max: Option<u64>,
    pub(crate) stop_on: Vec<FailureClass>,
}

impl Default for Policy {
    fn default() -> Policy {
        let (half, seconds) = (Duration::from_millis(500), Duration::from_secs);
        let retry = |attempts| Retry::attempts(attempts).jitter(Jitter::Added);
        Policy {
            overloaded: retry(10).pause(seconds(1)).longest(seconds(60)),
            transient: retry(5).pause(half).longest(seconds(30)),
            invalid: retry(3).pause(Duration::ZERO),
            throttle_budget: Span::from_secs(24 * 60 * 60),
            slow_start: None,
            attempt_deadline: None,
            item_deadline: None,
            batch_deadline: None,
            tokens_max: None,
            cost_micros_max: None,
            stop_on: Vec::new(),
        }
    }
}

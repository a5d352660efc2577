//! Deduplication: calls that were applied recently, so that one that is sent again is not applied again.

use std::collections::{HashMap, VecDeque};

use tollgate_core::{Span, Tick};

use crate::sync::Mutex;
use crate::{OpId, TxnOutcome};

/// How many calls are remembered.
const REMEMBERED_MAX: usize = 100_000;

/// How long a call is remembered. A caller that has not retried by then has given up.
const REMEMBERED_FOR: Span = Span::from_secs(600);

#[derive(Default)]
struct RecentCalls {
    applied: HashMap<OpId, TxnOutcome>,
    order: VecDeque<(Tick, OpId)>,
}

pub(crate) struct Dedup(Mutex<RecentCalls>);

impl Default for Dedup {
    fn default() -> Dedup {
        Dedup(Mutex::new(RecentCalls::default()))
    }
}

impl Dedup {
    /// Applies the call, or returns the outcome of an earlier call with the same id.
    ///
    /// The lock is held while it is applied, so that of two copies that come at once only one is applied. A denial
    /// changed nothing and is not remembered: a retry may be admitted.
    pub(crate) fn once<E>(
        &self,
        id: OpId,
        now: Tick,
        apply: impl FnOnce() -> Result<TxnOutcome, E>,
    ) -> Result<TxnOutcome, E> {
        let mut calls = self.0.lock();
        if let Some(applied) = calls.applied.get(&id) {
            return Ok(applied.clone());
        }
        let applied = apply()?;
        if matches!(applied, TxnOutcome::Done(_)) {
            calls.applied.insert(id, applied.clone());
            calls.order.push_back((now, id));
            calls.forget_old(now);
        }
        Ok(applied)
    }
}

impl RecentCalls {
    fn forget_old(&mut self, now: Tick) {
        while let Some((at, id)) = self.order.front().copied() {
            if self.order.len() <= REMEMBERED_MAX && now.since(at) < REMEMBERED_FOR {
                break;
            }
            self.order.pop_front();
            self.applied.remove(&id);
        }
    }
}

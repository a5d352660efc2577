//! A store that fails on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::Status;

use crate::{Applied, Call, Clock, Place, Reach, Reply, Store, StoreError};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The call never arrives.
    LoseCall,
    /// The call is applied, and the answer is lost.
    LoseReply,
}

type Plan = dyn Fn(u64) -> Option<Fault> + Send + Sync;

/// Wraps a store and injects faults by a plan: from the number of a call to what goes wrong with it.
pub struct FaultStore<S> {
    inner: S,
    plan: Arc<Plan>,
    calls: AtomicU64,
}

impl<S: Store> FaultStore<S> {
    /// A store that fails as `plan` says. Calls count from 0.
    pub fn new(inner: S, plan: impl Fn(u64) -> Option<Fault> + Send + Sync + 'static) -> FaultStore<S> {
        FaultStore { inner, plan: Arc::new(plan), calls: AtomicU64::new(0) }
    }

    /// The store without the faults.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// How many calls were made.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    fn next_fault(&self) -> Option<Fault> {
        (self.plan)(self.calls.fetch_add(1, Ordering::SeqCst))
    }
}

fn unavailable<T>(what: &str) -> Result<T, StoreError> {
    Err(StoreError::Unavailable(Duration::ZERO, what.into()))
}

impl<S: Store> Store for FaultStore<S> {
    fn reach(&self) -> Reach {
        self.inner.reach()
    }

    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    fn apply<'a>(&'a self, call: &Call<'a>) -> Reply<'a, Result<Applied, StoreError>> {
        match self.next_fault() {
            None => self.inner.apply(call),
            Some(Fault::LoseCall) => Reply::ready(unavailable("the call was lost")),
            Some(Fault::LoseReply) => {
                let reply = self.inner.apply(call);
                Reply::later(async move { reply.await.and_then(|_| unavailable("the reply was lost")) })
            }
        }
    }

    fn peek<'a>(&'a self, place: &Place<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        match self.next_fault() {
            None => self.inner.peek(place),
            Some(_) => Reply::ready(unavailable("the call was lost")),
        }
    }
}

//! The waiters of a replay. They wait in the limiter's own queues, on a manual clock, so this module does not decide their
//! order.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use foldhash::fast::RandomState;
use tollgate::limiter::{LimiterError, LimiterLease};

use super::replay::SimCall;

/// The future of a call that waits.
pub(super) type SimAcquire = Pin<Box<dyn Future<Output = SimResult>>>;

/// The result of a call.
type SimResult = Result<LimiterLease<'static>, LimiterError>;

/// The waiters, by the order of their arrival.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: HashMap<u64, SimWaiter, RandomState>,
    count: u64,
    woken: Arc<Woken>,
}

struct SimWaiter {
    call: SimCall,
    acquire: SimAcquire,
    waker: Waker,
}

/// The numbers of the waiters that are to be polled again.
#[derive(Default)]
struct Woken(Mutex<BTreeSet<u64>>);

/// The waker of a waiter.
struct SimWaker {
    number: u64,
    woken: Arc<Woken>,
}

impl Waiters {
    /// Adds a waiter, which is to be polled at once.
    pub(super) fn enter(&mut self, call: SimCall, acquire: SimAcquire) {
        self.count += 1;
        let waker = Waker::from(Arc::new(SimWaker { number: self.count, woken: Arc::clone(&self.woken) }));
        waker.wake_by_ref();
        self.waiting.insert(self.count, SimWaiter { call, acquire, waker });
    }

    /// Returns a call that has a result, if there is one now. Waiters are polled in the order of their arrival.
    pub(super) fn next(&mut self) -> Option<(SimCall, SimResult)> {
        loop {
            let number = self.woken.pop()?;
            // A waiter that was removed may still be woken.
            let Some(waiter) = self.waiting.get_mut(&number) else { continue };
            let polled = waiter.acquire.as_mut().poll(&mut Context::from_waker(&waiter.waker));
            if let Poll::Ready(result) = polled {
                return self.waiting.remove(&number).map(|waiter| (waiter.call, result));
            }
        }
    }

    /// Returns the calls that still wait.
    pub(super) fn into_calls(self) -> impl Iterator<Item = SimCall> {
        self.waiting.into_values().map(|waiter| waiter.call)
    }
}

impl Woken {
    fn pop(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }

    fn push(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
    }
}

impl Wake for SimWaker {
    fn wake(self: Arc<SimWaker>) {
        self.woken.push(self.number);
    }
}

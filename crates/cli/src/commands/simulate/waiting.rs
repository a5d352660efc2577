//! The waiters of a replay. They wait as they would elsewhere, in the limiter's own queues, on a manual clock: so this
//! module does not decide whose turn it is.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use foldhash::fast::RandomState;
use tollgate::limiter::{LimiterError, LimiterLease};

use super::replay::SimCall;

/// What becomes of a call, sooner or later.
pub(super) type SimTurn = Pin<Box<dyn Future<Output = SimAnswer>>>;

/// What became of a call.
type SimAnswer = Result<LimiterLease<'static>, LimiterError>;

/// The waiters, by the order in which they came.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: HashMap<u64, SimWaiter, RandomState>,
    count: u64,
    woken: Arc<Woken>,
}

struct SimWaiter {
    call: SimCall,
    turn: SimTurn,
    waker: Waker,
}

/// The numbers of the waiters that are to be polled again.
#[derive(Default)]
struct Woken(Mutex<BTreeSet<u64>>);

/// What wakes one of them.
struct SimWaker {
    number: u64,
    woken: Arc<Woken>,
}

impl Waiters {
    /// Adds a waiter, which is to be polled at once.
    pub(super) fn enter(&mut self, call: SimCall, turn: SimTurn) {
        self.count += 1;
        let waker = Waker::from(Arc::new(SimWaker { number: self.count, woken: Arc::clone(&self.woken) }));
        waker.wake_by_ref();
        self.waiting.insert(self.count, SimWaiter { call, turn, waker });
    }

    /// Returns a call whose turn has come, if there is one now. The waiter that came first is polled first.
    pub(super) fn next(&mut self) -> Option<(SimCall, SimAnswer)> {
        loop {
            let number = self.woken.pop()?;
            // A waiter that has gone may be woken all the same.
            let Some(waiter) = self.waiting.get_mut(&number) else { continue };
            if let Poll::Ready(answer) = waiter.turn.as_mut().poll(&mut Context::from_waker(&waiter.waker)) {
                return self.waiting.remove(&number).map(|waiter| (waiter.call, answer));
            }
        }
    }

    /// Returns the calls whose turn has not come.
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

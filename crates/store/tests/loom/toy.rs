//! The smallest gate there is, and the faults that can be planted in it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::sync::Mutex;

use crate::gate::Gate;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// Looks under one lock and takes under another.
    LooksThenTakes,
    /// Looks at its fate under one lock and leaves its waker under another.
    LooksThenLeavesWaker,
    /// What a cancelled waiter was granted is lost.
    LosesCancelledGrant,
    /// A cancelled waiter stays in the queue.
    LeavesCancelledWaiter,
    /// Gives back without looking at who waits.
    WakesNobody,
}

pub(crate) struct Toy {
    fault: Fault,
    state: Mutex<State>,
}

struct State {
    free: bool,
    tickets: u64,
    waiting: Vec<(u64, Waker)>,
    granted: Vec<u64>,
}

impl State {
    fn serve(&mut self) -> Option<Waker> {
        if !self.free || self.waiting.is_empty() {
            return None;
        }
        self.free = false;
        let (ticket, waker) = self.waiting.remove(0);
        self.granted.push(ticket);
        Some(waker)
    }

    fn hear(&mut self, ticket: u64) -> bool {
        let granted = self.granted.iter().position(|granted| *granted == ticket);
        granted.map(|index| self.granted.remove(index)).is_some()
    }

    fn leave_waker(&mut self, ticket: u64, waker: &Waker) {
        if let Some(waiter) = self.waiting.iter_mut().find(|waiter| waiter.0 == ticket) {
            waiter.1.clone_from(waker);
        }
    }
}

impl Toy {
    pub(crate) fn new(fault: Fault) -> Toy {
        let state = State { free: true, tickets: 0, waiting: Vec::new(), granted: Vec::new() };
        Toy { fault, state: Mutex::new(state) }
    }
}

impl Gate for Toy {
    fn try_take(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let free = state.free && state.waiting.is_empty();
        if self.fault == Fault::LooksThenTakes {
            drop(state);
            state = self.state.lock().unwrap();
        }
        if free {
            state.free = false;
        }
        free
    }

    fn acquire(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Wait { toy: self, ticket: None })
    }

    fn give_back(&self) {
        let mut state = self.state.lock().unwrap();
        state.free = true;
        let waker = if self.fault == Fault::WakesNobody { None } else { state.serve() };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    fn waiting(&self) -> usize {
        self.state.lock().unwrap().waiting.len()
    }

    fn is_full(&self) -> bool {
        self.state.lock().unwrap().free
    }
}

struct Wait {
    toy: Arc<Toy>,
    ticket: Option<u64>,
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let toy = Arc::clone(&self.toy);
        let mut state = toy.state.lock().unwrap();
        let Some(ticket) = self.ticket else {
            if state.free && state.waiting.is_empty() {
                state.free = false;
                return Poll::Ready(());
            }
            state.tickets += 1;
            self.ticket = Some(state.tickets);
            let ticket = state.tickets;
            // Like a thread that waits, it leaves a waker that wakes no thread until it looks again.
            state.waiting.push((ticket, Waker::noop().clone()));
            drop(state);
            return self.poll(context);
        };
        if state.hear(ticket) {
            self.ticket = None;
            return Poll::Ready(());
        }
        if toy.fault == Fault::LooksThenLeavesWaker {
            drop(state);
            state = toy.state.lock().unwrap();
        }
        state.leave_waker(ticket, context.waker());
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        // loom cannot be asked anything while a model that failed is taken down.
        if std::thread::panicking() {
            return;
        }
        let mut state = self.toy.state.lock().unwrap();
        if self.toy.fault != Fault::LeavesCancelledWaiter {
            state.waiting.retain(|waiter| waiter.0 != ticket);
        }
        if state.hear(ticket) && self.toy.fault != Fault::LosesCancelledGrant {
            state.free = true;
        }
        let waker = state.serve();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

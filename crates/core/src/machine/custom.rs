//! Custom limits with their types erased, so that they stand beside the other machines.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::{CustomLimit, Ready, Tick};

/// A rule of the caller's own. Cloning shares it, and only a clone equals it.
#[derive(Clone)]
pub(crate) struct Custom(Arc<dyn ErasedLimit>);

/// What a [`Custom`] remembers of the past.
pub(crate) struct CustomState(Box<dyn Remembered>);

/// A [`CustomLimit`] of any type, for states that it has made.
trait ErasedLimit: Any + Send + Sync {
    fn fresh(&self) -> CustomState;
    fn ready(&self, state: &CustomState, now: Tick, amount: u64) -> Ready;
    fn available(&self, state: &CustomState, now: Tick) -> i64;
    fn charge(&self, state: &mut CustomState, now: Tick, amount: u64);
    fn refund(&self, state: &mut CustomState, at: Tick, now: Tick, amount: u64);
    fn adopt(&self, old: &dyn Any, state: &CustomState, now: Tick) -> Option<CustomState>;
}

/// A state of any type.
trait Remembered: Any + fmt::Debug + Send + Sync {
    fn copy(&self) -> Box<dyn Remembered>;
    fn equals(&self, other: &dyn Any) -> bool;
}

impl Custom {
    pub(crate) fn new(rule: impl CustomLimit) -> Custom {
        Custom(Arc::new(rule))
    }

    pub(crate) fn fresh(&self) -> CustomState {
        self.0.fresh()
    }

    pub(crate) fn fits(&self, state: &CustomState, now: Tick, cost: u64, capacity: u64) -> bool {
        cost == 0 || cost <= capacity && self.ask(state, now, cost) == Ready::Now
    }

    /// When `cost` fits. A sum over a queue may be more than the capacity, which a rule knows nothing about: then it is no
    /// sooner than the capacity fits, and if that is now, it depends on those ahead.
    pub(crate) fn ready(&self, state: &CustomState, now: Tick, cost: u64, capacity: u64) -> Ready {
        match self.ask(state, now, cost.min(capacity)) {
            Ready::Now if cost > capacity => Ready::Unknown,
            ready => ready,
        }
    }

    /// What the rule says, with no instant that has passed: an alarm for one would ring again and again.
    fn ask(&self, state: &CustomState, now: Tick, amount: u64) -> Ready {
        match self.0.ready(state, now, amount) {
            Ready::At(at) if at <= now => Ready::Now,
            Ready::At(at) => Ready::at(at),
            ready => ready,
        }
    }

    pub(crate) fn available(&self, state: &CustomState, now: Tick) -> i64 {
        self.0.available(state, now)
    }

    pub(crate) fn charge(&self, state: &mut CustomState, now: Tick, cost: u64) {
        if cost > 0 {
            self.0.charge(state, now, cost);
        }
    }

    pub(crate) fn refund(&self, state: &mut CustomState, at: Tick, now: Tick, amount: u64) {
        if amount > 0 {
            self.0.refund(state, at, now, amount);
        }
    }

    pub(crate) fn is_fresh(&self, state: &CustomState) -> bool {
        *state == self.0.fresh()
    }

    /// The state under this rule that says what `state` says under `old`; `None` if they are of two types.
    pub(crate) fn adopt(&self, old: &Custom, state: &CustomState, now: Tick) -> Option<CustomState> {
        let old: &dyn Any = &*old.0;
        self.0.adopt(old, state, now)
    }
}

impl<L: CustomLimit> ErasedLimit for L {
    fn fresh(&self) -> CustomState {
        CustomState(Box::new(StateOf::<L>(self.fresh())))
    }

    fn ready(&self, state: &CustomState, now: Tick, amount: u64) -> Ready {
        self.ready(state.of::<L>(), now, amount)
    }

    fn available(&self, state: &CustomState, now: Tick) -> i64 {
        self.available(state.of::<L>(), now)
    }

    fn charge(&self, state: &mut CustomState, now: Tick, amount: u64) {
        self.charge(state.of_mut::<L>(), now, amount);
    }

    fn refund(&self, state: &mut CustomState, at: Tick, now: Tick, amount: u64) {
        self.refund(state.of_mut::<L>(), at, now, amount);
    }

    fn adopt(&self, old: &dyn Any, state: &CustomState, now: Tick) -> Option<CustomState> {
        let adopted = self.adopt(old.downcast_ref::<L>()?, state.of::<L>(), now);
        Some(CustomState(Box::new(StateOf::<L>(adopted))))
    }
}

/// A state of the rule `L`: two rules may have states of one type that mean different things.
struct StateOf<L: CustomLimit>(L::State);

impl<L: CustomLimit> Remembered for StateOf<L> {
    fn copy(&self) -> Box<dyn Remembered> {
        Box::new(StateOf::<L>(self.0.clone()))
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<StateOf<L>>().is_some_and(|other| self.0 == other.0)
    }
}

impl<L: CustomLimit> fmt::Debug for StateOf<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a state is of its rule: a bucket makes the state of each place by the limit there, and carries it over when that
/// is replaced.
const OF_ITS_RULE: &str = "the state of a limit was made by its rule";

impl CustomState {
    fn of<L: CustomLimit>(&self) -> &L::State {
        let state: &dyn Any = &*self.0;
        &state.downcast_ref::<StateOf<L>>().expect(OF_ITS_RULE).0
    }

    fn of_mut<L: CustomLimit>(&mut self) -> &mut L::State {
        let state: &mut dyn Any = &mut *self.0;
        &mut state.downcast_mut::<StateOf<L>>().expect(OF_ITS_RULE).0
    }
}

impl Clone for CustomState {
    fn clone(&self) -> CustomState {
        CustomState(self.0.copy())
    }
}

impl PartialEq for CustomState {
    fn eq(&self, other: &CustomState) -> bool {
        let other: &dyn Any = &*other.0;
        self.0.equals(other)
    }
}

impl fmt::Debug for CustomState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        // By address alone: one rule may have several tables of functions.
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl Eq for Custom {}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Custom")
    }
}

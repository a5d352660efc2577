//! Custom limits with erased types, so that they are one variant beside the other machines.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::{CustomLimit, Ready, Tick};

/// A rule of the caller. Clones share the rule, and only clones are equal.
#[derive(Clone)]
pub(crate) struct Custom(Arc<dyn ErasedLimit>);

/// The state of a [`Custom`] rule.
pub(crate) struct CustomState(Box<dyn ErasedState>);

/// A [`CustomLimit`] of any type, with the states that it made.
trait ErasedLimit: Any + Send + Sync {
    fn fresh(&self) -> CustomState;
    fn ready(&self, state: &CustomState, now: Tick, amount: u64) -> Ready;
    fn available(&self, state: &CustomState, now: Tick) -> i64;
    fn charge(&self, state: &mut CustomState, now: Tick, amount: u64);
    fn refund(&self, state: &mut CustomState, at: Tick, now: Tick, amount: u64);
    fn adopt(&self, old: &dyn Any, state: &CustomState, now: Tick) -> Option<CustomState>;
}

/// A state of any type.
trait ErasedState: Any + fmt::Debug + Send + Sync {
    fn copy(&self) -> Box<dyn ErasedState>;
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

    /// Returns when `cost` fits. A sum over a queue may exceed the capacity, which a rule does not
    /// support: then the result is when the capacity fits, or unknown if that is now, because it
    /// depends on the waiters ahead.
    pub(crate) fn ready(&self, state: &CustomState, now: Tick, cost: u64, capacity: u64) -> Ready {
        match self.ask(state, now, cost.min(capacity)) {
            Ready::Now if cost > capacity => Ready::Unknown,
            ready => ready,
        }
    }

    /// Calls the rule, and maps an instant that has passed to now: otherwise an alarm for it would
    /// fire again and again.
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

    /// Converts `state` of the rule `old` to a state of this rule; `None` if the rules are of
    /// different types.
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

/// A state of the rule `L`. Typed by the rule, because two rules may use one type of state with
/// different meanings.
struct StateOf<L: CustomLimit>(L::State);

impl<L: CustomLimit> ErasedState for StateOf<L> {
    fn copy(&self) -> Box<dyn ErasedState> {
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

/// Why the downcast cannot fail: a bucket makes the state at each index by the limit there, and
/// converts it when that limit is replaced.
const MADE_BY_ITS_RULE: &str = "the state of a limit was made by its rule";

impl CustomState {
    fn of<L: CustomLimit>(&self) -> &L::State {
        let state: &dyn Any = &*self.0;
        &state.downcast_ref::<StateOf<L>>().expect(MADE_BY_ITS_RULE).0
    }

    fn of_mut<L: CustomLimit>(&mut self) -> &mut L::State {
        let state: &mut dyn Any = &mut *self.0;
        &mut state.downcast_mut::<StateOf<L>>().expect(MADE_BY_ITS_RULE).0
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
        // Compares the data pointers only: one rule may have several vtables.
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl Eq for Custom {}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Custom")
    }
}

//! A call that can be kept: its caller may be gone by the time it is applied.

use crate::records::{Write, check_writes};
use crate::{BucketRef, Key, LeaseTerm, Op, OpId, Step, StepOutcome, StoreError, Transaction};
use tollgate_core::{Costs, Limits, Tick, Usage};

impl Transaction<'_> {
    /// Checks the call, and the writes that are made with it, for what no store accepts.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadCall`] with what is wrong.
    pub fn check(&self, writes: &[Write]) -> Result<(), StoreError> {
        if !writes.is_empty() {
            check_writes(writes)?;
        }
        if self.metered && self.steps.iter().any(|step| !step.place.key.is_pair()) {
            let why = "a metered key has two parts, the entity and the resource";
            return Err(StoreError::BadCall(why.into()));
        }
        self.check_limits()?;
        let is_twice = |(index, step): (usize, &Step<'_>)| {
            let is_it = |other: &Step<'_>| {
                other.place.key == step.place.key && other.place.namespace == step.place.namespace
            };
            self.steps[..index].iter().any(is_it)
        };
        if self.steps.iter().enumerate().any(is_twice) {
            return Err(StoreError::BadCall("two steps name one bucket; make it one step".into()));
        }
        Ok(())
    }

    /// Checks that no limit is a custom one, which no store can keep.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadCall`] with the name of one.
    pub fn check_limits(&self) -> Result<(), StoreError> {
        let mut checks = self.steps.iter().map(|step| step.place.limits.check_storable());
        checks.try_for_each(|check| check.map_err(|why| StoreError::BadCall(why.to_string())))
    }
}

/// A [`Transaction`] that borrows nothing.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{
///     BucketRef, Key, Memory, Op, OwnedTransaction, Step, Store, Transaction, TxnOutcome,
/// };
///
/// let store = Memory::default();
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::resource("slots", 3)])?);
/// let costs = limits.costs(&demand! { slots: 2 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let kept = OwnedTransaction::new(&Transaction { id: None, steps: &steps, metered: false });
/// let TxnOutcome::Done(done) = kept.with(|call| store.apply(call).wait())? else { panic!("it fits") };
/// // The caller is gone, so what its call took is given back.
/// let undo = kept.undo(&done).expect("it took something");
/// undo.with(|call| store.apply_detached(call));
/// assert_eq!(store.peek(&place).wait()?[0].available(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OwnedTransaction {
    /// The id of the call.
    pub id: Option<OpId>,
    steps: Vec<OwnedStep>,
    metered: bool,
}

#[derive(Clone, Debug)]
struct OwnedStep {
    namespace: Box<str>,
    key: Key,
    limits: Limits,
    op: OwnedOp,
}

#[derive(Clone, Debug)]
enum OwnedOp {
    Take { costs: Costs, term: Option<LeaseTerm> },
    Settle(OwnedUsage),
    SettleExisting(OwnedUsage),
    TopUp(Costs),
    Reset,
    Renew(LeaseTerm),
}

#[derive(Clone, Debug)]
struct OwnedUsage {
    at: Tick,
    reserved: Costs,
    used: Box<[u64]>,
    holder: Option<u128>,
}

impl OwnedTransaction {
    /// Returns the same call, which borrows nothing.
    pub fn new(call: &Transaction<'_>) -> OwnedTransaction {
        OwnedTransaction {
            id: call.id,
            steps: call.steps.iter().map(OwnedStep::new).collect(),
            metered: call.metered,
        }
    }

    /// Returns a call of no steps.
    pub fn empty() -> OwnedTransaction {
        OwnedTransaction { id: None, steps: Vec::new(), metered: false }
    }

    /// Calls `use_call` with the call as it was made.
    pub fn with<R>(&self, use_call: impl FnOnce(&Transaction<'_>) -> R) -> R {
        let steps: Vec<Step<'_>> = self.steps().collect();
        use_call(&Transaction { id: self.id, steps: &steps, metered: self.metered })
    }

    /// Returns its steps, each on another bucket.
    pub fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        self.steps.iter().map(OwnedStep::step)
    }

    /// Returns true if its usage is counted.
    pub fn is_metered(&self) -> bool {
        self.metered
    }

    /// Returns the call that gives back what this one took, when its outcome is `done`; `None` if it took nothing.
    pub fn undo(self, done: &[StepOutcome]) -> Option<OwnedTransaction> {
        let undo = |(step, done): (OwnedStep, &StepOutcome)| match (step.op, done) {
            (OwnedOp::Take { costs, term }, StepOutcome::Taken(taken)) => {
                let used = vec![0; costs.len()].into();
                let holder = term.map(|term| term.holder);
                let usage = OwnedUsage { at: taken.at, reserved: costs, used, holder };
                Some(OwnedStep { op: OwnedOp::SettleExisting(usage), ..step })
            }
            _ => None,
        };
        let steps: Vec<_> = self.steps.into_iter().zip(done).filter_map(undo).collect();
        (!steps.is_empty()).then_some(OwnedTransaction { id: None, steps, metered: self.metered })
    }
}

impl OwnedStep {
    fn new(step: &Step<'_>) -> OwnedStep {
        let BucketRef { namespace, key, limits } = step.place;
        let op = match &step.op {
            Op::Take { costs, term } => OwnedOp::Take { costs: (*costs).clone(), term: *term },
            Op::Settle(usage) => OwnedOp::Settle(OwnedUsage::new(usage)),
            Op::SettleExisting(usage) => OwnedOp::SettleExisting(OwnedUsage::new(usage)),
            Op::TopUp(credit) => OwnedOp::TopUp((*credit).clone()),
            Op::Reset => OwnedOp::Reset,
            Op::Renew(term) => OwnedOp::Renew(*term),
        };
        OwnedStep { namespace: namespace.into(), key: key.clone(), limits: limits.clone(), op }
    }

    fn step(&self) -> Step<'_> {
        let place = BucketRef { namespace: &self.namespace, key: &self.key, limits: &self.limits };
        let op = match &self.op {
            OwnedOp::Take { costs, term } => Op::Take { costs, term: *term },
            OwnedOp::Settle(usage) => Op::Settle(usage.usage()),
            OwnedOp::SettleExisting(usage) => Op::SettleExisting(usage.usage()),
            OwnedOp::TopUp(credit) => Op::TopUp(credit),
            OwnedOp::Reset => Op::Reset,
            OwnedOp::Renew(term) => Op::Renew(*term),
        };
        Step { place, op }
    }
}

impl OwnedUsage {
    fn new(usage: &Usage<'_>) -> OwnedUsage {
        let Usage { at, reserved, used, holder } = usage.clone();
        OwnedUsage { at, reserved: reserved.clone(), used: used.into(), holder }
    }

    fn usage(&self) -> Usage<'_> {
        Usage { at: self.at, reserved: &self.reserved, used: &self.used, holder: self.holder }
    }
}

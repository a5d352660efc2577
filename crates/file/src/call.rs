//! A call that can be kept: whoever made it may be gone by the time it is applied.

use tollgate_core::{Costs, Limits, Tick, Usage};
use tollgate_store::{Call, Done, Key, Op, OpId, Place, Step, Term};

/// A [`Call`] that borrows nothing.
#[derive(Clone, Debug)]
pub(crate) struct OwnedCall {
    pub(crate) id: Option<OpId>,
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
    Take {
        costs: Costs,
        term: Option<Term>,
    },
    Settle(OwnedUsage),
    SettleIfThere(OwnedUsage),
    TopUp(Costs),
    Reset,
    Renew(Term),
    /// One that this version does not know.
    Unknown,
}

#[derive(Clone, Debug)]
struct OwnedUsage {
    at: Tick,
    reserved: Costs,
    used: Box<[u64]>,
    holder: Option<u128>,
}

impl OwnedCall {
    pub(crate) fn new(call: &Call<'_>) -> OwnedCall {
        OwnedCall {
            id: call.id,
            steps: call.steps.iter().map(OwnedStep::new).collect(),
            metered: call.metered,
        }
    }

    /// A call of no steps.
    pub(crate) fn empty() -> OwnedCall {
        OwnedCall { id: None, steps: Vec::new(), metered: false }
    }

    /// Calls `use_call` with the call as it was made. `None` if it has a step that this version does not know.
    pub(crate) fn with<R>(&self, use_call: impl FnOnce(&Call<'_>) -> R) -> Option<R> {
        let steps = self.steps.iter().map(OwnedStep::step).collect::<Option<Vec<_>>>()?;
        Some(use_call(&Call { id: self.id, steps: &steps, metered: self.metered }))
    }

    /// The call that gives back what this one took, when it was answered `done`; `None` if it took nothing.
    pub(crate) fn undo(self, done: &[Done]) -> Option<OwnedCall> {
        let undo = |(step, done): (OwnedStep, &Done)| match (step.op, done) {
            (OwnedOp::Take { costs, term }, Done::Taken(taken)) => {
                let used = vec![0; costs.len()].into();
                let holder = term.map(|term| term.holder);
                let usage = OwnedUsage { at: taken.at, reserved: costs, used, holder };
                Some(OwnedStep { op: OwnedOp::SettleIfThere(usage), ..step })
            }
            _ => None,
        };
        let steps: Vec<_> = self.steps.into_iter().zip(done).filter_map(undo).collect();
        (!steps.is_empty()).then_some(OwnedCall { id: None, steps, metered: self.metered })
    }
}

impl OwnedStep {
    fn new(step: &Step<'_>) -> OwnedStep {
        let Place { namespace, key, limits } = step.place;
        let op = match &step.op {
            Op::Take { costs, term } => OwnedOp::Take { costs: (*costs).clone(), term: *term },
            Op::Settle(usage) => OwnedOp::Settle(OwnedUsage::new(usage)),
            Op::SettleIfThere(usage) => OwnedOp::SettleIfThere(OwnedUsage::new(usage)),
            Op::TopUp(credit) => OwnedOp::TopUp((*credit).clone()),
            Op::Reset => OwnedOp::Reset,
            Op::Renew(term) => OwnedOp::Renew(*term),
            _ => OwnedOp::Unknown,
        };
        OwnedStep { namespace: namespace.into(), key: key.clone(), limits: limits.clone(), op }
    }

    fn step(&self) -> Option<Step<'_>> {
        let place = Place { namespace: &self.namespace, key: &self.key, limits: &self.limits };
        let op = match &self.op {
            OwnedOp::Take { costs, term } => Op::Take { costs, term: *term },
            OwnedOp::Settle(usage) => Op::Settle(usage.usage()),
            OwnedOp::SettleIfThere(usage) => Op::SettleIfThere(usage.usage()),
            OwnedOp::TopUp(credit) => Op::TopUp(credit),
            OwnedOp::Reset => Op::Reset,
            OwnedOp::Renew(term) => Op::Renew(*term),
            OwnedOp::Unknown => return None,
        };
        Some(Step { place, op })
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

//! Faults of a store of buckets.

use tollgate_core::{Costs, Demand, Denial, Limits, Status};
use tollgate_store::{
    BucketRef, Clock, Op, Reach, Reply, Step, StepOutcome, Store, StoreError, Taken, Transaction, TxnOutcome,
};

use crate::faulty::{Fault, Faulty};

impl Faulty {
    /// Changes each call before it is applied, and what came of it after.
    pub(crate) fn apply_faulty(&self, call: &Transaction<'_>) -> Result<TxnOutcome, StoreError> {
        let unversioned: Vec<Limits> =
            call.steps.iter().map(|step| step.place.limits.clone().at_version(0)).collect();
        let whole: Vec<Costs> = call.steps.iter().map(|step| whole(step.place.limits)).collect();
        let mut steps: Vec<Step<'_>> = call.steps.to_vec();
        for (index, step) in steps.iter_mut().enumerate() {
            if self.has(Fault::MixesNamespaces) {
                step.place.namespace = "all";
            }
            if self.has(Fault::IgnoresVersions) {
                step.place.limits = &unversioned[index];
            }
            step.op = match step.op.clone() {
                Op::Take { costs, .. } if self.has(Fault::IgnoresExpiry) => Op::Take { costs, term: None },
                Op::Reset if self.has(Fault::ResetsOnlyCredit) => Op::TopUp(&whole[index]),
                Op::SettleExisting(usage) if self.has(Fault::SettlesWhatIsGone) => Op::Settle(usage),
                op => op,
            };
        }
        let is_dropped = match steps.first().map(|step| &step.op) {
            Some(Op::Settle(_) | Op::SettleExisting(_)) => self.has(Fault::LosesSettlements),
            Some(Op::TopUp(_)) => self.has(Fault::TopsUpNothing),
            Some(Op::Reset) => self.has(Fault::ResetsNothing),
            _ => false,
        };
        if is_dropped {
            return Ok(TxnOutcome::Done(steps.iter().map(|step| nothing_done(&step.op)).collect()));
        }
        let id = call.id.filter(|_| !self.has(Fault::ForgetsIds));
        let metered = self.is_metered(call) && !self.has(Fault::MetersAnyKey);
        let call = Transaction { id, steps: &steps, metered };
        if self.has(Fault::MetersTwice) {
            // Sent again without its id, and put right but for what was counted.
            let applied = self.memory.apply(&call).wait()?;
            return self.count_again(&call, applied);
        }
        if self.has(Fault::TakesChainsLinkByLink) {
            let one = |step| {
                self.memory.apply(&Transaction { steps: std::slice::from_ref(step), ..call.clone() }).wait()
            };
            return steps.iter().map(one).last().expect("a call has a step");
        }
        let applied = self.memory.apply(&call).wait()?;
        Ok(match applied {
            TxnOutcome::Stale(_) if self.has(Fault::DeniesBeforeItLooksAtVersions) => {
                self.deny_first(&call, applied)
            }
            TxnOutcome::Done(done) if self.has(Fault::RemarksNothing) => {
                TxnOutcome::Done(done.into_iter().map(without_warnings).collect())
            }
            applied => applied,
        })
    }

    /// What a store says that looks whether a take fits before it looks at versions.
    fn deny_first(&self, call: &Transaction<'_>, stale: TxnOutcome) -> TxnOutcome {
        let asked = self.memory.evaluate(call.steps).wait().unwrap_or_default();
        let is_denied = asked.iter().any(|denial| denial.ready() != tollgate_core::Ready::Now);
        if is_denied { TxnOutcome::Denied(asked) } else { stale }
    }

    fn ask_faulty(&self, steps: &[Step<'_>]) -> Result<Vec<Denial>, StoreError> {
        if self.has(Fault::AsksByTaking) {
            return match self.memory.apply(&Transaction { id: None, steps, metered: false }).wait()? {
                TxnOutcome::Denied(denials) => Ok(denials),
                _ => self.memory.evaluate(steps).wait(),
            };
        }
        let steps = if self.has(Fault::AsksOnlyTheFirst) { &steps[..steps.len().min(1)] } else { steps };
        self.memory.evaluate(steps).wait()
    }
}

/// As much of every limit as there is.
fn whole(limits: &Limits) -> Costs {
    let demand = limits
        .iter()
        .filter(|limit| !limit.is_cooldown())
        .fold(Demand::new(), |demand, limit| demand.with(limit.name().as_str(), limit.capacity()));
    limits.costs(&demand).expect("the capacity fits")
}

fn nothing_done(op: &Op<'_>) -> StepOutcome {
    match op {
        Op::Settle(_) | Op::SettleExisting(_) => StepOutcome::Settled,
        _ => StepOutcome::Changed,
    }
}

fn without_warnings(done: StepOutcome) -> StepOutcome {
    match done {
        StepOutcome::Taken(taken) => StepOutcome::Taken(Taken { warnings: 0, ..taken }),
        done => done,
    }
}

impl Store for Faulty {
    fn reach(&self) -> Reach {
        self.memory.reach()
    }

    fn clock(&self) -> &Clock {
        self.memory.clock()
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        Reply::ready(self.apply_faulty(call))
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let namespace = if self.has(Fault::MixesNamespaces) { "all" } else { place.namespace };
        let unversioned = place.limits.clone().at_version(0);
        let limits = if self.has(Fault::LooksUnderOldLimits) { &unversioned } else { place.limits };
        Reply::ready(self.memory.peek(&BucketRef { namespace, limits, ..*place }).wait())
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        Reply::ready(self.ask_faulty(steps))
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        if !self.has(Fault::LosesWhatIsHandedOver) {
            drop(self.apply_faulty(call));
        }
    }

    fn new_holder_id(&self) -> u128 {
        let holder = self.memory.new_holder_id();
        if self.has(Fault::RepeatsHolders) { holder / 2 } else { holder }
    }
}

//! The memory store passes the suite, and the suite catches stores that are wrong.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate_core::{Denial, Status};
use tollgate_store::{
    Applied, Call, Clock, Done, Memory, Op, Place, Reach, Reply, Step, Store, StoreError, conformance,
};

#[test]
fn the_memory_store_equals_the_core() {
    conformance::run(300, |clock| Memory::builder().clock(clock).build());
}

/// A memory store with a fault, which changes each call before it is applied.
struct Faulty {
    memory: Memory,
    fault: Fault,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    ForgetsIds,
    LosesSettlements,
    TakesChainsLinkByLink,
    IgnoresExpiry,
    MixesNamespaces,
}

impl Faulty {
    fn apply_faulty(&self, call: &Call<'_>) -> Result<Applied, StoreError> {
        let steps = call.steps;
        match self.fault {
            Fault::ForgetsIds => self.memory.apply(&Call { id: None, steps, metered: false }).wait(),
            Fault::LosesSettlements => match steps[0].op {
                Op::Settle(_) => Ok(Applied::Done(vec![Done::Settled])),
                _ => self.memory.apply(call).wait(),
            },
            Fault::TakesChainsLinkByLink => {
                let one = |step| {
                    self.memory
                        .apply(&Call { id: None, steps: std::slice::from_ref(step), metered: false })
                        .wait()
                };
                steps.iter().map(one).last().expect("a call has a step")
            }
            Fault::IgnoresExpiry => {
                let steps: Vec<Step<'_>> = steps.iter().map(without_term).collect();
                self.memory.apply(&Call { id: call.id, steps: &steps, metered: false }).wait()
            }
            Fault::MixesNamespaces => {
                let steps: Vec<Step<'_>> = steps.iter().map(in_one_namespace).collect();
                self.memory.apply(&Call { id: call.id, steps: &steps, metered: false }).wait()
            }
        }
    }
}

fn without_term<'a>(step: &Step<'a>) -> Step<'a> {
    let op = match &step.op {
        Op::Take { costs, .. } => Op::Take { costs, term: None },
        op => op.clone(),
    };
    Step { place: step.place, op }
}

fn in_one_namespace<'a>(step: &Step<'a>) -> Step<'a> {
    Step { place: Place { namespace: "all", ..step.place }, op: step.op.clone() }
}

impl Store for Faulty {
    fn reach(&self) -> Reach {
        self.memory.reach()
    }

    fn clock(&self) -> &Clock {
        self.memory.clock()
    }

    fn apply<'a>(&'a self, call: &Call<'a>) -> Reply<'a, Result<Applied, StoreError>> {
        Reply::ready(self.apply_faulty(call))
    }

    fn peek<'a>(&'a self, place: &Place<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let namespace = if matches!(self.fault, Fault::MixesNamespaces) { "all" } else { place.namespace };
        self.memory.peek(&Place { namespace, ..*place })
    }

    fn ask<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        self.memory.ask(steps)
    }

    fn hand_over(&self, call: &Call<'_>) {
        drop(self.apply_faulty(call));
    }

    fn new_holder(&self) -> u128 {
        self.memory.new_holder()
    }
}

#[test]
fn the_suite_catches_every_planted_fault() {
    let faults = [
        Fault::ForgetsIds,
        Fault::LosesSettlements,
        Fault::TakesChainsLinkByLink,
        Fault::IgnoresExpiry,
        Fault::MixesNamespaces,
    ];
    for fault in faults {
        let run = || {
            conformance::run(50, |clock| Faulty { memory: Memory::builder().clock(clock).build(), fault });
        };
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{fault:?} was not noticed");
    }
}

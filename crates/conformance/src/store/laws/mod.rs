//! Laws about cases that random traces rarely reach.

mod asking;
mod calls;
mod changes;
mod versions;

use tollgate_core::{Costs, Limit, Limits};
use tollgate_store::{BucketRef, Clock, Key, Op, OpId, Step, Store, Transaction, TxnOutcome};

pub(super) fn run<S: Store>(open: &impl Fn(Clock) -> S) {
    calls::run(open);
    changes::run(open);
    versions::run(open);
    asking::run(open);
}

fn limits() -> Limits {
    Limits::new([Limit::per_minute("tpm", 100), Limit::resource("slots", 2)]).expect("these limits are valid")
}

fn place<'a>(key: &'a Key, limits: &'a Limits) -> BucketRef<'a> {
    BucketRef { namespace: "laws", key, limits }
}

fn take<'a>(place: BucketRef<'a>, costs: &'a Costs) -> Step<'a> {
    Step { place, op: Op::Take { costs, term: None } }
}

fn available<S: Store>(store: &S, place: &BucketRef<'_>) -> Vec<i64> {
    let statuses = store.peek(place).wait().expect("the store answers");
    statuses.iter().map(tollgate_core::Status::available).collect()
}

fn apply<S: Store>(store: &S, id: u128, steps: &[Step<'_>]) -> TxnOutcome {
    let call = Transaction { id: Some(OpId(id)), steps, metered: false };
    store.apply(&call).wait().expect("the store answers")
}

fn is_done(applied: &TxnOutcome) -> bool {
    matches!(applied, TxnOutcome::Done(_))
}

fn is_denied(applied: &TxnOutcome) -> bool {
    matches!(applied, TxnOutcome::Denied(_))
}

//! The same traces on memory and on DynamoDB: the same verdicts, remainders and waits.

mod common;

use tollgate_store::conformance::{self, Twins};
use tollgate_store::{Clock, Memory};

#[test]
fn memory_and_dynamodb_agree_about_every_trace() {
    let open = |clock: Clock| Twins {
        memory: Memory::builder().clock(clock.clone()).build(),
        other: common::open(clock),
    };
    conformance::run(12, open);
}

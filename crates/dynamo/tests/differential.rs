//! The same traces on memory and on DynamoDB: the same verdicts, remainders and waits.

mod common;

use tollgate_conformance::store::{self, DifferentialStore};

#[test]
fn memory_and_dynamodb_agree_about_every_trace() {
    store::run(12, |clock| DifferentialStore::new(clock, common::open));
}

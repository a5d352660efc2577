//! The catalog keeps its promises on a table of the embedded engine.

mod common;

use std::panic::catch_unwind;
use std::sync::Arc;

use tollgate::Clock;
use tollgate::catalog::conformance;
use tollgate::store::Backend;

fn open(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(common::open(clock))
}

#[test]
fn every_promise_of_the_catalog_is_kept_on_dynamodb() {
    let is_broken = |name: &&str| catch_unwind(|| conformance::run_one(name, open)).is_err();
    let broken: Vec<&str> = conformance::names().filter(is_broken).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

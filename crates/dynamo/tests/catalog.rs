//! The catalog keeps its promises on a table of the embedded engine.

mod common;

use std::sync::Arc;

use tollgate::Clock;
use tollgate::store::Backend;
use tollgate_conformance::catalog;

fn open(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(common::open(clock))
}

#[test]
fn every_promise_of_the_catalog_is_kept_on_dynamodb() {
    assert_eq!(catalog::broken(&open), [""; 0]);
}

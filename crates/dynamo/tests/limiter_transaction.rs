//! The limiter on a table of the embedded engine, with each chain in a transaction.

mod common;

use std::sync::Arc;

use tollgate::Clock;
use tollgate::store::Backend;
use tollgate_dynamo::Chains;

fn open(clock: Clock) -> Arc<dyn Backend> {
    let engine = common::engine(&clock);
    let store = common::builder(clock).http_client(engine.http_client()).chains(Chains::Transaction);
    Arc::new(store.build().wait().expect("the engine has what it takes"))
}

tollgate_conformance::limiter_suite!(open, quick);

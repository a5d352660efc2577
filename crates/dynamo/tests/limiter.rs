//! The limiter on a table of the embedded engine.

mod common;

use std::sync::Arc;

use tollgate::Clock;
use tollgate::store::Backend;

fn open(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(common::open(clock))
}

tollgate_conformance::limiter_suite!(open);

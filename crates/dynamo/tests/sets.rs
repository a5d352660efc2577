//! Limit sets in a table of the embedded engine.

mod common;

use std::sync::Arc;

use tollgate::Clock;
use tollgate::store::Backend;

fn open(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(common::open(clock))
}

tollgate_conformance::set_suite!(open);

//! The limiter on memory.

use std::sync::Arc;

use tollgate::Clock;
use tollgate::store::{Backend, Memory};

fn open(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(Memory::builder().clock(clock).build())
}

tollgate_conformance::limiter_suite!(open);

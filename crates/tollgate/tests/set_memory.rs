//! Limit sets in memory, as a store.

use std::sync::Arc;

use tollgate::Clock;
use tollgate::store::{Backend, Memory};

fn open(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(Memory::builder().clock(clock).build())
}

tollgate_conformance::set_suite!(open);

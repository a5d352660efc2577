//! The catalog keeps its promises on the memory store.

use std::sync::Arc;

use tollgate_conformance::catalog;
use tollgate_store::{Backend, Clock, Memory};

fn memory(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(Memory::builder().clock(clock).build())
}

#[test]
fn every_promise_is_kept_on_the_memory_store() {
    assert_eq!(catalog::broken(&memory), [""; 0]);
}

#[test]
fn no_two_promises_have_one_name() {
    let mut names: Vec<&str> = catalog::names().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

//! The catalog keeps its promises on the memory store.

use std::panic::catch_unwind;
use std::sync::Arc;

use tollgate_catalog::conformance;
use tollgate_store::{Backend, Clock, Memory};

fn memory(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(Memory::builder().clock(clock).build())
}

#[test]
fn every_promise_is_kept_on_the_memory_store() {
    let is_broken = |name: &&str| catch_unwind(|| conformance::run_one(name, memory)).is_err();
    let broken: Vec<&str> = conformance::names().filter(is_broken).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn no_two_promises_have_one_name() {
    let mut names: Vec<&str> = conformance::names().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

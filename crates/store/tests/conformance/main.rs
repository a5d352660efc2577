//! The memory store passes the suite, and the suite catches stores that are wrong.
#![cfg(not(loom))]

mod backend;
mod faulty;
mod records;
mod store;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate_conformance as conformance;
use tollgate_store::{Clock, Memory};

use faulty::{Fault, Faulty};

fn memory(clock: Clock) -> Memory {
    Memory::builder().clock(clock).build()
}

#[test]
fn the_memory_store_equals_the_core() {
    conformance::store::run(300, memory);
}

#[test]
fn the_memory_store_keeps_records_as_it_should() {
    conformance::records::run(100, memory);
}

#[test]
fn the_memory_store_keeps_buckets_and_records_together() {
    conformance::backend::run(20, memory);
}

#[test]
fn the_memory_store_keeps_usage_for_as_long_as_it_is_told() {
    conformance::backend::usage_retention(|clock, kept| {
        Memory::builder().clock(clock).usage_retention(kept).build()
    });
}

#[test]
fn a_store_that_keeps_usage_as_long_as_by_default_is_caught() {
    let run = AssertUnwindSafe(|| conformance::backend::usage_retention(|clock, _| memory(clock)));
    assert!(catch_unwind(run).is_err());
}

#[test]
fn a_faulty_store_without_a_fault_passes() {
    let open = |clock| Faulty::new(memory(clock), Fault::None);
    conformance::store::run(5, open);
    conformance::records::run(5, open);
    conformance::backend::run(2, open);
}

#[test]
fn every_planted_fault_of_a_store_is_caught() {
    caught(Fault::OF_STORES, |open| conformance::store::run(50, open));
}

#[test]
fn every_planted_fault_of_records_is_caught() {
    caught(Fault::OF_RECORDS, |open| conformance::records::run(50, open));
}

#[test]
fn every_planted_fault_of_a_backend_is_caught() {
    caught(Fault::OF_BACKENDS, |open| conformance::backend::run(10, open));
}

fn caught(faults: &[Fault], suite: impl Fn(&dyn Fn(Clock) -> Faulty)) {
    for fault in faults {
        let open = |clock| Faulty::new(memory(clock), *fault);
        let run = AssertUnwindSafe(|| suite(&open));
        assert!(catch_unwind(run).is_err(), "{fault:?} was not noticed");
    }
}

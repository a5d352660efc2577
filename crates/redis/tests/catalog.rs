//! The catalog keeps its promises on Redis.

mod common;

use std::panic::catch_unwind;
use std::sync::Arc;

use tollgate::Clock;
use tollgate::catalog::conformance;
use tollgate::store::Backend;

fn broken(open: fn(Clock) -> Arc<dyn Backend>) -> Vec<&'static str> {
    let is_broken = |name: &&str| catch_unwind(|| conformance::run_one(name, open)).is_err();
    conformance::names().filter(is_broken).collect()
}

#[test]
fn every_promise_of_the_catalog_is_kept_on_redis() {
    let broken = broken(|clock| Arc::new(common::on_redis(clock)));
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_promise_of_the_catalog_is_kept_on_valkey() {
    let broken = broken(|clock| Arc::new(common::on_valkey(clock)));
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_promise_of_the_catalog_is_kept_on_a_cluster() {
    let broken = broken(|clock| Arc::new(common::on_cluster(clock)));
    assert!(broken.is_empty(), "{broken:#?}");
}

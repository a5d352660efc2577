//! The catalog keeps its promises on Redis.

mod common;

use std::sync::Arc;

use tollgate_conformance::catalog;

#[test]
fn every_promise_of_the_catalog_is_kept_on_redis() {
    assert_eq!(catalog::broken(&|clock| Arc::new(common::on_redis(clock))), [""; 0]);
}

#[test]
fn every_promise_of_the_catalog_is_kept_on_valkey() {
    assert_eq!(catalog::broken(&|clock| Arc::new(common::on_valkey(clock))), [""; 0]);
}

#[test]
fn every_promise_of_the_catalog_is_kept_on_a_cluster() {
    assert_eq!(catalog::broken(&|clock| Arc::new(common::on_cluster(clock))), [""; 0]);
}

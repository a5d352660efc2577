//! The suites that every store passes, on servers of both kinds and on a cluster.

mod common;

use common::{builder, on_cluster, on_redis, on_valkey, server};
use tollgate_conformance::{backend, records, store};
use tollgate_redis_local::ServerKind;

#[test]
fn it_is_a_store_on_redis() {
    store::run(40, on_redis);
}

#[test]
fn it_is_a_store_on_valkey() {
    store::run(16, on_valkey);
}

#[test]
fn it_is_a_store_on_a_cluster() {
    store::run(8, on_cluster);
}

#[test]
fn it_is_a_backend_on_redis() {
    backend::run(4, on_redis);
}

#[test]
fn it_is_a_backend_on_valkey() {
    backend::run(2, on_valkey);
}

#[test]
fn it_is_a_backend_on_a_cluster() {
    backend::run(2, on_cluster);
}

#[test]
fn records_are_as_those_in_memory_on_redis() {
    records::run(8, on_redis);
}

#[test]
fn records_are_as_those_in_memory_on_valkey() {
    records::run(3, on_valkey);
}

#[test]
fn records_are_as_those_in_memory_on_a_cluster() {
    records::run(2, on_cluster);
}

#[test]
fn it_keeps_usage_for_as_long_as_it_is_told() {
    backend::usage_retention(|clock, kept| {
        let builder = builder(&server(ServerKind::Redis).url()).clock(clock).usage_retention(kept);
        builder.build().wait().expect("the server is there")
    });
}

//! The suite that every store passes, on a table of the embedded engine.

mod common;

use tollgate_conformance::{backend, store};

#[test]
fn it_is_a_store() {
    store::run(common::elsewhere::traces(24), common::open);
}

#[test]
fn it_is_a_backend() {
    backend::run(common::elsewhere::traces(4), common::open);
}

#[test]
fn it_keeps_usage_for_as_long_as_it_is_told() {
    backend::usage_retention(|clock, kept| {
        let engine = common::engine(&clock);
        let builder = common::builder(clock).http_client(engine.http_client()).usage_retention(kept);
        builder.build().wait().expect("the engine has what it takes")
    });
}

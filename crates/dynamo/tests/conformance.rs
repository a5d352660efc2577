//! The suite that every store passes, on a table of the embedded engine.

mod common;

use tollgate_store::conformance;

#[test]
fn it_is_a_store() {
    conformance::run(common::elsewhere::traces(24), common::open);
}

#[test]
fn it_is_a_backend() {
    conformance::backend(common::elsewhere::traces(4), common::open);
}

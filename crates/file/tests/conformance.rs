//! The file store is as good as memory: nobody can tell them apart but by what is left after a restart.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use support::Folder;
use tollgate_file::{Durability, FileStore};
use tollgate_store::{Clock, conformance};

#[test]
fn the_file_store_equals_the_core() {
    let (folder, opened) = (Folder::new(), AtomicU64::new(0));
    let open = |clock: Clock| {
        let name = format!("{}.tollgate", opened.fetch_add(1, Ordering::Relaxed));
        let builder = FileStore::builder(folder.file(&name)).clock(clock).durability(Durability::Off);
        builder.build().expect("the file can be made")
    };
    conformance::run(60, open);
}

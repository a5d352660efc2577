//! Damage is found by looking.

mod support;

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};

use support::Folder;
use tollgate_core::Limit;
use tollgate_file::FileStore;
use tollgate_store::records::{Item, ItemKey, Records, Write as RecordWrite};

#[test]
fn a_whole_file_has_no_damages_and_one_that_was_written_over_has() {
    let folder = Folder::new();
    let path = folder.file("limits.db");
    let store = FileStore::open(&path).unwrap();
    for number in 0..200 {
        let item = Item::new(ItemKey::new(format!("ns/ENTITY#{number}"), "#META"))
            .with("name", Limit::per_minute("rpm", 1).build().unwrap().to_string().repeat(20));
        store.write(&[RecordWrite::Put(item, Vec::new())]).wait().unwrap();
    }
    assert_eq!(store.damages(), [""; 0]);
    drop(store);
    let length = std::fs::metadata(&path).unwrap().len();
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(length / 2 / 4_096 * 4_096)).unwrap();
    file.write_all(&[0x5A; 8_192]).unwrap();
    drop(file);
    let store = FileStore::open(&path).unwrap();
    assert!(!store.damages().is_empty());
}

//! The log beside a file stays short, however many processes write and read.

mod support;

use std::path::Path;

use rusqlite::Connection;
use support::Folder;
use support::child::{self, Process};
use tollgate_file::FileStore;
use tollgate_store::records::{Item, ItemKey, Query, Records, Write};

const WRITERS: usize = 3;

/// Each commit writes a dozen pages, so without an end the log would have 150 MB.
const COMMITS: usize = 1_000;
const TEXT: usize = 45_000;

const LOG_MAX: u64 = 64_000_000;

/// So much of it stays there for what comes next.
const LOG_KEPT: u64 = 16 << 20;

fn log_bytes(file: &Path) -> u64 {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |log| log.len())
}

#[test]
fn the_log_stays_short_while_three_processes_write_and_one_reads() {
    let folder = Folder::new();
    let file = folder.file("x");
    drop(FileStore::open(&file).unwrap());
    let _reader = Process::start("one_who_reads_or_writes", "read", &file);
    let mut writers: Vec<_> =
        (0..WRITERS).map(|_| Process::start("one_who_reads_or_writes", "write", &file)).collect();
    let largest: Vec<u64> = writers
        .iter_mut()
        .map(|writer| writer.hears().expect("it says how long the log was").parse().unwrap())
        .collect();
    assert!(largest.iter().all(|bytes| *bytes <= LOG_MAX), "{largest:?}");
    assert!(largest.iter().any(|bytes| *bytes > 1_000_000), "they write through a log: {largest:?}");
}

/// Writes a text that often, and answers how long the log was at most and is now.
fn write(store: &FileStore, commits: usize) -> (u64, u64) {
    let item = Item::new(ItemKey::new("tests/TEXT", format!("#{}", std::process::id())));
    let lengths = (0..commits).map(|number| {
        // Pages that stay as they are would not be written.
        let text = format!("{number:09}").repeat(TEXT / 9);
        let put = Write::Put(item.clone().with("text", text), Vec::new());
        store.write(&[put]).wait().expect("it is written");
        log_bytes(store.path())
    });
    lengths.fold((0, 0), |(largest, _), now| (now.max(largest), now))
}

#[test]
fn one_who_reads_for_long_holds_nobody_up_and_the_log_is_short_again_afterwards() {
    let folder = Folder::new();
    let store = FileStore::open(folder.file("x")).unwrap();
    write(&store, 1);
    let reader = Connection::open(folder.file("x")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let seen: i64 = reader.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 1);
    let (largest, _) = write(&store, 500);
    assert!(largest > LOG_KEPT, "what is read has to stay: {largest}");
    reader.execute_batch("COMMIT").unwrap();
    let (_, now) = write(&store, 300);
    assert!(now <= LOG_KEPT, "{now}");
}

#[test]
fn one_who_reads_or_writes() {
    let Some((role, file)) = child::role() else { return };
    let store = FileStore::open(&file).unwrap();
    if role == "read" {
        loop {
            store.query(&Query::all("tests/TEXT")).wait().unwrap();
        }
    }
    child::say(&write(&store, COMMITS).0.to_string());
}

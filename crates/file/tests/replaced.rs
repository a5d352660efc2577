//! A file that is deleted or replaced while it is open, and one that others may write to.

#![cfg(unix)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use support::{Folder, START, Tap, open_at};
use tollgate_core::Span;
use tollgate_file::{FileOpenError, FileStore};
use tollgate_store::{Clock, ManualClock, Store, StoreError};

fn is_told(error: &StoreError) -> bool {
    let text = error.to_string();
    matches!(error, StoreError::Refused(_))
        && text.contains("deleted or replaced")
        && text.contains("open it again")
}

/// The writer looks once in each turn, which is far shorter.
const TURNS: Span = Span::from_secs(30);

/// Takes again and again until the store says so. Returns how much it took before.
fn taken_until_told(tap: &Tap) -> i64 {
    let (since, mut taken) = (Clock::system().now(), 0);
    loop {
        match tap.try_take(1, 0, None) {
            Ok(is_taken) => taken += i64::from(is_taken),
            Err(why) if is_told(&why) => return taken,
            Err(why) => panic!("{why}"),
        }
        assert!(Clock::system().now().since(since) < TURNS, "it is told at the next turn");
    }
}

#[test]
fn who_has_a_deleted_file_open_is_told() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "user");
    assert!(tap.take(60, 0));
    fs::remove_file(folder.file("x")).unwrap();
    taken_until_told(&tap);
    assert!(is_told(&tap.try_take(1, 0, None).unwrap_err()), "once told, it is told each time");
    let peeked = store.peek(&tap.place()).wait();
    assert!(is_told(&peeked.unwrap_err()), "who only looks is told, too");
}

#[test]
fn who_has_a_replaced_file_open_takes_from_it_no_more() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let before = open_at(&folder.file("x"), &hands);
    assert!(Tap::new(&before, "user").take(60, 0));
    for end in ["", "-wal", "-shm"] {
        fs::rename(folder.file(&format!("x{end}")), folder.file(&format!("old{end}"))).unwrap();
    }
    let after = open_at(&folder.file("x"), &hands);
    assert!(Tap::new(&after, "user").take(100, 0));
    let taken = taken_until_told(&Tap::new(&before, "user"));
    drop(after);
    for end in ["", "-wal", "-shm"] {
        let _ = fs::rename(folder.file(&format!("old{end}")), folder.file(&format!("x{end}")));
    }
    assert_eq!(Tap::new(&before, "user").left(), [40 - taken, 2], "a file that is put back is the same file");
}

#[test]
fn a_file_that_others_may_write_to_is_refused() {
    let folder = Folder::new();
    let path = folder.file("x");
    drop(FileStore::open(&path).unwrap());
    let chmod = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o666, 0o660, 0o602] {
        chmod(mode);
        let refused = FileStore::open(&path).unwrap_err();
        assert_eq!(refused, FileOpenError::OpenToOthers { path: path.clone(), mode });
        assert!(refused.to_string().contains(&format!("chmod go-w {}", path.display())), "{refused}");
    }
    for mode in [0o600, 0o644] {
        chmod(mode);
        FileStore::open(&path).unwrap();
    }
}

#[test]
fn a_log_that_others_may_write_to_is_refused() {
    let folder = Folder::new();
    let (path, log) = (folder.file("x"), folder.file("x-wal"));
    let store = FileStore::open(&path).unwrap();
    assert!(Tap::new(&store, "user").take(1, 0));
    fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
    let refused = FileStore::open(&path).unwrap_err();
    assert_eq!(refused, FileOpenError::OpenToOthers { path: log, mode: 0o666 });
}

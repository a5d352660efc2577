//! What is no file of ours is said to be what it is, and left as it is.

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use support::{Folder, Tap, child, write_own};
use tollgate_file::{FileOpenError, FileStore};

/// The bytes of all files of a folder.
fn contents(folder: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("it can be listed").map(|entry| entry.expect("it can be seen"));
    let files = entries.filter(|entry| entry.path().is_file());
    let mut contents: Vec<_> =
        files.map(|entry| (entry.file_name(), fs::read(entry.path()).expect("it can be read"))).collect();
    contents.sort();
    contents
}

/// Opens the file, which must fail and leave all files of the folder as they were.
fn refused(folder: &Folder, name: &str) -> FileOpenError {
    let before = contents(folder.path());
    let error = FileStore::open(folder.file(name)).expect_err("it is no file of ours");
    assert_eq!(contents(folder.path()), before, "{error}");
    let path = folder.file(name);
    assert!(error.to_string().contains(path.to_str().expect("it is text")), "{error} names no file");
    error
}

#[test]
fn a_folder_is_no_file() {
    let folder = Folder::new();
    fs::create_dir(folder.file("sub")).unwrap();
    assert_eq!(refused(&folder, "sub"), FileOpenError::IsFolder(folder.file("sub")));
}

#[test]
fn a_folder_that_is_not_there_is_not_made() {
    let folder = Folder::new();
    assert_eq!(refused(&folder, "no/such/x"), FileOpenError::NoFolder(folder.file("no/such/x")));
}

#[test]
fn text_and_rubbish_are_no_sqlite_files() {
    let folder = Folder::new();
    let rubbish: Vec<u8> = (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (name, bytes) in
        [("text", &b"key = value\n"[..]), ("rubbish", &rubbish), ("header", b"SQLite format 3\0")]
    {
        fs::write(folder.file(name), bytes).unwrap();
        assert_eq!(refused(&folder, name), FileOpenError::NotSqlite(folder.file(name)));
    }
}

#[cfg(unix)]
#[test]
fn a_device_is_no_sqlite_file() {
    let error = FileStore::open("/dev/null").unwrap_err();
    assert_eq!(error, FileOpenError::NotSqlite("/dev/null".into()));
}

#[test]
fn a_sqlite_file_of_another_program_is_left_as_it_is() {
    let folder = Folder::new();
    for (name, prepare) in [
        ("plain", "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine');"),
        ("wal", "PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT);"),
        ("marked", "PRAGMA application_id = 42; CREATE TABLE bucket (text TEXT);"),
        ("empty", "VACUUM; PRAGMA user_version = 1;"),
    ] {
        let other = Connection::open(folder.file(name)).unwrap();
        other.execute_batch(prepare).unwrap();
        drop(other);
        assert_eq!(refused(&folder, name), FileOpenError::Foreign(folder.file(name)), "{name}");
    }
}

#[test]
fn a_sqlite_file_that_another_program_has_open_is_left_as_it_is() {
    let folder = Folder::new();
    let other = Connection::open(folder.file("x")).unwrap();
    other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT);").unwrap();
    other.execute_batch("BEGIN IMMEDIATE; INSERT INTO notes VALUES ('mine');").unwrap();
    assert_eq!(refused(&folder, "x"), FileOpenError::Foreign(folder.file("x")));
    other.execute_batch("COMMIT").unwrap();
    let notes: i64 = other.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap();
    assert_eq!(notes, 1);
}

#[test]
fn a_file_of_a_later_format_is_left_to_a_later_version() {
    let folder = Folder::new();
    drop(FileStore::open(folder.file("x")).unwrap());
    let later = Connection::open(folder.file("x")).unwrap();
    later.pragma_update(None, "user_version", 99).unwrap();
    drop(later);
    let path = folder.file("x");
    assert_eq!(refused(&folder, "x"), FileOpenError::Newer { path, found: 99, known: 1 });
}

#[test]
fn a_damaged_file_is_an_error_and_never_a_panic() {
    let folder = Folder::new();
    let store = FileStore::open(folder.file("whole")).unwrap();
    for user in 0..200 {
        assert!(Tap::new(&store, &format!("user-{user}")).take(1, 0));
    }
    drop(store);
    let whole = fs::read(folder.file("whole")).unwrap();
    for seed in 0..60usize {
        let name = format!("damaged-{seed}");
        let mut bytes = whole.clone();
        let (from, len) = (100 + seed * 977 % (bytes.len() - 200), 1 + seed * 31 % 90);
        bytes[from..from + len].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(31).wrapping_add(7));
        if seed % 5 == 0 {
            bytes.truncate(from);
        }
        write_own(&folder.file(&name), &bytes);
        let Ok(store) = FileStore::open(folder.file(&name)) else { continue };
        for user in (0..200).step_by(20) {
            // Whatever comes of it, it is an answer.
            let _ = Tap::new(&store, &format!("user-{user}")).try_take(1, 0, None);
        }
    }
}

#[test]
fn an_empty_file_is_made_into_a_store() {
    let folder = Folder::new();
    write_own(&folder.file("x"), b"");
    let store = FileStore::open(folder.file("x")).unwrap();
    assert!(Tap::new(&store, "user").take(1, 0));
}

#[test]
fn names_that_mean_something_to_sqlite_are_names_of_files() {
    let folder = Folder::new();
    for name in [":memory:", "file:x?mode=memory", "a b%20c#?.db"] {
        let store = FileStore::open(folder.file(name)).unwrap();
        assert!(Tap::new(&store, "user").take(1, 0));
        drop(store);
        assert!(folder.file(name).is_file(), "{name}");
        assert_eq!(Tap::new(&FileStore::open(folder.file(name)).unwrap(), "user").left().len(), 2);
    }
}

/// Permissions do not hold for the root user, so a process of another user tries them.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_written_or_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    for name in ["read-only", "unreadable", "ours"] {
        drop(FileStore::open(folder.file(name)).unwrap());
    }
    mode(&folder.file("read-only"), 0o444);
    mode(&folder.file("unreadable"), 0o000);
    // A copy: the other user may not enter the folder of this program, such as the home of root.
    let program = folder.file("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    mode(&program, 0o755);
    mode(folder.path(), 0o555);
    let outcome = |name: &str| {
        let mut command =
            child::command_of(&program, "the_one_without_permissions", "open", &folder.file(name));
        if rustix::process::geteuid().is_root() {
            std::os::unix::process::CommandExt::uid(&mut command, 65_534);
        }
        let output = command.output().expect("a process can be started");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.lines().find_map(|line| line.strip_prefix("says ").map(str::to_owned))
    };
    let found = ["read-only", "unreadable", "new"].map(outcome);
    mode(folder.path(), 0o755);
    assert_eq!(found, ["ReadOnly", "NoPermission", "NoPermission"].map(|kind| Some(kind.to_owned())));
}

#[test]
fn the_one_without_permissions() {
    let Some((_, file)) = child::role() else { return };
    let kind = match FileStore::open(&file) {
        Ok(_) => "opened",
        Err(FileOpenError::ReadOnly(_)) => "ReadOnly",
        Err(FileOpenError::NoPermission(_)) => "NoPermission",
        Err(other) => return child::say(&other.to_string()),
    };
    child::say(kind);
}

#[test]
fn a_file_that_others_have_locked_is_waited_for_and_then_given_up() {
    let folder = Folder::new();
    write_own(&folder.file("x"), b"");
    let other = Connection::open(folder.file("x")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let timeout = Duration::from_millis(50);
    let error = FileStore::builder(folder.file("x")).timeout(timeout).build().unwrap_err();
    assert_eq!(error, FileOpenError::Busy(folder.file("x"), timeout));
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    FileStore::open(folder.file("x")).unwrap();
}

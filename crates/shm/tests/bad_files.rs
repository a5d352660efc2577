//! What is no store of ours is said to be what it is, and left as it is.

#![allow(clippy::unwrap_used, reason = "what panics here is a test")]

mod support;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use support::fork::{End, fork, lock_owner, one_at_a_time};
use support::{Folder, Tap, open};
use tollgate_shm::{ShmOpenError, ShmStore};
use tollgate_store::{Store, StoreError};

/// Where the store `x` of a folder is.
fn path(folder: &Folder) -> PathBuf {
    ShmStore::builder("x").folder(folder.path()).path().unwrap()
}

/// Opens the store, which must fail and leave the file as it is.
fn refused(folder: &Folder) -> ShmOpenError {
    let before = fs::read(path(folder)).ok();
    let error = ShmStore::builder("x").folder(folder.path()).build().expect_err("it is no store of ours");
    assert_eq!(fs::read(path(folder)).ok(), before, "{error}");
    assert!(error.to_string().contains(path(folder).to_str().unwrap()), "{error} names no file");
    error
}

/// A store that was used, with words of it changed.
fn changed(words: &[(u64, u64)]) -> Folder {
    let folder = Folder::new();
    assert!(Tap::new(&open(folder.path()), "user").take(1, 1));
    let file = File::options().write(true).open(path(&folder)).unwrap();
    for (at, value) in words {
        file.write_all_at(&value.to_ne_bytes(), at * 8).unwrap();
    }
    folder
}

fn word(folder: &Folder, at: u64) -> u64 {
    let mut bytes = [0; 8];
    File::open(path(folder)).unwrap().read_exact_at(&mut bytes, at * 8).unwrap();
    u64::from_ne_bytes(bytes)
}

#[test]
fn a_name_that_could_be_a_path_is_none() {
    for name in ["", "a/b", "../x", "ü", "a b", "nul\0", &"x".repeat(65)] {
        assert!(matches!(ShmStore::open(name), Err(ShmOpenError::BadName(..))), "{name:?}");
    }
}

#[test]
fn a_folder_is_no_store_and_one_that_is_missing_is_not_made() {
    let folder = Folder::new();
    fs::create_dir(path(&folder)).unwrap();
    assert_eq!(refused(&folder), ShmOpenError::IsFolder(path(&folder)));
    let missing = folder.file("no/such");
    let error = ShmStore::builder("x").folder(&missing).build().unwrap_err();
    assert!(matches!(error, ShmOpenError::NoFolder(_)), "{error}");
    assert!(!missing.exists());
    fs::write(folder.file("file"), "x").unwrap();
    let error = ShmStore::builder("x").folder(folder.file("file")).build().unwrap_err();
    assert!(matches!(error, ShmOpenError::NoFolder(_)), "{error}");
}

#[test]
fn a_link_is_not_followed_wherever_it_leads() {
    let folder = Folder::new();
    let elsewhere = Folder::new();
    drop(open(elsewhere.path()));
    for to in [path(&elsewhere), "/dev/null".into(), "/no/such/file".into()] {
        symlink(&to, path(&folder)).unwrap();
        assert_eq!(refused(&folder), ShmOpenError::IsLink(path(&folder)), "{to:?}");
        fs::remove_file(path(&folder)).unwrap();
    }
}

#[test]
fn a_pipe_is_neither_a_store_nor_waited_for() {
    let folder = Folder::new();
    assert!(Command::new("mkfifo").arg(path(&folder)).status().unwrap().success());
    let error = ShmStore::builder("x").folder(folder.path()).build().unwrap_err();
    assert_eq!(error, ShmOpenError::NotAFile(path(&folder)));
}

#[test]
fn an_empty_file_a_text_and_rubbish_are_no_stores() {
    let folder = Folder::new();
    let rubbish: Vec<u8> = (0..2_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let write = |bytes: &[u8]| {
        fs::write(path(&folder), bytes).unwrap();
        fs::set_permissions(path(&folder), Permissions::from_mode(0o600)).unwrap();
    };
    write(b"");
    assert_eq!(refused(&folder), ShmOpenError::Empty(path(&folder)));
    for bytes in [&b"x"[..], b"key = value\n", &rubbish, &[0; 4_096]] {
        write(bytes);
        assert_eq!(refused(&folder), ShmOpenError::Foreign(path(&folder)));
    }
}

#[test]
fn a_file_that_others_may_use_or_that_is_another_s_is_refused() {
    let folder = changed(&[]);
    for mode in [0o644, 0o620, 0o601, 0o777] {
        fs::set_permissions(path(&folder), Permissions::from_mode(mode)).unwrap();
        assert_eq!(refused(&folder), ShmOpenError::OpenToOthers { path: path(&folder), mode });
    }
    fs::set_permissions(path(&folder), Permissions::from_mode(0o600)).unwrap();
    drop(open(folder.path()));
    // Only root may give files away.
    if std::os::unix::fs::chown(path(&folder), Some(12_345), None).is_ok() {
        let error = refused(&folder);
        assert!(matches!(error, ShmOpenError::OtherOwner { owner: 12_345, .. }), "{error}");
    }
}

#[test]
fn a_new_store_is_nobody_else_s() {
    let folder = Folder::new();
    let store = open(folder.path());
    assert_eq!(fs::metadata(store.path()).unwrap().permissions().mode() & 0o777, 0o600);
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(names, [store.path()], "nothing else is left");
}

#[test]
fn a_store_that_was_cut_off_says_so() {
    for keep in [16, 64, 4_096, 500_000] {
        let folder = changed(&[]);
        File::options().write(true).open(path(&folder)).unwrap().set_len(keep).unwrap();
        let error = refused(&folder);
        assert!(matches!(error, ShmOpenError::CutOff { found, .. } if found == keep), "{keep}: {error}");
    }
    // Only what it has grown by is missing.
    let folder = Folder::new();
    let store = open(folder.path());
    let new = fs::metadata(store.path()).unwrap().len();
    (0..500).for_each(|user| assert!(Tap::new(&store, &format!("user-{user}")).take(1, 0)));
    drop(store);
    assert!(fs::metadata(path(&folder)).unwrap().len() > new);
    File::options().write(true).open(path(&folder)).unwrap().set_len(new).unwrap();
    assert!(matches!(refused(&folder), ShmOpenError::CutOff { .. }));
}

#[test]
fn another_layout_and_a_broken_header_are_told_apart() {
    let layout = changed(&[(1, 7)]);
    let found = refused(&layout);
    assert_eq!(found, ShmOpenError::OtherLayout { path: path(&layout), found: 7, known: 3 });
    for at in 2..9 {
        let folder = changed(&[]);
        let value = word(&folder, at) ^ 1;
        File::options()
            .write(true)
            .open(path(&folder))
            .unwrap()
            .write_all_at(&value.to_ne_bytes(), at * 8)
            .unwrap();
        let error = refused(&folder);
        assert!(matches!(&error, ShmOpenError::Damaged(_, why) if why.contains("checksum")), "{at}: {error}");
    }
}

#[test]
fn where_process_ids_mean_other_processes_a_store_is_refused() {
    let _alone = one_at_a_time();
    let folder = changed(&[]);
    let outside = fork(|| {
        // SAFETY: the processes that are forked off from here on have ids of their own. Not every user may do that.
        if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
            return;
        }
        let inside = fork(|| assert_eq!(refused(&folder), ShmOpenError::OtherHost(path(&folder))));
        assert_eq!(inside.end(), End::Code(0));
    });
    assert_eq!(outside.end(), End::Code(0));
}

#[test]
fn sizes_that_lie_and_offsets_that_lead_nowhere_are_damages() {
    // The size, what was never used, the chains, the first node, the length of the journal.
    let cases = [
        (18, 1 << 30),
        (18, 3),
        (19, 7),
        (19, 1 << 40),
        (33, 0),
        (33, 1 << 50),
        (37, 0),
        (37, 1 << 40),
        (17, 1 << 40),
    ];
    for case in cases {
        let folder = changed(&[case]);
        let error = refused(&folder);
        assert!(
            matches!(error, ShmOpenError::Damaged(..) | ShmOpenError::CutOff { .. }),
            "{case:?}: {error}"
        );
    }
    // A journal that names the lock, itself, or what is not there.
    for at in [16, 17, 40_000, u64::MAX] {
        let folder = changed(&[(17, 1), (512 + 8 * 4_096, at), (512 + 8 * 4_096 + 1, 1)]);
        assert!(matches!(refused(&folder), ShmOpenError::Damaged(..)), "{at}");
    }
}

#[test]
fn what_is_damaged_later_is_an_error_and_not_the_end() {
    let folder = Folder::new();
    let store = open(folder.path());
    let tap = Tap::new(&store, "user");
    assert!(tap.take(1, 1));
    let file = File::options().write(true).open(path(&folder)).unwrap();
    // The segments of the table.
    file.write_all_at(&(u64::MAX / 16).to_ne_bytes(), 64 * 8).unwrap();
    let Err(StoreError::Refused(why)) = tap.try_take(1, 0, None) else { panic!("it is damaged") };
    assert!(why.contains("damaged"), "{why}");
    assert!(matches!(store.peek(&tap.place()).wait(), Err(StoreError::Refused(_))));
    assert!(store.check().is_err());
    // It says that it is larger than it is: the store does not look there.
    file.write_all_at(&(1u64 << 26).to_ne_bytes(), 18 * 8).unwrap();
    assert!(matches!(tap.try_take(1, 0, None), Err(StoreError::Refused(_))));
}

#[test]
fn a_capacity_that_is_none_is_refused() {
    let folder = Folder::new();
    for bytes in [0, 1, 100_000, u64::MAX] {
        let error = ShmStore::builder("x").folder(folder.path()).capacity(bytes).build().unwrap_err();
        assert!(matches!(error, ShmOpenError::BadCapacity { .. }), "{error}");
    }
    assert!(!path(&folder).exists());
}

#[test]
fn a_lock_of_one_who_is_stopped_is_not_waited_for_for_ever() {
    let _alone = one_at_a_time();
    let folder = Folder::new();
    let short = Duration::from_millis(50);
    let store = ShmStore::builder("x").folder(folder.path()).timeout(short).build().unwrap();
    let tap = Tap::new(&store, "user");
    assert!(tap.take(1, 0));
    let owner = lock_owner(&path(&folder));
    let Err(StoreError::Unavailable(waited, why)) = tap.try_take(1, 0, None) else { panic!("it is locked") };
    assert!(waited == short && why.contains("another process"), "{why}");
    let busy = ShmStore::builder("x").folder(folder.path()).timeout(short).build().unwrap_err();
    assert_eq!(busy, ShmOpenError::Busy(path(&folder), short));
    // A detached call is made once it can be.
    tap_over(&store, &tap);
    assert_eq!(owner.kill(), End::Signal(libc::SIGKILL));
    assert_eq!(tap.left(), [100, 2], "the lock is taken over, and what was given back meanwhile is there");
}

fn tap_over(store: &ShmStore, tap: &Tap<'_>) {
    use tollgate_core::{Tick, Usage};
    use tollgate_store::{Op, Step, Transaction};
    let reserved = tap.costs(1, 0);
    let usage = Usage { at: Tick::ZERO, reserved: &reserved, used: &[0, 0], holder: None };
    let steps = [Step { place: tap.place(), op: Op::Settle(usage) }];
    store.apply_detached(&Transaction { id: None, steps: &steps, metered: false });
}

#[test]
fn one_who_has_no_permission_is_told() {
    let _alone = one_at_a_time();
    let folder = changed(&[]);
    let outside = Folder::new();
    fs::set_permissions(outside.path(), Permissions::from_mode(0o700)).unwrap();
    // SAFETY: it only answers a number.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let stranger = fork(|| {
        // SAFETY: the process gives up what it may do, and ends.
        assert_eq!(unsafe { libc::setuid(65_534) }, 0);
        let error = ShmStore::builder("x").folder(outside.path()).build().unwrap_err();
        assert!(matches!(error, ShmOpenError::NoPermission(_)), "{error}");
        assert!(Path::new(folder.path()).exists());
    });
    assert_eq!(stranger.end(), End::Code(0));
}

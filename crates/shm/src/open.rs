//! Opens a file: an existing store, a new one, or an error that describes what it is instead.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, fallocate, fstat, linkat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tollgate_store::Process;

use crate::arena::Arena;
use crate::builder::ShmStoreBuilder;
use crate::error::{ShmOpenError, TxnAbort};
use crate::layout::{
    ARENA, AT_ARENA, AT_CAPACITY, AT_CHECKSUM, AT_JOURNAL_MAX, AT_LAYOUT, AT_MAGIC, AT_PROCESSES_MAX,
    AT_SEED, AT_TAG, BUMP, CAPACITY_MAX, CHAINS, HEAD, JOURNAL_MAX, LAYOUT, MAGIC, PROCESSES_MAX, SIZE,
    SIZE_MIN, checksum,
};
use crate::map::{self, SharedMap, WORD};

/// How often opening is retried when the file was removed again. Beyond that, another process removes it as fast as it
/// is made.
const TRIES_MAX: u32 = 16;

/// Opens the file, or creates it.
pub(crate) fn open(settings: &ShmStoreBuilder) -> Result<Arena, ShmOpenError> {
    let mut arena = open_or_make(settings)?;
    arena.usage_retention = settings.usage_retention;
    Ok(arena)
}

fn open_or_make(settings: &ShmStoreBuilder) -> Result<Arena, ShmOpenError> {
    let path = settings.path()?;
    if Process::this_thread().is_none() {
        return Err(ShmOpenError::Unsupported(
            "processes cannot be distinguished, because /proc is not mounted",
        ));
    }
    map::generation().map_err(|_| {
        ShmOpenError::Unsupported(
            "a process that is forked off cannot be distinguished from its parent by this kernel",
        )
    })?;
    let (least, most) = (SIZE_MIN * WORD, CAPACITY_MAX * WORD);
    if !(least..=most).contains(&settings.capacity) {
        return Err(ShmOpenError::BadCapacity { asked: settings.capacity, least, most });
    }
    for _ in 0..TRIES_MAX {
        match rustix::fs::open(&path, flags(), Mode::empty()) {
            Ok(file) => return open_there(path, file, settings.timeout),
            Err(Errno::NOENT) => {}
            Err(why) => return Err(failed(&path, why)),
        }
        // The first process creates the whole file without a name; only one such file gets the name.
        if let Some(arena) = make(&path, settings)? {
            return Ok(arena);
        }
    }
    Err(ShmOpenError::Failed(path, "it is made and removed over and over".into()))
}

/// Returns the flags to open a file with: a link is not followed, and opening a pipe does not block.
fn flags() -> OFlags {
    OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY
}

fn failed(path: &Path, why: Errno) -> ShmOpenError {
    let path = path.to_path_buf();
    match why {
        Errno::NOENT | Errno::NOTDIR => ShmOpenError::NoFolder(path),
        Errno::ISDIR => ShmOpenError::IsFolder(path),
        Errno::LOOP => ShmOpenError::IsLink(path),
        Errno::NXIO | Errno::NODEV => ShmOpenError::NotAFile(path),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => ShmOpenError::NoPermission(path),
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => ShmOpenError::NoRoom(path),
        why => ShmOpenError::Failed(path, std::io::Error::from(why).to_string()),
    }
}

/// Creates the file. Returns `None` if another process was faster.
fn make(path: &Path, settings: &ShmStoreBuilder) -> Result<Option<Arena>, ShmOpenError> {
    let failed = |why| failed(path, why);
    let folder = path.parent().unwrap_or(Path::new("."));
    if folder.is_file() || !folder.exists() {
        return Err(ShmOpenError::NoFolder(path.into()));
    }
    // It has no name until it is whole: a process that is killed while making it leaves nothing behind.
    let unnamed = OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE;
    let file = match rustix::fs::open(folder, unnamed, Mode::RUSR | Mode::WUSR) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let why = "the file system of its folder has no files without a name";
            return Err(ShmOpenError::Failed(path.into(), why.into()));
        }
        file => file.map_err(failed)?,
    };
    // The system does not return an error to a process that exceeds this bound, but ends it.
    if getrlimit(Resource::Fsize).current.is_some_and(|bound| SIZE_MIN * WORD > bound) {
        return Err(ShmOpenError::NoRoom(path.into()));
    }
    fallocate(&file, FallocateFlags::empty(), 0, SIZE_MIN * WORD).map_err(failed)?;
    let (tag, seed) = (Process::this().tag, RandomState::new().hash_one("the seed of a store"));
    let capacity = settings.capacity / WORD;
    let map = map_words(path, &file, capacity)?;
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    write_header(&map, capacity, seed, tag);
    let arena = Arena::new(path.into(), file, map, seed, tag, settings.timeout);
    fill(&arena).map_err(|stop| opening(path, stop))?;
    match linkat(CWD, &name, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(Some(arena)),
        Err(Errno::EXIST) => Ok(None),
        Err(why) => Err(failed(why)),
    }
}

fn map_words(path: &Path, file: &OwnedFd, words: u64) -> Result<SharedMap, ShmOpenError> {
    let failed = |why: String| ShmOpenError::Failed(path.into(), why);
    let len = usize::try_from(words).map_err(|_| failed("it is larger than this system can map".into()))?;
    SharedMap::new(file.as_fd(), len).map_err(|why| failed(format!("it cannot be mapped: {why}")))
}

fn write_header(map: &SharedMap, capacity: u64, seed: u64, tag: u32) {
    let words = map.words(SIZE_MIN as usize);
    let put = |at: u64, value: u64| words[at as usize].store(value, Ordering::Relaxed);
    for (at, value) in [
        (AT_MAGIC, MAGIC),
        (AT_LAYOUT, LAYOUT),
        (AT_TAG, tag.into()),
        (AT_CAPACITY, capacity),
        (AT_SEED, seed),
        (AT_JOURNAL_MAX, JOURNAL_MAX),
        (AT_PROCESSES_MAX, PROCESSES_MAX),
        (AT_ARENA, ARENA),
        (SIZE, SIZE_MIN),
        (BUMP, ARENA),
    ] {
        put(at, value);
    }
    put(AT_CHECKSUM, checksum(words).expect("a file has a header"));
}

/// Writes the initial contents.
fn fill(arena: &Arena) -> Result<(), TxnAbort> {
    let mut tx = arena.begin()?;
    tx.make_ordered()?;
    tx.make_table()?;
    tx.commit()
}

fn opening(path: &Path, stop: TxnAbort) -> ShmOpenError {
    let path = path.to_path_buf();
    match stop {
        TxnAbort::NoRoom => ShmOpenError::NoRoom(path),
        TxnAbort::Damaged(why) => ShmOpenError::Damaged(path, why.into()),
        TxnAbort::Locked(waited) => ShmOpenError::Busy(path, waited),
        TxnAbort::NoProcesses => ShmOpenError::OtherHost(path),
        stop => ShmOpenError::Failed(path.clone(), stop.explain(&path).to_string()),
    }
}

/// Opens an existing store.
fn open_there(path: PathBuf, file: OwnedFd, timeout: Duration) -> Result<Arena, ShmOpenError> {
    let size = check_file(&path, &file)?;
    let header = read_header(&path, &file, size)?;
    let at = |at: u64| header[at as usize];
    let damaged = |why: &str| Err(ShmOpenError::Damaged(path.clone(), why.into()));
    let expected = [(AT_JOURNAL_MAX, JOURNAL_MAX), (AT_PROCESSES_MAX, PROCESSES_MAX), (AT_ARENA, ARENA)];
    if expected.iter().any(|(place, value)| at(*place) != *value) {
        return damaged("its parts are said to be elsewhere than they are");
    }
    if !(SIZE_MIN..=CAPACITY_MAX).contains(&at(AT_CAPACITY)) {
        return damaged("it is said to have room for less than nothing, or for more than there is");
    }
    if at(AT_TAG) != u64::from(Process::this().tag) {
        return Err(ShmOpenError::OtherHost(path));
    }
    let map = map_words(&path, &file, at(AT_CAPACITY))?;
    let said = map.words(SIZE_MIN as usize)[SIZE as usize].load(Ordering::Relaxed);
    if said > at(AT_CAPACITY) {
        return damaged("it is said to be larger than it may be");
    }
    let length = || fstat(&file).map(|stat| stat.st_size as u64).map_err(|why| failed(&path, why));
    // It may have grown since its size was read.
    if said * WORD > size && said * WORD > length()? {
        return Err(ShmOpenError::CutOff { found: length()?, said: said * WORD, path });
    }
    let arena = Arena::new(path.clone(), file, map, at(AT_SEED), at(AT_TAG) as u32, timeout);
    check_roots(&arena).map_err(|stop| opening(&path, stop))?;
    Ok(arena)
}

/// Checks that it is a file of this user that no other user may access. Returns how large it is.
fn check_file(path: &Path, file: &OwnedFd) -> Result<u64, ShmOpenError> {
    let stat = fstat(file).map_err(|why| failed(path, why))?;
    let (path, user) = (path.to_path_buf(), crate::user());
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(ShmOpenError::IsFolder(path)),
        _ => return Err(ShmOpenError::NotAFile(path)),
    }
    let mode = stat.st_mode & 0o777;
    match stat.st_size as u64 {
        _ if stat.st_uid != user => Err(ShmOpenError::OtherOwner { path, owner: stat.st_uid, user }),
        _ if mode & 0o077 != 0 => Err(ShmOpenError::OpenToOthers { path, mode }),
        0 => Err(ShmOpenError::Empty(path)),
        size => Ok(size),
    }
}

/// Checks the words that are written once.
fn read_header(path: &Path, file: &OwnedFd, size: u64) -> Result<Vec<u64>, ShmOpenError> {
    let mut bytes = [0; (AT_CHECKSUM as usize + 1) * 8];
    let reader =
        File::from(file.try_clone().map_err(|why| ShmOpenError::Failed(path.into(), why.to_string()))?);
    let _ =
        reader.read_at(&mut bytes, 0).map_err(|why| ShmOpenError::Failed(path.into(), why.to_string()))?;
    let header: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let at = |at: u64| header[at as usize];
    let path = path.to_path_buf();
    if at(AT_MAGIC) != MAGIC {
        return Err(ShmOpenError::Foreign(path));
    }
    if at(AT_LAYOUT) != LAYOUT {
        return Err(ShmOpenError::OtherLayout { path, found: at(AT_LAYOUT), known: LAYOUT });
    }
    if size < SIZE_MIN * WORD {
        return Err(ShmOpenError::CutOff { path, found: size, said: SIZE_MIN * WORD });
    }
    let words: Vec<_> = header.iter().map(|word| (*word).into()).collect();
    if checksum(&words) != Some(at(AT_CHECKSUM)) {
        return Err(ShmOpenError::Damaged(path, "its header has another checksum than it says".into()));
    }
    Ok(header)
}

/// Checks the words that everything else depends on.
fn check_roots(arena: &Arena) -> Result<(), TxnAbort> {
    let tx = arena.begin()?;
    let is_in = |at: u64| (ARENA..tx.get(SIZE).unwrap_or(0)).contains(&at);
    if !is_in(tx.get(HEAD)?) || !is_in(tx.get(BUMP)?.wrapping_sub(1)) {
        return Err(TxnAbort::Damaged("its parts are said to be where it does not reach"));
    }
    let last = tx.get(CHAINS)?.checked_sub(1).ok_or(TxnAbort::Damaged("it has no room for buckets"))?;
    tx.entries(0)?;
    tx.entries(last).map(drop)
}

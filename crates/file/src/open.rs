//! Opens a file: an existing store, a new one, or an error that describes what it is instead.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};
use tollgate_core::Span;
use tollgate_store::Clock;

use crate::builder::{Durability, FileStoreBuilder};
use crate::error::{FileOpenError, TxnError, is_busy};
use crate::identity::{Identity, check_mode};
use crate::pause::pause;
use crate::schema::{self, APPLICATION, FORMAT, FormatMark};
use crate::stores::Stores;

/// How many prepared statements a connection caches. There are fewer.
const STATEMENTS: usize = 64;

/// How much of the log is kept for reuse, after a burst has made it larger.
const LOG_BYTES_KEPT: u64 = 16 << 20;

/// SQLite counts how long it waits in milliseconds, in 31 bits: 24 days, which is practically without end.
const BUSY_MAX: Duration = Duration::from_millis(i32::MAX as u64);

/// How many files a store has open: two connections with a file, its log and its index each, and some to spare.
const FILES: usize = 8;

/// A connection that writes and one that reads.
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) writer: Connection,
    pub(crate) reader: Connection,
}

/// Opens a file, while no other thread opens or closes one.
pub(crate) fn open(settings: &FileStoreBuilder, stores: &Stores) -> Result<Opened, FileOpenError> {
    // An absolute path is never one of the names that mean something else to SQLite.
    let path = std::path::absolute(&settings.path)
        .map_err(|why| FileOpenError::Failed(settings.path.clone(), why.to_string()))?;
    let looks = make_if_missing(&path)?;
    check_mode(&path)?;
    let identity = Identity::of(&path)?;
    if !stores.can_open(&identity) {
        return Err(FileOpenError::InUseByParent(path));
    }
    let explain = |fault: TxnError| explain(&path, settings.timeout, &fault);
    let writer = connect(&path, settings).map_err(explain)?;
    if writer.is_readonly(MAIN_DB).map_err(explain)? {
        return Err(FileOpenError::ReadOnly(path));
    }
    if looks == FileKind::Torn {
        check(&path, schema::mark(&writer).map_err(explain)?)?;
    }
    prepare(&writer, settings).map_err(explain)?;
    check(&path, schema::mark(&writer).map_err(explain)?)?;
    let reader = connect(&path, settings).map_err(explain)?;
    reader.pragma_update(None, "query_only", true).map_err(explain)?;
    // Both are connected to the same file only if no process has replaced it meanwhile.
    identity
        .check()
        .map_err(|_| FileOpenError::Failed(path.clone(), "it was replaced meanwhile; try again".into()))?;
    Ok(Opened { path, identity, writer, reader })
}

/// The kind of a file, judged without the log beside it.
#[derive(Clone, Copy, PartialEq)]
enum FileKind {
    /// Ours, or empty.
    Right,
    /// Unknown; a process may be writing the log into it, or was killed while doing so.
    Torn,
}

/// Creates an empty file that no other user may read, or inspects an existing one without changing it.
fn make_if_missing(path: &Path) -> Result<FileKind, FileOpenError> {
    if path.parent().is_some_and(|folder| !folder.exists()) {
        return Err(FileOpenError::NoFolder(path.into()));
    }
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(FileOpenError::IsFolder(path.into())),
        Ok(there) if !there.is_file() => Err(FileOpenError::NotSqlite(path.into())),
        Ok(there) if there.len() == 0 => Ok(FileKind::Right),
        Ok(_) => look(path),
        Err(why) if why.kind() == ErrorKind::NotFound => match private().open(path) {
            Ok(_) => Ok(FileKind::Right),
            Err(why) if why.kind() == ErrorKind::AlreadyExists => make_if_missing_again(path),
            Err(why) => Err(io_error(path, &why)),
        },
        Err(why) => Err(io_error(path, &why)),
    }
}

/// Another process has created it in the meantime.
fn make_if_missing_again(path: &Path) -> Result<FileKind, FileOpenError> {
    match fs::metadata(path) {
        Ok(there) if there.len() == 0 => Ok(FileKind::Right),
        Ok(_) => look(path),
        Err(why) => Err(io_error(path, &why)),
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

pub(crate) fn io_error(path: &Path, why: &std::io::Error) -> FileOpenError {
    match why.kind() {
        ErrorKind::PermissionDenied => FileOpenError::NoPermission(path.into()),
        ErrorKind::ReadOnlyFilesystem => FileOpenError::ReadOnly(path.into()),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FileOpenError::NoRoom(path.into()),
        _ => FileOpenError::Failed(path.into(), why.to_string()),
    }
}

/// Reads the header of a file, and nothing else. Opened as an immutable file it is neither locked nor recovered, and no
/// other file is created beside it. Without its log it may be torn; then only opening it for writing shows what it is.
fn look(path: &Path) -> Result<FileKind, FileOpenError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let looked = Connection::open_with_flags(immutable(path), flags);
    let mark = looked.and_then(|connection| schema::mark(&connection));
    match mark {
        Err(fault) if fault.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(FileKind::Torn),
        mark => {
            check(path, mark.map_err(|fault| explain(path, Duration::ZERO, &fault))?)?;
            Ok(FileKind::Right)
        }
    }
}

fn immutable(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'_' | b'-' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

fn check(path: &Path, mark: FormatMark) -> Result<(), FileOpenError> {
    match mark {
        FormatMark { application: APPLICATION, format: found } if found > FORMAT => {
            Err(FileOpenError::Newer { path: path.into(), found, known: FORMAT })
        }
        FormatMark { application: APPLICATION, .. } => Ok(()),
        _ => Err(FileOpenError::Foreign(path.into())),
    }
}

fn connect(path: &Path, settings: &FileStoreBuilder) -> Result<Connection, TxnError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(settings.timeout.min(BUSY_MAX))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    let synchronous = match settings.durability {
        Durability::Off => "OFF",
        Durability::Normal => "NORMAL",
        Durability::Full => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.query_row(&format!("PRAGMA journal_size_limit = {LOG_BYTES_KEPT}"), [], |_| Ok(()))?;
    Ok(connection)
}

fn prepare(writer: &Connection, settings: &FileStoreBuilder) -> Result<(), TxnError> {
    if schema::mark(writer)?.application == 0 {
        schema::create(writer)?;
    }
    write_ahead(writer, settings.timeout)?;
    if let Some(bytes) = settings.bytes_max {
        let page: u32 = writer.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(bytes / u64::from(page.max(1))).unwrap_or(i64::MAX);
        writer.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(())
}

/// Gives the file a write-ahead log, unless it has one. SQLite does not wait for other processes while it does that, so
/// this function does.
fn write_ahead(writer: &Connection, timeout: Duration) -> Result<(), TxnError> {
    let clock = Clock::system();
    let until = clock.now() + Span::covering(timeout);
    loop {
        let mode = writer.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Err(fault) if !is_busy(&fault) => return Err(fault),
            Err(fault) if clock.now() >= until => return Err(fault),
            // Another process that has the file open keeps it in its mode, and SQLite reports that without an error.
            Ok(_) if clock.now() >= until => return Err(TxnError::SqliteFailure(busy(), None)),
            _ => pause(Duration::from_millis(1)),
        }
    }
}

fn busy() -> rusqlite::ffi::Error {
    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY)
}

fn explain(path: &Path, timeout: Duration, fault: &TxnError) -> FileOpenError {
    let path = path.to_path_buf();
    match fault.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => FileOpenError::NotSqlite(path),
        Some(ErrorCode::DatabaseCorrupt) => FileOpenError::Damaged(path, fault.to_string()),
        Some(ErrorCode::ReadOnly) => FileOpenError::ReadOnly(path),
        Some(ErrorCode::PermissionDenied) => FileOpenError::NoPermission(path),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FileOpenError::Busy(path, timeout),
        Some(ErrorCode::CannotOpen) if path.exists() => cannot_open(path),
        Some(ErrorCode::DiskFull) => FileOpenError::NoRoom(path),
        Some(ErrorCode::SystemIoFailure) => {
            FileOpenError::Failed(path, format!("the disk failed, or is full ({fault})"))
        }
        _ => FileOpenError::Failed(path, fault.to_string()),
    }
}

/// Returns why the system refuses to open an existing file, which SQLite does not report. A process that may open no
/// more files cannot open the folder as often as a store opens files, either, and then the system reports the reason.
/// (The file itself is left alone: closing it would lose the locks that this process has on it.)
fn cannot_open(path: PathBuf) -> FileOpenError {
    let folder = path.parent().unwrap_or(&path);
    let opened: Result<Vec<fs::ReadDir>, _> = (0..FILES).map(|_| fs::read_dir(folder)).collect();
    match opened {
        Err(why) if why.kind() != ErrorKind::PermissionDenied => io_error(&path, &why),
        // This is nearly always the reason.
        _ => FileOpenError::NoPermission(path),
    }
}

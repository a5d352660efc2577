//! Checks of the files of a batch: none is overwritten, and no two are the same.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tollgate_batch::Journal;
use tollgate_batch::journal::{JournalError, OnFailed};

use super::export;
use super::input::{BadLines, is_stdin};
use crate::args::BatchRunArgs;
use crate::exit::UsageError;

/// Returns the file that lines without a result go to.
pub(super) fn errors_path(args: &BatchRunArgs) -> PathBuf {
    let beside = || {
        let mut name = args.output.as_os_str().to_owned();
        name.push(".errors.jsonl");
        name.into()
    };
    args.errors.clone().unwrap_or_else(beside)
}

/// Checks that no existing file would be overwritten. It writes nothing.
///
/// # Errors
///
/// [`UsageError`] with the file, and what to do.
pub(super) fn check(args: &BatchRunArgs, bad: &BadLines) -> Result<(), UsageError> {
    let output = args.output.as_path();
    let journal = export::journal_path(args);
    check_apart(args, &journal, bad.path())?;
    for path in [output, &journal] {
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(UsageError(format!("{} is not a regular file; results need one", path.display())));
        }
    }
    export::check(args)?;
    let there = [output, &journal].into_iter().find(|path| has_text(path));
    if let (Some(there), false) = (there, args.resume) {
        // A foreign file must not be suggested for --resume.
        check_journal(&journal)?;
        let path = there.display();
        return Err(UsageError(format!("{path} exists; continue it with --resume, or name another file")));
    }
    bad.check().map_err(UsageError)
}

/// Refuses two paths that lead to the same file, also by links.
fn check_apart(args: &BatchRunArgs, journal: &Path, errors: &Path) -> Result<(), UsageError> {
    let mut files = vec![(args.output.as_path(), "results"), (errors, "errors")];
    if !is_stdin(&args.requests) {
        files.insert(0, (&args.requests, "requests"));
    }
    if journal != args.output {
        files.push((journal, "journal"));
    }
    for (at, (one, what)) in files.iter().enumerate() {
        for (other, what_else) in &files[at + 1..] {
            if is_same(one, other) {
                return Err(UsageError(format!(
                    "the {what} and the {what_else} are the same file, {}; nothing was written: name another",
                    other.display()
                )));
            }
        }
    }
    Ok(())
}

/// Returns true if the file exists and is not empty.
pub(super) fn has_text(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|there| there.len() > 0)
}

fn check_journal(path: &Path) -> Result<(), UsageError> {
    match Journal::read(path).and_then(|mut lines| lines.next().transpose()) {
        Err(foreign @ JournalError::Foreign { .. }) => Err(UsageError(foreign.to_string())),
        _ => Ok(()),
    }
}

/// Opens the file that results are written to first: the results themselves, or the journal.
pub(super) fn open_results(args: &BatchRunArgs) -> Result<Journal> {
    let on_failed = if args.retry_failed { OnFailed::Retry } else { OnFailed::Keep };
    Journal::open(export::journal_path(args), on_failed).map_err(|error| match error {
        JournalError::Foreign { .. } => UsageError(error.to_string()).into(),
        _ => error.into(),
    })
}

/// Returns true if two paths lead to the same file, also by links, or would if it existed.
fn is_same(one: &Path, other: &Path) -> bool {
    let is_one_file = identity(one).ok().zip(identity(other).ok()).is_some_and(|(one, other)| one == other);
    one == other
        || is_one_file
        || canonical(one).zip(canonical(other)).is_some_and(|(one, other)| one == other)
}

/// Returns the path of a file, which need not exist, with a directory without links.
fn canonical(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(std::fs::canonicalize(folder).ok()?.join(path.file_name()?))
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let there = std::fs::metadata(path)?;
    Ok((std::os::unix::fs::MetadataExt::dev(&there), std::os::unix::fs::MetadataExt::ino(&there)))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

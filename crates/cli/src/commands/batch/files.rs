//! The files of a batch: which may be written to, and that no two of them are one.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tollgate_batch::Journal;
use tollgate_batch::journal::{JournalError, OnFailed};

use super::input::BadLines;
use crate::args::BatchRunArgs;
use crate::exit::Usage;

/// Returns the file that lines without a result go to.
pub(super) fn errors_path(args: &BatchRunArgs) -> PathBuf {
    let beside = || {
        let mut name = args.output.as_os_str().to_owned();
        name.push(".errors.jsonl");
        name.into()
    };
    args.errors.clone().unwrap_or_else(beside)
}

/// Checks that nothing that is there would be written over. It writes nothing.
///
/// # Errors
///
/// [`Usage`] with the file, and what to do.
pub(super) fn check(args: &BatchRunArgs, bad: &BadLines) -> Result<(), Usage> {
    let (input, output) = (args.requests.as_path(), args.output.as_path());
    for (one, other, what) in [
        (input, output, "the requests and the results"),
        (input, bad.path(), "the requests and the errors"),
        (output, bad.path(), "the results and the errors"),
    ] {
        if is_same(one, other) {
            return Err(Usage(format!(
                "{what} are the same file, {}; nothing was written: name another",
                other.display()
            )));
        }
    }
    match std::fs::metadata(output) {
        Ok(there) if !there.is_file() => {
            return Err(Usage(format!("{} is no regular file; results go to one", output.display())));
        }
        Ok(there) if there.len() > 0 && !args.resume => {
            // A file of something else is not one to go on with.
            check_results(output)?;
            let path = output.display();
            return Err(Usage(format!("{path} is there already; --resume goes on with it, or name another")));
        }
        _ => {}
    }
    bad.check().map_err(Usage)
}

fn check_results(output: &Path) -> Result<(), Usage> {
    match Journal::read(output).and_then(|mut lines| lines.next().transpose()) {
        Err(foreign @ JournalError::Foreign { .. }) => Err(Usage(foreign.to_string())),
        _ => Ok(()),
    }
}

/// Opens the results to write to them.
pub(super) fn open_results(args: &BatchRunArgs) -> Result<Journal> {
    let on_failed = if args.retry_failed { OnFailed::Retry } else { OnFailed::Keep };
    Journal::open(&args.output, on_failed).map_err(|error| match error {
        JournalError::Foreign { .. } => Usage(error.to_string()).into(),
        _ => error.into(),
    })
}

/// Returns true if two paths lead to one file, by whatever links.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || identity(one).ok().zip(identity(other).ok()).is_some_and(|(one, other)| one == other)
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

//! Results in another format or order than that of the journal.
//!
//! A journal is written as requests finish, in the format that a later run reads. For other results it is a separate file,
//! and the results are written from it when the run ends: one pass finds the position of each result, another writes them.
//! Memory holds a position and the hash of an id for each request, and one result at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use serde::Deserialize;
use tollgate_batch::Journal;
use tollgate_batch::journal::{IdMap, JournalError, JournalLine, LINE_BYTES_MAX};

use super::files::has_text;
use super::openai_line;
use crate::args::BatchRunArgs;
use crate::atomic_write::{Readers, replace};
use crate::exit::UsageError;

/// The format of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultFormat {
    /// With attempts, tokens and cost of each request
    #[default]
    Tollgate,
    /// As in the output files of OpenAI's batches
    Openai,
}

/// Returns the path of the journal: the results themselves, unless they have another format or order.
pub(super) fn journal_path(args: &BatchRunArgs) -> PathBuf {
    if !is_needed(args) {
        return args.output.clone();
    }
    journal_beside(args)
}

fn journal_beside(args: &BatchRunArgs) -> PathBuf {
    let mut name = args.output.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

/// Refuses results that the run would replace although its journal does not have them: those of another program, those
/// without a journal, and, for a run without a journal, those with one. It only reads.
///
/// # Errors
///
/// [`UsageError`] with what to do.
pub(super) fn check(args: &BatchRunArgs) -> Result<(), UsageError> {
    let results = args.output.display();
    let journal = journal_beside(args);
    if !is_needed(args) {
        if !has_results(&journal) {
            return Ok(());
        }
        // A run without the journal would add results that a later run with it would drop.
        return Err(UsageError(format!(
            "{} exists, so an earlier run wrote {results} with --format or --ordered; give the same options, or name \
             another file",
            journal.display()
        )));
    }
    if !has_text(&args.output) {
        return Ok(());
    }
    check_ours(&args.output)?;
    if !has_text(&journal) {
        return Err(UsageError(format!(
            "{results} exists, but {} does not, so a run with other options wrote it; name another file, or leave out \
             --format and --ordered",
            journal.display()
        )));
    }
    Ok(())
}

/// Returns true if a file begins with a result, as a journal does.
fn has_results(path: &Path) -> bool {
    let first = Journal::read(path).map(|mut lines| lines.next());
    matches!(first, Ok(Some(Ok(_))))
}

/// Checks that each line of a file is a result, in any format and order.
fn check_ours(path: &Path) -> Result<(), UsageError> {
    let cannot_be_read = |cause: io::Error| UsageError(format!("{} cannot be read: {cause}", path.display()));
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(cannot_be_read)?);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        // No run writes a longer line, and it need not be in memory to be refused.
        let read = (&mut reader).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        if read.map_err(cannot_be_read)? == 0 {
            return Ok(());
        }
        if let Err(cause) = serde_json::from_slice::<JournalLine>(&line)
            && !openai_line::is_ours(&line)
        {
            let cause = cause.to_string();
            return Err(UsageError(
                JournalError::Foreign { path: path.into(), line: number, cause }.to_string(),
            ));
        }
    }
}

/// Writes the results from the journal, if they are another file. Existing results are replaced atomically.
///
/// # Errors
///
/// The journal cannot be read, or the results cannot be written.
pub(super) fn write(args: &BatchRunArgs) -> Result<()> {
    if !is_needed(args) {
        return Ok(());
    }
    let journal = journal_path(args);
    let file = File::open(&journal).with_context(|| format!("{} cannot be read", journal.display()))?;
    let mut index =
        ResultIndex::read(&file).with_context(|| format!("{} cannot be read", journal.display()))?;
    if args.ordered {
        index.sort();
    }
    // Only the owner may read requests and replies, as with the journal.
    replace(&args.output, Readers::Owner, |out| index.copy(&file, args.format, out))
        .with_context(|| format!("{} cannot be written; --resume writes it again", args.output.display()))
}

fn is_needed(args: &BatchRunArgs) -> bool {
    args.ordered || args.format != ResultFormat::Tollgate
}

/// The position of the result of each request in a journal.
struct ResultIndex {
    positions: Vec<ResultPosition>,
}

/// The position of a result. There may be millions, so the fields are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ResultPosition {
    /// The number of the request in the input. Those that do not fit are in the order of the journal.
    number: u32,
    at: u64,
    len: u32,
}

#[derive(Deserialize)]
struct ResultHead {
    id: Box<str>,
    #[serde(default)]
    index: u64,
}

impl ResultIndex {
    /// Reads the positions of results. If a request has several, the last one counts.
    fn read(file: &File) -> io::Result<ResultIndex> {
        let mut reader = BufReader::with_capacity(1 << 16, file);
        reader.seek(SeekFrom::Start(0))?;
        let mut positions = Vec::new();
        let mut index_by_id = IdMap::<u32>::new();
        let mut line = Vec::new();
        let mut at = 0;
        loop {
            line.clear();
            let len = reader.read_until(b'\n', &mut line)? as u64;
            if len == 0 {
                return Ok(ResultIndex { positions });
            }
            // Lines that a crash had truncated are blank by now.
            if !line.trim_ascii().is_empty() {
                let head: ResultHead = serde_json::from_slice(&line)?;
                let number = u32::try_from(head.index).unwrap_or(u32::MAX);
                let position = ResultPosition { number, at, len: short(len)? };
                match index_by_id.get(&head.id) {
                    Some(index) => positions[index as usize] = position,
                    None => {
                        index_by_id.insert(&head.id, short(positions.len() as u64)?);
                        positions.push(position);
                    }
                }
            }
            at += len;
        }
    }

    /// Sorts results by the order of the input.
    fn sort(&mut self) {
        self.positions.sort_unstable();
    }

    fn copy(&self, mut file: &File, format: ResultFormat, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Vec::new();
        for ResultPosition { at, len, .. } in &self.positions {
            file.seek(SeekFrom::Start(*at))?;
            line.clear();
            file.take(u64::from(*len)).read_to_end(&mut line)?;
            match format {
                ResultFormat::Tollgate => out.write_all(line.trim_ascii())?,
                ResultFormat::Openai => openai_line::write(&line, out)?,
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// Converts to 32 bits, which are enough for any journal.
fn short(number: u64) -> io::Result<u32> {
    u32::try_from(number).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exported(lines: &[&str], format: ResultFormat, ordered: bool) -> String {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("tollgate-export-{}-{number}.journal", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let file = File::open(&path).unwrap();
        let mut index = ResultIndex::read(&file).unwrap();
        if ordered {
            index.sort();
        }
        let mut out = Vec::new();
        index.copy(&file, format, &mut out).unwrap();
        std::fs::remove_file(&path).unwrap();
        String::from_utf8(out).unwrap()
    }

    const LINES: [&str; 4] = [
        r#"{"id":"c","status":"failed","class":"fatal","reason":"no","index":2}"#,
        "     ",
        r#"{"id":"a","status":"done","output":{"status_code":200,"body":{"z":1,"a":12345678901234567890}},"index":0}"#,
        r#"{"id":"c","status":"done","output":{"status_code":200,"body":1},"index":2}"#,
    ];

    #[test]
    fn the_last_line_about_a_request_counts_and_blank_ones_do_not() {
        assert_eq!(exported(&LINES, ResultFormat::Tollgate, false), [LINES[3], LINES[2], ""].join("\n"));
    }

    #[test]
    fn ordered_results_are_in_the_order_of_the_input() {
        assert_eq!(exported(&LINES, ResultFormat::Tollgate, true), [LINES[2], LINES[3], ""].join("\n"));
    }

    #[test]
    fn a_position_takes_16_bytes_and_numbers_that_do_not_fit_keep_the_order_of_the_journal() {
        assert_eq!(size_of::<ResultPosition>(), 16);
        let lines = [1_u64 << 40, 1 << 39, 1]
            .map(|index| format!(r#"{{"id":"{index}","status":"done","output":1,"index":{index}}}"#));
        let [far, near, first] = lines.each_ref().map(String::as_str);
        let written = exported(&[far, near, first], ResultFormat::Tollgate, true);
        assert_eq!(written, [first, far, near, ""].join("\n"));
    }

    #[test]
    fn bodies_are_copied_byte_for_byte() {
        let text = exported(&LINES, ResultFormat::Openai, true);
        assert!(text.contains(r#""body":{"z":1,"a":12345678901234567890}"#), "{text}");
    }
}

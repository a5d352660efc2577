//! Lines of the input that have no result of their own, and the file that says why.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::line_numbers::LineNumbers;

/// The longest first line of a file of ours. An entry has the text of a line of the input.
const FIRST_LINE_BYTES_MAX: u64 = 2 * super::lines::LINE_BYTES_MAX;

/// Lines that have no result, and where they go.
pub(crate) struct BadLines {
    path: PathBuf,
    input: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    count: u64,
    first: Option<String>,
    numbers: LineNumbers,
    /// Why nothing more can be put aside, or nothing more be read.
    broken: Option<String>,
}

/// An entry of the file.
#[derive(Serialize)]
struct Entry<'a> {
    file: &'a str,
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_id: Option<&'a str>,
    error: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
}

/// What an entry of ours has.
#[derive(Deserialize)]
struct Ours {
    #[serde(rename = "file")]
    _file: String,
    #[serde(rename = "line")]
    _line: u64,
    #[serde(rename = "error")]
    _error: String,
}

impl BadLines {
    /// Lines of this input go to the file at `path`, which is created when there is one.
    pub(crate) fn new(path: PathBuf, input: &Path) -> BadLines {
        let input = if input == Path::new("-") { "stdin".into() } else { input.display().to_string() };
        BadLines { path, input, state: Mutex::default() }
    }

    /// Returns why the file may not be written to, if it is there and is not of an earlier run.
    pub(crate) fn check(&self) -> Result<(), String> {
        let path = self.path.display();
        match std::fs::metadata(&self.path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(cause) => return Err(format!("{path} cannot be used: {cause}")),
            Ok(there) if !there.is_file() => return Err(format!("{path} is no regular file")),
            Ok(there) if there.len() == 0 => return Ok(()),
            Ok(_) => {}
        }
        let mut first = Vec::new();
        File::open(&self.path)
            .and_then(|file| BufReader::new(file).take(FIRST_LINE_BYTES_MAX).read_until(b'\n', &mut first))
            .map_err(|cause| format!("{path} cannot be read: {cause}"))?;
        match serde_json::from_slice::<Ours>(&first) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!(
                "{path} is not a file of errors of an earlier run, so nothing was written to it; name another with \
                 --errors"
            )),
        }
    }

    /// Empties the file of an earlier run, which [`check`](BadLines::check) has found to be one: what it says may not be true
    /// any more.
    pub(crate) fn empty_old(&self) -> io::Result<()> {
        match std::fs::metadata(&self.path) {
            Ok(there) if there.len() > 0 => create_private(&self.path).map(drop),
            _ => Ok(()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how many lines are no requests.
    pub(crate) fn count(&self) -> u64 {
        self.state().count
    }

    /// Returns what is wrong with the first line that was put aside.
    pub(crate) fn first(&self) -> Option<String> {
        self.state().first.clone()
    }

    /// Why the input ended early, if it did.
    pub(crate) fn broken(&self) -> Option<String> {
        self.state().broken.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The input cannot be read beyond this line.
    pub(super) fn give_up(&self, line: u64, why: &io::Error) {
        let broken = format!("{} cannot be read beyond line {line}: {why}", self.input);
        self.state().broken = Some(broken);
    }

    /// The next item of the batch stands in this line.
    pub(super) fn add_item(&self, line: u64) {
        self.state().numbers.add(line);
    }

    /// Puts a line aside that is no request. Returns false if it could not be written down, and would be lost.
    pub(super) fn put_aside(&self, line: u64, error: &str, text: &str) -> bool {
        let mut state = self.state();
        state.count += 1;
        self.write(&mut state, &Entry { file: &self.input, line, custom_id: None, error, text })
    }

    /// Puts a request aside that is not called, by its number in the batch.
    pub(super) fn put_item_aside(&self, item: u64, id: &str, error: &str) {
        let mut state = self.state();
        let line = state.numbers.line_of(item).unwrap_or_default();
        self.write(&mut state, &Entry { file: &self.input, line, custom_id: Some(id), error, text: "" });
    }

    fn write(&self, state: &mut State, entry: &Entry<'_>) -> bool {
        state.first.get_or_insert_with(|| format!("line {}: {}", entry.line, entry.error));
        match self.try_write(state, entry) {
            Ok(()) => true,
            Err(why) => {
                state.broken = Some(format!("{} cannot be written: {why}", self.path.display()));
                false
            }
        }
    }

    fn try_write(&self, state: &mut State, entry: &Entry<'_>) -> io::Result<()> {
        let file = match &mut state.file {
            Some(file) => file,
            empty => empty.insert(create_private(&self.path)?),
        };
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

/// Creates a file that others cannot read: what was to be sent is for the owner only.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(true).open(path)
}

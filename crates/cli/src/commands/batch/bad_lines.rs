//! Lines of the input that are not sent, and the errors file with the reasons.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::input::is_stdin;
use super::line_numbers::LineNumbers;

/// The longest line of an errors file. An entry has the text of a line of the input, in which a byte is escaped by at most
/// six.
const ENTRY_BYTES_MAX: u64 = 8 * super::lines::LINE_BYTES_MAX;

/// Lines that are not sent, and the errors file that they are written to.
pub(crate) struct BadLines {
    path: PathBuf,
    input: String,
    state: Mutex<BadLinesState>,
}

#[derive(Default)]
struct BadLinesState {
    file: Option<File>,
    count: u64,
    first: Option<String>,
    numbers: LineNumbers,
    /// Why no more lines can be written, or read.
    broken: Option<String>,
}

/// An entry of the file: an invalid line with its text, or a request that is not sent with its id.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BadLineEntry<'a> {
    file: Cow<'a, str>,
    line: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    custom_id: Option<Cow<'a, str>>,
    error: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
}

impl BadLineEntry<'_> {
    /// Returns true if a run wrote this line: it equals what the writer makes of its fields. Linters write a file,
    /// a line and an error as well.
    fn is_ours(line: &[u8]) -> bool {
        serde_json::from_slice::<BadLineEntry<'_>>(line).is_ok_and(|entry| {
            let has_one = entry.custom_id.is_some() != entry.text.is_some();
            has_one && serde_json::to_vec(&entry).is_ok_and(|written| written == line)
        })
    }

    /// Returns true if a crash can have left this at the end of an errors file: an incomplete entry, or zeros.
    fn may_be_cut_off(tail: &[u8]) -> bool {
        let known = tail.split(|byte| *byte == 0).next().unwrap_or_default();
        let is_cut = |cause: serde_json::Error| cause.is_eof();
        let is_beginning = known.starts_with(b"{\"file\":") || b"{\"file\":".starts_with(known);
        is_beginning && serde_json::from_slice::<BadLineEntry<'_>>(known).is_err_and(is_cut)
            || BadLineEntry::is_ours(known)
    }
}

impl BadLines {
    /// Creates an empty collection. The file at `path` is created with the first line.
    pub(crate) fn new(path: PathBuf, input: &Path) -> BadLines {
        let input = if is_stdin(input) { "stdin".into() } else { input.display().to_string() };
        BadLines { path, input, state: Mutex::default() }
    }

    /// Returns why the file must not be written to, if it exists and is not of an earlier run.
    pub(crate) fn check(&self) -> Result<(), String> {
        let path = self.path.display();
        match std::fs::metadata(&self.path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(cause) => return Err(format!("{path} cannot be used: {cause}")),
            Ok(there) if !there.is_file() => return Err(format!("{path} is not a regular file")),
            Ok(there) if there.len() == 0 => return Ok(()),
            Ok(_) => {}
        }
        match File::open(&self.path).and_then(is_of_a_run) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!(
                "{path} is not an errors file of an earlier run, so nothing was written to it; name another file with \
                 --errors"
            )),
            Err(cause) => Err(format!("{path} cannot be read: {cause}")),
        }
    }

    /// Empties the file of an earlier run, which [`check`](BadLines::check) has verified: its entries may be outdated.
    pub(crate) fn empty_old(&self) -> io::Result<()> {
        match std::fs::metadata(&self.path) {
            Ok(there) if there.len() > 0 => create_private(&self.path).map(drop),
            _ => Ok(()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how many lines are invalid.
    pub(crate) fn count(&self) -> u64 {
        self.state().count
    }

    /// Returns the first line that is not sent, and why.
    pub(crate) fn first(&self) -> Option<String> {
        self.state().first.clone()
    }

    /// Returns why the input ended early, if it did.
    pub(crate) fn broken(&self) -> Option<String> {
        self.state().broken.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, BadLinesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the input cannot be read beyond this line.
    pub(super) fn give_up(&self, line: u64, why: &io::Error) {
        let broken = format!("{} cannot be read beyond line {line}: {why}", self.input);
        self.state().broken = Some(broken);
    }

    /// Records the line of the next item of the batch.
    pub(super) fn add_item(&self, line: u64) {
        self.state().numbers.add(line);
    }

    /// Writes an invalid line to the file. Returns false if it could not be written, and would be lost.
    pub(super) fn put_aside(&self, line: u64, error: &str, text: &str) -> bool {
        let mut state = self.state();
        state.count += 1;
        let file = Cow::from(&self.input);
        let text = Some(text.into());
        self.write(&mut state, &BadLineEntry { file, line, custom_id: None, error: error.into(), text })
    }

    /// Writes a request that is not sent to the file, by its number in the batch.
    pub(super) fn put_item_aside(&self, item: u64, id: &str, error: &str) {
        let mut state = self.state();
        let line = state.numbers.line_of(item).unwrap_or_default();
        let file = Cow::from(&self.input);
        let custom_id = Some(id.into());
        self.write(&mut state, &BadLineEntry { file, line, custom_id, error: error.into(), text: None });
    }

    fn write(&self, state: &mut BadLinesState, entry: &BadLineEntry<'_>) -> bool {
        state.first.get_or_insert_with(|| format!("line {}: {}", entry.line, entry.error));
        match self.try_write(state, entry) {
            Ok(()) => true,
            Err(why) => {
                state.broken = Some(format!("{} cannot be written: {why}", self.path.display()));
                false
            }
        }
    }

    fn try_write(&self, state: &mut BadLinesState, entry: &BadLineEntry<'_>) -> io::Result<()> {
        let file = match &mut state.file {
            Some(file) => file,
            empty => empty.insert(create_private(&self.path)?),
        };
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let start = file.stream_position()?;
        file.write_all(&line).inspect_err(|_| {
            // A full disk may have stored a part of the line.
            let _ = file.set_len(start).and_then(|()| file.seek(SeekFrom::Start(start)));
        })
    }
}

/// Returns true if each line of a file is an entry that a run wrote. A crash may have cut off the last one.
fn is_of_a_run(file: File) -> io::Result<bool> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    let mut has_entry = false;
    loop {
        line.clear();
        (&mut reader).take(ENTRY_BYTES_MAX).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\n") {
            Some(entry) if BadLineEntry::is_ours(entry) => has_entry = true,
            Some(_) => return Ok(false),
            None if line.first().is_none_or(|byte| *byte == 0) => return Ok(has_entry),
            None => return Ok((line.len() as u64) < ENTRY_BYTES_MAX && BadLineEntry::may_be_cut_off(&line)),
        }
    }
}

/// Creates a file that only the owner can read, because it contains requests.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ours(text: &str) -> bool {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tollgate-errors-{}-{number}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let checked = BadLines::new(path.clone(), Path::new("-")).check();
        std::fs::remove_file(&path).unwrap();
        checked.is_ok()
    }

    #[test]
    fn a_file_of_errors_is_ours_if_each_line_is_and_the_last_one_may_be_cut_off() {
        let ours = [
            r#"{"file":"a.jsonl","line":3,"error":"no \"body\"","text":"{\"é\": 1}"}"#,
            r#"{"file":"stdin","line":4,"custom_id":"b","error":"twice"}"#,
        ];
        let text = format!("{}\n{}\n", ours[0], ours[1]);
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert!(is_ours(&text[..end]), "{}", &text[..end]);
        }
        assert!(is_ours(&format!("{text}\0\0\0")));
        for foreign in [
            r#"{"file":"a.rs","line":3,"error":"unused variable"}"#,
            r#"{"file":"a.rs","line":3,"column":1,"error":"unused variable","text":"x"}"#,
            r#"{"line":3,"file":"a.rs","error":"unused variable","text":"x"}"#,
            r#"{"file": "a.rs", "line": 3, "error": "unused variable", "text": "x"}"#,
            r#"{"file":"a.rs","line":3,"custom_id":"b","error":"e","text":"x"}"#,
            "notes",
            "\0\0",
            " ",
        ] {
            for text in [foreign.to_owned(), format!("{foreign}\n")] {
                assert!(!is_ours(&text), "{text}");
            }
            assert!(!is_ours(&format!("{}\n{foreign}\n{}\n", ours[0], ours[1])), "{foreign}");
        }
    }
}

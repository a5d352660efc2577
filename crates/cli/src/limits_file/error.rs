use std::fmt;
use std::path::Path;

/// An error in a limits file: the file, the table and the key, and what would be valid.
#[derive(Debug)]
pub(crate) struct LimitsFileError(String);

impl LimitsFileError {
    /// Returns an error about the whole file.
    pub(crate) fn of_file(file: &Path, why: impl fmt::Display) -> LimitsFileError {
        LimitsFileError(format!("{}: {why}", file.display()))
    }

    /// Returns an error about a table or a key.
    pub(crate) fn at(file: &Path, place: &FilePlace<'_>, why: impl fmt::Display) -> LimitsFileError {
        match place.to_string() {
            place if place.is_empty() => LimitsFileError::of_file(file, why),
            place => LimitsFileError::of_file(file, format_args!("{place}: {why}")),
        }
    }
}

impl fmt::Display for LimitsFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LimitsFileError {}

/// A place in a file: a table and perhaps a key in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilePlace<'a> {
    /// The table; that of the whole file if it is empty.
    pub(crate) table: &'a str,
    /// The key.
    pub(crate) key: Option<&'a str>,
}

impl fmt::Display for FilePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.table, self.key) {
            ("", None) => Ok(()),
            ("", Some(key)) => write!(f, "key {key}"),
            (table, None) => write!(f, "table [{table}]"),
            (table, Some(key)) => write!(f, "table [{table}], key {key}"),
        }
    }
}

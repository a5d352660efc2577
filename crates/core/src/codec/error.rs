use std::fmt;

use crate::LimitsError;

/// Why text is no limits, or bytes are no bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecError {
    /// It was written in a form that this version does not know.
    UnknownForm(String),
    /// It ends too early.
    TooShort,
    /// It goes on for so many bytes after its end.
    TooLong(usize),
    /// A number is written in a way that no writer has.
    BadNumber,
    /// The state of this limit is one that it cannot have, or that of another kind of limit.
    BadState(String),
    /// A line of the text is not that of a limit.
    BadLine {
        /// Which line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A quota resets by a calendar that the reader does not know.
    UnknownCalendar(String),
    /// The limits are not valid, or make no set.
    Limits(LimitsError),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecError::UnknownForm(form) => {
                write!(f, "it is in form {form:?}, which this version does not know; a later one wrote it")
            }
            CodecError::TooShort => f.write_str("it is cut off"),
            CodecError::TooLong(bytes) => write!(f, "{bytes} bytes follow its end"),
            CodecError::BadNumber => f.write_str("a number is not written as numbers are"),
            CodecError::BadState(limit) => write!(f, "the state of limit {limit:?} is none that it can have"),
            CodecError::BadLine { line, why } => write!(f, "line {line}: {why}"),
            CodecError::UnknownCalendar(text) => write!(f, "the calendar {text:?} is not known here"),
            CodecError::Limits(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CodecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CodecError::Limits(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LimitsError> for CodecError {
    fn from(error: LimitsError) -> CodecError {
        CodecError::Limits(error)
    }
}

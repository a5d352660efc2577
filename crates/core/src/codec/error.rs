use std::fmt;

use crate::LimitsError;

/// Text that cannot be decoded as limits, or bytes that cannot be decoded as a bucket.
///
/// ```
/// use tollgate_core::{Bucket, CodecError, Limit, Limits, Tick};
///
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let bytes = Bucket::fresh(&limits, Tick::ZERO).to_bytes();
/// let cut = &bytes[..bytes.len() - 1];
/// assert_eq!(Bucket::from_bytes(&limits, cut), Err(CodecError::TooShort));
/// # Ok::<(), tollgate_core::LimitsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecError {
    /// The data is in a format that this version does not know.
    UnknownForm(String),
    /// The data is truncated.
    TooShort,
    /// This many bytes follow the end of the data.
    TooLong(usize),
    /// A number has an invalid encoding.
    BadNumber,
    /// The state of this limit is not valid, or that of another kind of limit.
    BadState(String),
    /// A line of the text does not describe a limit.
    BadLine {
        /// The number of the line, counted from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// A quota resets by an unknown calendar.
    UnknownCalendar(String),
    /// The limits are not valid, or cannot form a set.
    Limits(LimitsError),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecError::UnknownForm(form) => {
                write!(f, "unknown format {form:?}; a later version wrote it")
            }
            CodecError::TooShort => f.write_str("the data is truncated"),
            CodecError::TooLong(bytes) => write!(f, "{bytes} bytes follow the end of the data"),
            CodecError::BadNumber => f.write_str("a number has an invalid encoding"),
            CodecError::BadState(limit) => write!(f, "the state of limit {limit:?} is not valid for it"),
            CodecError::BadLine { line, why } => write!(f, "line {line}: {why}"),
            CodecError::UnknownCalendar(text) => write!(f, "unknown calendar {text:?}"),
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

//! Arguments of calls: texts, whole numbers, times and lists, each with an exception that says what would be valid.

use std::ops::Deref;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use tollgate::catalog::{Cursor, PageRequest};
use tollgate::store::records::PAGE_MAX;
use tollgate::{Limits, Tick};

use crate::amount::shown;
use crate::error::{OrRaise, invalid};
use crate::limit::limits_of;
use crate::set_settings::whole;

/// A text of a caller, which is valid Unicode.
pub(crate) struct TextArgument(pub(crate) String);

impl Deref for TextArgument {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for TextArgument {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<TextArgument> {
        let Ok(found) = value.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!("{} is not a text", shown(&value))));
        };
        let unreadable = || invalid(value.py(), format!("{} is not valid Unicode", shown(&value)));
        found.to_str().map(|text| TextArgument(text.to_owned())).map_err(|_| unreadable())
    }
}

/// A list, tuple or other iterable of limits.
pub(crate) struct LimitList(pub(crate) Limits);

impl<'py> FromPyObject<'_, 'py> for LimitList {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<LimitList> {
        Limits::new(limits_of(&value)?).or_raise(value.py()).map(LimitList)
    }
}

/// Texts by name.
pub(crate) struct TextMap(pub(crate) Vec<(String, String)>);

impl<'py> FromPyObject<'_, 'py> for TextMap {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<TextMap> {
        let dict = value
            .cast::<PyDict>()
            .map_err(|_| PyTypeError::new_err(format!("{} is not a dict of texts by name", shown(&value))))?;
        let text = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((key.extract::<TextArgument>()?.0, value.extract::<TextArgument>()?.0))
        };
        dict.iter().map(text).collect::<PyResult<_>>().map(TextMap)
    }
}

/// An instant of a caller: seconds since the epoch, or a `datetime`.
pub(crate) struct Instant(pub(crate) Tick);

/// The last instant, about the year 9999.
const INSTANT_MAX: f64 = 253_402_300_800.0;

impl<'py> FromPyObject<'_, 'py> for Instant {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Instant> {
        let py = value.py();
        let refuse = || {
            let text =
                format!("{} is no instant; write seconds since the epoch, or a datetime", shown(&value));
            invalid(py, text)
        };
        if value.is_instance_of::<PyBool>() {
            return Err(refuse());
        }
        let seconds: f64 = match value.getattr_opt(intern!(py, "timestamp"))? {
            Some(timestamp) => timestamp.call0()?.extract()?,
            None => value.extract().map_err(|_| refuse())?,
        };
        if !(0.0..=INSTANT_MAX).contains(&seconds) {
            return Err(refuse());
        }
        // In range, and whole.
        Ok(Instant(Tick::from_micros((seconds * 1e6).round() as u64)))
    }
}

/// Returns an instant as seconds since the epoch.
pub(crate) fn epoch_seconds(at: Tick) -> f64 {
    // Exact for some hundreds of years.
    at.as_micros() as f64 / 1e6
}

/// Returns the page that a caller asks for: at most `limit` items after the cursor `after`.
///
/// # Errors
///
/// `InvalidValue` for a number of items that is not valid.
pub(crate) fn page(
    limit: Option<&Bound<'_, PyAny>>,
    after: Option<TextArgument>,
    newest_first: bool,
) -> PyResult<PageRequest> {
    let limit = match limit {
        Some(limit) => whole("limit", limit, 1, PAGE_MAX as u64)? as usize,
        None => PAGE_MAX,
    };
    Ok(PageRequest { limit, after: after.map(|after| Cursor(after.0)), newest_first })
}

/// Returns which of some words a caller wrote.
///
/// # Errors
///
/// `InvalidValue` with the words.
pub(crate) fn one_of<T: Copy>(
    py: Python<'_>,
    what: &str,
    word: &str,
    known: &[(T, &'static str)],
) -> PyResult<T> {
    let found = known.iter().find(|(_, known)| *known == word);
    found.map(|(value, _)| *value).ok_or_else(|| {
        let words: Vec<_> = known.iter().map(|(_, word)| format!("{word:?}")).collect();
        invalid(py, format!("{what} is {word:?}, but must be one of {}", words.join(", ")))
    })
}

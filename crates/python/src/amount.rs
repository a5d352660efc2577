//! Numbers of Python as amounts and durations.

use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};
use tollgate::{AMOUNT_MAX, Unit};

use crate::error::{invalid, invalid_demand};

/// The longest text of a value that an error shows.
const SHOWN_MAX: usize = 80;

/// Converts a number to an amount. Integers and whole floats count as they are, also those of other libraries (`__index__`,
/// `as_integer_ratio`). A fraction or a text is an amount only of a limit with a unit, which says how it is scaled.
///
/// # Errors
///
/// `InvalidDemand` with the name, the value and what would be valid.
pub(crate) fn amount(name: &str, value: &Bound<'_, PyAny>, unit: Option<&Unit>) -> PyResult<u64> {
    if value.is_exact_instance_of::<PyInt>() {
        return integer(name, value);
    }
    unusual(name, value, unit)
}

/// Converts a plain `int`; no code of the caller runs.
#[inline]
pub(crate) fn integer(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    match value.extract::<u64>() {
        Ok(amount) if amount <= AMOUNT_MAX => Ok(amount),
        _ => Err(out_of_range(name, value)),
    }
}

#[cold]
fn out_of_range(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let is_negative = value.lt(0).unwrap_or(false);
    let why = if is_negative { "negative" } else { "too large" };
    let text = format!("{name}: {} is {why}; an amount is 0 to {AMOUNT_MAX}", shown(value));
    invalid_demand(value.py(), text)
}

#[cold]
fn unusual(name: &str, value: &Bound<'_, PyAny>, unit: Option<&Unit>) -> PyResult<u64> {
    let py = value.py();
    let refuse = |why: &str| invalid_demand(py, format!("{name}: {} {why}", shown(value)));
    if value.is_instance_of::<PyBool>() {
        return Err(refuse("is a bool; write 0 or 1"));
    }
    if let Ok(text) = value.cast::<PyString>() {
        let Some(unit) = unit else {
            return Err(refuse("is a text, and the limit has no unit to read it by"));
        };
        return unit.parse(&text.to_string_lossy()).map_err(|why| refuse(&format!("is no amount: {why}")));
    }
    if let Some(index) = attribute(value, intern!(py, "__index__"))? {
        return integer(name, &index.call0()?);
    }
    if let (Some(unit), false) = (unit, value.is_instance_of::<PyFloat>())
        && let Ok(amount) = unit.parse(&plain_text(value)?)
    {
        return Ok(amount);
    }
    let Some(ratio) = attribute(value, intern!(py, "as_integer_ratio"))? else {
        return Err(refuse("is not a number"));
    };
    // NaN and infinity have no ratio.
    let Ok((whole, parts)) = ratio.call0().and_then(|ratio| ratio.extract::<(Bound<'_, PyAny>, i128)>())
    else {
        return Err(refuse("is not a whole number"));
    };
    if parts != 1 {
        let scale = "is not a whole number; scale fractions to a smaller unit, such as cents, or give the limit a unit";
        return Err(refuse(scale));
    }
    integer(name, &whole)
}

/// Returns a decimal number without an exponent.
fn plain_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.call_method1(intern!(value.py(), "__format__"), ("f",))?.extract()
}

fn attribute<'py>(
    value: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    value.getattr_opt(name)
}

/// Returns the value as text for an error, cut where it is long.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map(|text| text.to_string_lossy().into_owned());
    let text = text.unwrap_or_else(|_| "a value that cannot be shown".into());
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Returns a text, or an error that names `what` if the value is none, or is one that is not valid Unicode.
///
/// # Errors
///
/// `InvalidValue`.
pub(crate) fn text<'a>(what: &str, value: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    value.to_str().map_err(|_| invalid(value.py(), format!("{what}: {} is not valid Unicode", shown(value))))
}

/// The longest wait; longer ones are none.
const SECONDS_MAX: f64 = 3_200_000_000.0;

/// Converts seconds or a `timedelta` to a duration; `None` for infinity.
///
/// # Errors
///
/// `ValueError` for a negative number and NaN, `TypeError` for what is neither.
pub(crate) fn seconds(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Duration>> {
    let py = value.py();
    let is_number = value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>();
    let seconds: f64 = match value.extract() {
        Ok(seconds) if is_number => seconds,
        // A whole number that no float can hold.
        Err(_) if is_number => {
            if value.lt(0)? {
                -1.0
            } else {
                f64::INFINITY
            }
        }
        found => unusual_seconds(what, value, found.ok())?,
    };
    if seconds.is_nan() || seconds < 0.0 {
        let text = format!("{what} is {}, but must be 0 or more seconds", shown(value));
        return Err(invalid(py, text));
    }
    Ok((seconds <= SECONDS_MAX).then(|| Duration::from_secs_f64(seconds)))
}

/// Converts what is neither a plain float nor a plain int. A `timedelta` is recognised by its method: the module `datetime` is not imported here.
#[cold]
fn unusual_seconds(what: &str, value: &Bound<'_, PyAny>, number: Option<f64>) -> PyResult<f64> {
    let py = value.py();
    match (value.getattr_opt(intern!(py, "total_seconds"))?, number) {
        (Some(total), _) => total.call0()?.extract(),
        (None, Some(seconds)) if !value.is_instance_of::<PyBool>() => Ok(seconds),
        _ => {
            let text = format!("{what} is {}, but must be seconds or a timedelta", shown(value));
            Err(PyTypeError::new_err(text))
        }
    }
}

/// Converts seconds or a `timedelta` to a duration that ends.
///
/// # Errors
///
/// As [`seconds`], and for what is too long.
pub(crate) fn span(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let py = value.py();
    seconds(what, value)?.ok_or_else(|| invalid(py, format!("{what} is {}, which is too long", shown(value))))
}

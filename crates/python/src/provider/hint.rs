//! Hints: what a reply of a provider means for its callers.

use std::time::{Duration, SystemTime};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tollgate::Clock;
use tollgate_provider::{Class, FatalKind, Hint, LimitReading, LimitUnit, Response, Tokens, read};

use crate::amount::{amount, shown};
use crate::error::invalid;

/// The tokens of one call, as the provider reported them.
///
/// ```python
/// import tollgate as tg
///
/// assert tg.Tokens(input=19, output=10).total == 29
/// ```
#[pyclass(frozen, get_all, name = "Tokens", module = "tollgate")]
#[derive(Clone, Copy)]
pub(crate) struct PyTokens {
    /// The tokens of the request that count against a limit.
    pub(super) input: u64,
    /// The tokens of the reply.
    pub(super) output: u64,
    /// The sum of both, or more if the provider reports more.
    pub(super) total: u64,
}

impl From<Tokens> for PyTokens {
    fn from(tokens: Tokens) -> PyTokens {
        PyTokens { input: tokens.input, output: tokens.output, total: tokens.total }
    }
}

#[pymethods]
impl PyTokens {
    /// The tokens of a request and of its reply.
    #[new]
    fn new(input: &Bound<'_, PyAny>, output: &Bound<'_, PyAny>) -> PyResult<PyTokens> {
        Ok(Tokens::new(amount("input", input, None)?, amount("output", output, None)?).into())
    }

    fn __repr__(&self) -> String {
        format!("<Tokens input={} output={} total={}>", self.input, self.output, self.total)
    }
}

/// How one limit of a provider stands, as its headers report it.
///
/// ```python
/// import tollgate as tg
///
/// [reading] = tg.read_reply(200, [("x-ratelimit-remaining-requests", "7")]).limits
/// assert (reading.unit, reading.remaining, reading.limit) == ("requests", 7, None)
/// ```
#[pyclass(frozen, get_all, name = "LimitReading", module = "tollgate")]
#[derive(Clone, Copy)]
pub(crate) struct PyLimitReading {
    /// What it counts: "requests", "tokens", "input_tokens" or "output_tokens".
    unit: &'static str,
    /// Its capacity.
    limit: Option<u64>,
    /// How much is left.
    remaining: Option<u64>,
    /// How many seconds until it is full again.
    reset: Option<f64>,
}

impl PyLimitReading {
    fn of(reading: &LimitReading) -> Option<PyLimitReading> {
        let unit = match reading.unit {
            LimitUnit::Requests => "requests",
            LimitUnit::Tokens => "tokens",
            LimitUnit::InputTokens => "input_tokens",
            LimitUnit::OutputTokens => "output_tokens",
            _ => return None,
        };
        let reset = reading.reset.map(|reset| reset.as_secs_f64());
        Some(PyLimitReading { unit, limit: reading.limit, remaining: reading.remaining, reset })
    }
}

#[pymethods]
impl PyLimitReading {
    fn __repr__(&self) -> String {
        let shown = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
        format!("<LimitReading {}: {} of {}>", self.unit, shown(self.remaining), shown(self.limit))
    }
}

/// What a reply of a provider means, whichever provider it is.
///
/// ```python
/// import tollgate as tg
///
/// hint = tg.read_reply(200, [], b'{"usage": {"prompt_tokens": 19, "completion_tokens": 10}}')
/// assert (hint.kind, hint.usage.total, hint.may_retry) == ("ok", 29, False)
/// ```
#[pyclass(frozen, get_all, name = "Hint", module = "tollgate")]
pub(crate) struct PyHint {
    /// What happened: "ok", "throttled", "exhausted", "overloaded", "transient" or "fatal".
    kind: &'static str,
    /// Whether the same call may succeed later.
    may_retry: bool,
    /// How many seconds the provider asks to wait; of an exhausted account, until it has quota again.
    retry_after: Option<f64>,
    /// The tokens that the call used, if the reply has them.
    usage: Option<PyTokensValue>,
    /// How the provider's limits stand.
    limits: Py<PyTuple>,
    /// The provider's message, without secrets.
    reason: Option<String>,
}

/// The same as [`PyTokens`], in a field that becomes an object when it is read.
#[derive(Clone, Copy)]
struct PyTokensValue(Tokens);

impl<'py> IntoPyObject<'py> for PyTokensValue {
    type Target = PyTokens;
    type Output = Bound<'py, PyTokens>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTokens>> {
        Bound::new(py, PyTokens::from(self.0))
    }
}

impl<'py> IntoPyObject<'py> for &PyTokensValue {
    type Target = PyTokens;
    type Output = Bound<'py, PyTokens>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTokens>> {
        (*self).into_pyobject(py)
    }
}

impl PyHint {
    pub(super) fn of(py: Python<'_>, hint: Hint, now: SystemTime) -> PyResult<PyHint> {
        let (kind, until) = match hint.class {
            Class::Ok => ("ok", None),
            Class::Throttled => ("throttled", None),
            Class::Exhausted { until } => ("exhausted", until),
            Class::Overloaded => ("overloaded", None),
            Class::Fatal(FatalKind::Auth | FatalKind::Request | FatalKind::TooLarge) => ("fatal", None),
            _ => ("transient", None),
        };
        let wait = until.map(|until| until.wait(now)).or(hint.advice);
        let readings = hint.meters.iter().filter_map(PyLimitReading::of);
        let readings = readings.map(|reading| Bound::new(py, reading)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyHint {
            kind,
            may_retry: hint.class.may_retry(),
            retry_after: wait.map(|wait| wait.as_secs_f64()),
            usage: hint.usage.map(PyTokensValue),
            limits: PyTuple::new(py, readings)?.unbind(),
            reason: hint.reason,
        })
    }
}

#[pymethods]
impl PyHint {
    fn __repr__(&self) -> String {
        let wait = self.retry_after.map(|wait| format!(" retry_after={wait}")).unwrap_or_default();
        format!("<Hint {}{wait}>", self.kind)
    }
}

/// Reads a reply of an LLM provider: OpenAI, Azure, Anthropic, Gemini, Bedrock, or one that speaks like them.
///
/// ```python
/// import tollgate as tg
///
/// hint = tg.read_reply(429, [("Retry-After", "7")])
/// assert (hint.kind, hint.retry_after) == ("throttled", 7.0)
/// ```
#[pyfunction]
#[pyo3(signature = (status, headers, body=None))]
pub(crate) fn read_reply(
    py: Python<'_>,
    status: &Bound<'_, PyAny>,
    headers: &Bound<'_, PyAny>,
    body: Option<Vec<u8>>,
) -> PyResult<PyHint> {
    let (status, headers, body) = (status_of(status)?, pairs_of(headers)?, body.unwrap_or_default());
    let now = wall_time();
    let hint = py.detach(|| hint_of(status, &headers, &body, now));
    PyHint::of(py, hint, now)
}

/// Reads the status of a reply.
///
/// # Errors
///
/// `InvalidValue` for what is no status.
pub(super) fn status_of(status: &Bound<'_, PyAny>) -> PyResult<u16> {
    status.extract().map_err(|_| {
        invalid(status.py(), format!("status is {}, but must be a number such as 200", shown(status)))
    })
}

/// Reads headers: a mapping, or pairs.
///
/// # Errors
///
/// `InvalidValue` for what is neither.
pub(super) fn pairs_of(headers: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let pairs = || {
        let items = intern!(headers.py(), "items");
        let pairs = if headers.hasattr(items)? { &headers.call_method0(items)? } else { headers };
        pairs.try_iter()?.map(|pair| pair?.extract()).collect::<PyResult<_>>()
    };
    pairs().map_err(|_| {
        let text = format!("headers is {}, but must be a mapping or pairs of texts", shown(headers));
        invalid(headers.py(), text)
    })
}

/// Returns the time that dates in replies are compared with.
pub(crate) fn wall_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(Clock::system().now().as_micros())
}

pub(crate) fn hint_of(status: u16, headers: &[(String, String)], body: &[u8], now: SystemTime) -> Hint {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    read(&Response::new(status, &headers, body), now)
}

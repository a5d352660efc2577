//! Estimates of the tokens that a request will use.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tollgate_provider::{Estimate, Estimator, Tokens};

use super::hint::PyTokens;
use crate::error::invalid;

/// The estimated tokens of one request.
///
/// ```python
/// import tollgate as tg
///
/// estimate = tg.estimate_tokens({"prompt": "How far is it?", "max_tokens": 50})
/// assert estimate.total == estimate.input + estimate.output == estimate.total_max
/// ```
#[pyclass(frozen, name = "Estimate", module = "tollgate")]
pub(crate) struct PyEstimate(Estimate);

#[pymethods]
impl PyEstimate {
    /// The tokens of the request.
    #[getter]
    fn input(&self) -> u64 {
        self.0.input
    }

    /// The expected tokens of the answer.
    #[getter]
    fn output(&self) -> u64 {
        self.0.output
    }

    /// The most tokens that the answer may have, if the request says so.
    #[getter]
    fn output_max(&self) -> Option<u64> {
        self.0.output_max
    }

    /// The sum of input and expected output.
    #[getter]
    fn total(&self) -> u64 {
        self.0.total()
    }

    /// The sum of input and the longest output: what OpenAI reserves.
    #[getter]
    fn total_max(&self) -> u64 {
        self.0.total_max()
    }

    fn __repr__(&self) -> String {
        format!("<Estimate input={} output={}>", self.0.input, self.0.output)
    }
}

/// Estimates the tokens of requests, and learns from what they have used. Threads can share it.
///
/// ```python
/// import tollgate as tg
///
/// estimator = tg.Estimator()
/// estimate = estimator.estimate({"model": "m", "prompt": "How far is it?", "max_tokens": 50})
/// assert estimate.total == estimate.input + 50
/// estimator.learn(estimate, tg.Tokens(12, 30))
/// ```
#[pyclass(frozen, name = "Estimator", module = "tollgate")]
pub(crate) struct PyEstimator(Estimator);

#[pymethods]
impl PyEstimator {
    /// `cover` is the share of calls whose usage does not exceed the estimate.
    #[new]
    #[pyo3(signature = (*, cover=0.9))]
    fn new(py: Python<'_>, cover: f64) -> PyResult<PyEstimator> {
        if !(0.001..=1.0).contains(&cover) {
            return Err(invalid(py, format!("cover is {cover}, but must be 0.001 to 1")));
        }
        // Between 1 and 1000 by the check above.
        Ok(PyEstimator(Estimator::new().covering((cover * 1_000.0).round() as u16)))
    }

    /// Estimates a request in the format of OpenAI, Anthropic or Gemini: its body as bytes or text, or what its JSON is made of.
    fn estimate(&self, request: &Bound<'_, PyAny>) -> PyResult<PyEstimate> {
        let body = body_of(request)?;
        Ok(PyEstimate(request.py().detach(|| self.0.estimate_body(&body))))
    }

    /// Learns what an estimated request has used.
    fn learn(&self, estimate: &Bound<'_, PyEstimate>, used: &Bound<'_, PyTokens>) {
        let used = used.get();
        self.0.learn(&estimate.get().0, Tokens::new(used.input, used.output));
    }

    fn __repr__(&self) -> String {
        let accuracy = self.0.accuracy();
        format!("<Estimator calls={}>", accuracy.calls)
    }
}

/// Estimates the tokens of a request, before it is sent, by counting characters. An `Estimator` learns, too.
///
/// ```python
/// import tollgate as tg
///
/// request = {"model": "m", "messages": [{"role": "user", "content": "How far is it?"}], "max_tokens": 50}
/// assert tg.estimate_tokens(request).input == 11
/// ```
#[pyfunction]
pub(crate) fn estimate_tokens(request: &Bound<'_, PyAny>) -> PyResult<PyEstimate> {
    let body = body_of(request)?;
    Ok(PyEstimate(request.py().detach(|| Estimator::new().estimate_body(&body))))
}

/// Returns the body of a request.
fn body_of(request: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(body) = request.cast::<PyBytes>() {
        return Ok(body.as_bytes().to_vec());
    }
    if let Ok(body) = request.cast::<PyString>() {
        return Ok(body.to_string_lossy().into_owned().into_bytes());
    }
    let py = request.py();
    let text = py.import("json")?.call_method1("dumps", (request,)).map_err(|error| {
        invalid(py, format!("a request is bytes, a text or what JSON is made of: {}", error.value(py)))
    })?;
    Ok(text.extract::<String>()?.into_bytes())
}

//! One call of a batch, and the reply to it.

use std::time::Duration;

use pyo3::prelude::*;
use serde::{Serialize, Serializer};
use serde_json::Value;
use tokio::sync::oneshot;
use tollgate_batch::{CallReply, ItemAttempt, TokenUsage};
use tollgate_provider::{Failure, FatalKind, Hint, read_failure};
use tollgate_store::Mutex;

use crate::amount::seconds;
use crate::error::invalid;
use crate::provider::{hint_of, wall_time};

/// What a call returned: the object, and the same as JSON if there is a journal.
pub(crate) struct BatchOutput {
    pub(super) value: Py<PyAny>,
    json: Option<Value>,
}

impl Serialize for BatchOutput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// A call that a task has to make. The first reply counts.
#[pyclass(frozen, name = "BatchCall", module = "tollgate._core")]
pub(crate) struct BatchCall {
    attempt: ItemAttempt<Py<PyAny>>,
    reply: Mutex<Option<oneshot::Sender<CallReply<BatchOutput>>>>,
}

impl BatchCall {
    pub(super) fn new(
        attempt: ItemAttempt<Py<PyAny>>,
        reply: oneshot::Sender<CallReply<BatchOutput>>,
    ) -> BatchCall {
        BatchCall { attempt, reply: Mutex::new(Some(reply)) }
    }

    fn answer(&self, reply: CallReply<BatchOutput>) -> bool {
        self.reply.lock().take().is_some_and(|sender| sender.send(reply).is_ok())
    }
}

#[pymethods]
impl BatchCall {
    #[getter]
    fn id(&self) -> &str {
        self.attempt.id()
    }

    #[getter]
    fn payload(&self, py: Python<'_>) -> Py<PyAny> {
        self.attempt.payload().clone_ref(py)
    }

    #[getter]
    fn scope(&self) -> &str {
        self.attempt.scope()
    }

    #[getter]
    fn attempt(&self) -> u32 {
        self.attempt.attempt()
    }

    #[getter]
    fn number(&self) -> u32 {
        self.attempt.number()
    }

    /// Ends the call with an output, also as JSON if there is a journal. Returns false if the call was aborted meanwhile.
    fn done(
        &self,
        py: Python<'_>,
        value: Py<PyAny>,
        json: Option<&str>,
        tokens: Option<u64>,
        headers: Vec<(String, String)>,
    ) -> PyResult<bool> {
        let json = json.map(serde_json::from_str).transpose().map_err(|error| {
            invalid(py, format!("the output of item {:?} is not JSON: {error}", self.id()))
        })?;
        let reply = CallReply::done(BatchOutput { value, json }, hint_of(200, &headers, b"", wall_time()));
        Ok(self.answer(match tokens {
            Some(tokens) => reply.usage(TokenUsage::Known(tokens)),
            None => reply,
        }))
    }

    /// Ends the call with an output that is not usable.
    fn invalid(&self, why: String, tokens: Option<u64>) -> bool {
        let reply = CallReply::invalid(why, Hint::ok());
        self.answer(match tokens {
            Some(tokens) => reply.usage(TokenUsage::Known(tokens)),
            None => reply,
        })
    }

    /// Ends the call with a reply that was an error.
    fn refused(&self, status: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> bool {
        self.answer(CallReply::refused(hint_of(status, &headers, &body, wall_time())))
    }

    /// Ends the call with a failure: "throttled", "overloaded", "transient", "timeout", "connection" or "fatal".
    #[pyo3(signature = (kind, reason, retry_after=None))]
    fn failed(
        &self,
        py: Python<'_>,
        kind: &str,
        reason: String,
        retry_after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let advice: Option<Duration> = match retry_after {
            Some(wait) => seconds("retry_after", wait)?,
            None => None,
        };
        let hint = match kind {
            "throttled" => Hint::throttled(advice),
            "overloaded" => Hint::overloaded(advice),
            "transient" => Hint::transient(),
            "timeout" => read_failure(Failure::Timeout),
            "connection" => read_failure(Failure::Connection),
            "fatal" => Hint::fatal(FatalKind::Request),
            _ => return Err(invalid(py, format!("{kind:?} is no kind of failure"))),
        };
        Ok(self.answer(CallReply::refused(hint.with_reason(reason))))
    }

    fn __repr__(&self) -> String {
        format!("<BatchCall {:?} attempt={}>", self.id(), self.attempt.attempt())
    }
}

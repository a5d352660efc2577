//! Replies that arrive in pieces.

use pyo3::prelude::*;
use tollgate_store::Mutex;

use super::hint::{PyHint, hint_of, pairs_of, status_of, wall_time};

/// The most that is kept of a body. What is longer says nothing about its call that headers do not.
const KEPT_MAX: usize = 32 << 20;

/// The last events of a stream, by their names. The data of each follows it.
const LAST_EVENTS: [&[u8]; 4] =
    [b"message_stop", b"response.completed", b"response.failed", b"response.incomplete"];

/// Reads a reply of an LLM provider while it arrives, and keeps only what is about the call: of a stream of server-sent events, the
/// usage and errors.
///
/// ```python
/// import tollgate as tg
///
/// reader = tg.ReplyReader(200, [("Content-Type", "text/event-stream")])
/// reader.feed(b'data: {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}\n\ndata: [DONE]\n\n')
/// assert reader.is_complete and reader.hint().usage.total == 10
/// ```
#[pyclass(frozen, name = "ReplyReader", module = "tollgate")]
pub(crate) struct ReplyReader {
    status: u16,
    headers: Vec<(String, String)>,
    body: Mutex<KeptBody>,
}

/// What is kept of a body.
struct KeptBody {
    is_stream: bool,
    kept: Vec<u8>,
    /// The line of a stream whose end has not arrived.
    line: Vec<u8>,
    /// Whether more arrived than is kept.
    is_cut: bool,
    /// Whether the data that follows is the last.
    at_last: bool,
    is_complete: bool,
}

impl KeptBody {
    fn add(&mut self, piece: &[u8]) {
        if !self.is_stream {
            return if self.has_room(piece) { self.kept.extend_from_slice(piece) } else { self.cut() };
        }
        let mut lines = piece.split(|&byte| byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            if self.has_room(part) {
                self.line.extend_from_slice(part);
            } else {
                self.cut();
            }
            if lines.peek().is_some() {
                let line = std::mem::take(&mut self.line);
                self.end_line(line.trim_ascii_end());
            }
        }
    }

    fn has_room(&self, piece: &[u8]) -> bool {
        !self.is_cut && self.kept.len() + self.line.len() + piece.len() <= KEPT_MAX
    }

    fn cut(&mut self) {
        (self.kept, self.line, self.is_cut) = (Vec::new(), Vec::new(), true);
    }

    fn end_line(&mut self, line: &[u8]) {
        if let Some(name) = line.strip_prefix(b"event:") {
            self.at_last = LAST_EVENTS.contains(&name.trim_ascii());
        }
        let Some(data) = line.strip_prefix(b"data:") else { return };
        if contains(data, b"\"usage") || contains(data, b"\"error") {
            self.kept.extend_from_slice(line);
            self.kept.push(b'\n');
        }
        self.is_complete |= self.at_last || data.trim_ascii() == b"[DONE]";
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

#[pymethods]
impl ReplyReader {
    #[new]
    fn new(status: &Bound<'_, PyAny>, headers: &Bound<'_, PyAny>) -> PyResult<ReplyReader> {
        let (status, headers) = (status_of(status)?, pairs_of(headers)?);
        let is_stream = headers
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("content-type") && value.contains("event-stream"));
        let body = KeptBody {
            is_stream,
            kept: Vec::new(),
            line: Vec::new(),
            is_cut: false,
            at_last: false,
            is_complete: false,
        };
        Ok(ReplyReader { status, headers, body: Mutex::new(body) })
    }

    /// Adds the next piece of the body, after its content encoding is undone.
    fn feed(&self, piece: &[u8]) {
        self.body.lock().add(piece);
    }

    /// Whether the last event of a stream has arrived.
    #[getter]
    fn is_complete(&self) -> bool {
        self.body.lock().is_complete
    }

    /// Returns what the reply means, as far as it has arrived.
    fn hint(&self, py: Python<'_>) -> PyResult<PyHint> {
        let now = wall_time();
        let hint = py.detach(|| {
            let body = self.body.lock();
            // The last line of a stream may have no end.
            let whole = [&body.kept[..], &body.line].concat();
            drop(body);
            hint_of(self.status, &self.headers, &whole, now)
        });
        PyHint::of(py, hint, now)
    }

    fn __repr__(&self) -> String {
        let body = self.body.lock();
        format!("<ReplyReader {} kept={}>", self.status, body.kept.len() + body.line.len())
    }
}

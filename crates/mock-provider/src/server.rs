//! The HTTP server of a provider.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tollgate::{Span, Tick};

use crate::answer;
use crate::error_responses::{CallError, MockReply};
use crate::provider::{AdmittedCall, MockRefusal, ProviderState};
use crate::route::{Endpoint, MockRoute};
use crate::stats::{CallEnd, OpenCall};
use crate::{MockProvider, OutageKind};

/// The maximum size of a request body.
const BODY_BYTES_MAX: usize = 8 << 20;

/// The maximum number of connections. Further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 4_096;

/// How long a call that hangs is held, by the provider's clock. Then its connection is reset.
const HANG_MAX: Duration = Duration::from_secs(60 * 60);

const NO_PATH: &str = "the path does not exist";

/// The pause after a failed accept: the process may be out of file descriptors until clients
/// disconnect.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl MockProvider {
    /// Serves HTTP/1.1 on a listener until the future is dropped. It requires a tokio runtime with
    /// I/O and time. Any client that reaches the listener can call, so bind it to a loopback
    /// address.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes all connections. Calls in progress release their concurrency, and
    /// stay charged for the rest.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener cannot be used, or fails permanently.
    pub async fn serve(&self, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= CONNECTIONS_MAX {
                connections.join_next().await;
            }
            match listener.accept().await {
                Ok((stream, _)) => {
                    while connections.try_join_next().is_some() {}
                    connections.spawn(serve_connection(self.state.clone(), stream));
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

impl MockProvider {
    /// Answers a `POST` in this process, as [`serve`](MockProvider::serve) would: with the same limits, latency and
    /// outages. Returns `None` if the connection would be reset. It needs no runtime.
    ///
    /// ```
    /// use tollgate::store::Reply;
    /// use tollgate_mock_provider::MockProvider;
    ///
    /// let provider = MockProvider::builder().requests_per_second(1).build()?;
    /// let body = br#"{"model": "gpt-4", "messages": []}"#;
    /// let status = || Some(Reply::later(provider.call("/v1/chat/completions", "key", body)).wait()?.status);
    /// assert_eq!([status(), status()], [Some(200), Some(429)]);
    /// # Ok::<(), tollgate_mock_provider::BuildError>(())
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the concurrency of the call, which stays charged for the rest.
    pub async fn call(&self, path: &str, key: &str, body: &[u8]) -> Option<MockReply> {
        let state = &*self.state;
        let MockRoute::Call(endpoint) = MockRoute::of(&Method::POST, path) else {
            return Some(state.settings.style.refused(CallError::Path, NO_PATH));
        };
        let (number, call) = state.begin(key);
        handle_body(state, endpoint, key, (number, call), body).await.ok()
    }
}

/// Serves one connection. Errors only concern the client.
async fn serve_connection(state: Arc<ProviderState>, stream: TcpStream) {
    let read_timeout = state.settings.read_timeout;
    let service = service_fn(move |request| {
        let state = state.clone();
        Box::pin(async move { respond(&state, request).await })
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(read_timeout);
    let mut connection = http.serve_connection(TokioIo::new(stream), service);
    let ended = std::future::poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let stream = connection.into_parts().io.into_inner();
    if ended.is_err_and(|error| error.is_user()) {
        // An outage resets the connection: nothing more is sent, not even a FIN.
        let _ = stream.set_zero_linger();
    }
}

/// Makes hyper end the connection, which is then reset.
#[derive(Debug, thiserror::Error)]
#[error("the connection is reset")]
struct ResetNow;

async fn respond(
    state: &ProviderState,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, ResetNow> {
    let reply = match MockRoute::of(request.method(), request.uri().path()) {
        MockRoute::Health => MockReply::text(200, "ok\n"),
        MockRoute::Stats => match serde_json::to_string(&state.stats()) {
            Ok(stats) => MockReply { body: stats, ..MockReply::json(200, &serde_json::Value::Null) },
            Err(error) => MockReply::text(500, &error.to_string()),
        },
        MockRoute::Unknown => state.settings.style.refused(CallError::Path, NO_PATH),
        MockRoute::WrongMethod => {
            state.settings.style.refused(CallError::Method, "the path does not support this method")
        }
        MockRoute::Call(endpoint) => handle_call(state, endpoint, request).await?,
    };
    Ok(response(reply, state.clock().now()))
}

/// Handles a call from its arrival to its answer.
async fn handle_call(
    state: &ProviderState,
    endpoint: Endpoint,
    request: Request<Incoming>,
) -> Result<MockReply, ResetNow> {
    let key = key_of(request.headers());
    let (number, call) = state.begin(&key);
    match body_of(state, request).await {
        Ok(body) => handle_body(state, endpoint, &key, (number, call), &body).await,
        Err(refused) => {
            call.end(CallEnd::Refused);
            Ok(refused)
        }
    }
}

/// Handles a call whose body has arrived.
async fn handle_body(
    state: &ProviderState,
    endpoint: Endpoint,
    key: &str,
    (number, call): (u64, OpenCall<'_>),
    body: &[u8],
) -> Result<MockReply, ResetNow> {
    let style = state.settings.style;
    let request = answer::MockRequest::read(endpoint, body, state.settings.seed);
    // An invalid request is only reported to a client with a valid key, when there is no outage.
    if let Some(refusal) = state.precheck(number, key) {
        return match (&refusal, &request) {
            (MockRefusal::Outage(OutageKind::Midway), Ok(request)) if request.is_stream() => {
                call.end(CallEnd::Failed);
                Ok(request.broken(style))
            }
            _ => refused(state, call, refusal).await,
        };
    }
    match request {
        Ok(request) => answer_call(state, call, number, &request).await,
        Err(why) => {
            call.end(CallEnd::Refused);
            Ok(style.refused(CallError::Request, &why))
        }
    }
}

async fn answer_call(
    state: &ProviderState,
    mut call: OpenCall<'_>,
    number: u64,
    request: &answer::MockRequest,
) -> Result<MockReply, ResetNow> {
    let usage = request.usage();
    let AdmittedCall { lease, at } = match state.admit(number, usage) {
        Ok(admitted) => admitted,
        Err(refusal) => return refused(state, call, refusal).await,
    };
    call.answering();
    state.clock().sleep_until(at).await;
    let reply = with_limit_headers(state, request.answer(usage));
    // The count is updated before the lease is dropped, because the next call that is admitted must
    // not see this one still counted.
    call.end(CallEnd::Ok { tokens: usage.total });
    drop(lease);
    Ok(reply)
}

/// Returns the reply of a call that is not answered.
async fn refused(
    state: &ProviderState,
    call: OpenCall<'_>,
    refusal: MockRefusal,
) -> Result<MockReply, ResetNow> {
    let style = state.settings.style;
    let (outcome, reply) = match refusal {
        MockRefusal::Denied(denial) => {
            (CallEnd::Rejected, with_limit_headers(state, style.throttled(&denial, state.settings.advice)))
        }
        MockRefusal::TooLarge { asked, limit } => (CallEnd::Refused, style.too_large(asked, limit)),
        MockRefusal::Exhausted => (CallEnd::Refused, style.exhausted()),
        MockRefusal::WrongKey => {
            (CallEnd::Refused, style.refused(CallError::Key, "Incorrect API key provided."))
        }
        MockRefusal::Outage(OutageKind::Status(429)) => (CallEnd::Rejected, style.busy()),
        MockRefusal::Outage(OutageKind::Status(status)) => (CallEnd::Failed, style.failed(status)),
        MockRefusal::Outage(OutageKind::Midway) => (CallEnd::Failed, style.failed(503)),
        MockRefusal::Outage(OutageKind::Reset) => {
            call.end(CallEnd::Failed);
            return Err(ResetNow);
        }
        MockRefusal::Outage(OutageKind::Hang) => {
            let at = state.clock().now() + Span::covering(HANG_MAX);
            call.end(CallEnd::Failed);
            state.clock().sleep_until(at).await;
            return Err(ResetNow);
        }
    };
    call.end(outcome);
    Ok(reply)
}

fn with_limit_headers(state: &ProviderState, mut reply: MockReply) -> MockReply {
    if state.settings.headers {
        reply.headers.extend(state.settings.style.limit_headers(&state.limits(), state.clock().now()));
    }
    reply
}

/// Returns the key of a call from the headers of any provider; empty if there is none.
fn key_of(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").map(|value| value.strip_prefix("Bearer ").unwrap_or(value));
    let key = bearer.or(text("x-api-key")).or(text("api-key")).or(text("x-goog-api-key"));
    key.unwrap_or_default().trim().to_owned()
}

async fn body_of(state: &ProviderState, request: Request<Incoming>) -> Result<Bytes, MockReply> {
    let style = state.settings.style;
    let too_long =
        || style.refused(CallError::BodyTooLong, &format!("a body has at most {BODY_BYTES_MAX} bytes"));
    if request.body().size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_long());
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    match tokio::time::timeout(state.settings.read_timeout, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(_)) => Err(style.refused(CallError::Request, "the body is incomplete")),
        Err(_) => Err(style.refused(CallError::BodyTooSlow, "the body did not arrive in time")),
    }
}

fn response(reply: MockReply, now: Tick) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    // The date comes from the provider's clock, like all other dates.
    if let Some(date) = http_date(now).and_then(|date| HeaderValue::try_from(date).ok()) {
        headers.insert("date", date);
    }
    response
}

fn http_date(now: Tick) -> Option<String> {
    let stamp = Timestamp::from_second(i64::try_from(now.as_micros() / 1_000_000).ok()?).ok()?;
    DateTimePrinter::new().timestamp_to_rfc9110_string(&stamp).ok()
}

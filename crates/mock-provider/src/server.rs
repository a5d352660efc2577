//! The provider on a port.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tollgate::{Span, Tick};

use crate::answer;
use crate::error_responses::{MockReply, Wrong};
use crate::provider::{Admitted, MockRefusal, ProviderState};
use crate::route::{Endpoint, MockRoute};
use crate::stats::{CallEnd, OpenCall};
use crate::{MockProvider, OutageKind};

/// How large a request may be.
const BODY_BYTES_MAX: usize = 8 << 20;

/// How many connections there may be at once. More wait to be accepted.
const CONNECTIONS_MAX: usize = 4_096;

/// How long a call that is never answered is kept, by the provider's clock. Then its connection is reset.
const HANG_MAX: Duration = Duration::from_secs(60 * 60);

/// The pause after accepting failed: files may have run out, and clients that leave give them back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl MockProvider {
    /// Answers requests on a listener, by HTTP/1.1, until it is dropped. To be called in a runtime of tokio with I/O and
    /// time. There are no accounts: any client that reaches the listener can call, so bind it to a loopback address.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends all connections. Calls that were being answered give back what they hold of concurrency, and
    /// stay charged for the rest.
    ///
    /// # Errors
    ///
    /// If the listener cannot be used, or fails for good.
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
                    connections.spawn(converse(self.desk.clone(), stream));
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

/// One connection. That it breaks is the business of its other end.
async fn converse(desk: Arc<ProviderState>, stream: TcpStream) {
    let patience = desk.settings.patience;
    let service = service_fn(move |request| {
        let desk = desk.clone();
        Box::pin(async move { respond(&desk, request).await })
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience);
    let mut connection = http.serve_connection(TokioIo::new(stream), service);
    let ended = std::future::poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let stream = connection.into_parts().io.into_inner();
    if ended.is_err_and(|error| error.is_user()) {
        // A call met an outage that resets: nothing more is sent, not even that this is the end.
        let _ = stream.set_zero_linger();
    }
}

/// That a connection is to be reset.
#[derive(Debug, thiserror::Error)]
#[error("the connection is reset")]
struct ResetNow;

async fn respond(
    desk: &ProviderState,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, ResetNow> {
    let reply = match MockRoute::of(request.method(), request.uri().path()) {
        MockRoute::Health => MockReply::text(200, "ok\n"),
        MockRoute::Stats => match serde_json::to_string(&desk.stats()) {
            Ok(stats) => MockReply { body: stats, ..MockReply::json(200, &serde_json::Value::Null) },
            Err(error) => MockReply::text(500, &error.to_string()),
        },
        MockRoute::Unknown => desk.settings.style.refused(Wrong::Path, "there is no such path"),
        MockRoute::WrongMethod => {
            desk.settings.style.refused(Wrong::Method, "there is no such method for this path")
        }
        MockRoute::Call(endpoint) => called(desk, endpoint, request).await?,
    };
    Ok(response(reply, desk.clock().now()))
}

/// A call to the provider, from its coming in to its answer.
async fn called(
    desk: &ProviderState,
    endpoint: Endpoint,
    request: Request<Incoming>,
) -> Result<MockReply, ResetNow> {
    let key = key_of(request.headers());
    let (number, call) = desk.begin(&key);
    let style = desk.settings.style;
    let body = match body_of(desk, request).await {
        Ok(body) => body,
        Err(refused) => {
            call.end(CallEnd::Refused);
            return Ok(refused);
        }
    };
    let request = answer::MockRequest::read(endpoint, &body, desk.settings.seed);
    // What is wrong with a request is reported to clients that may call, when the provider is there.
    if let Some(refusal) = desk.turned_away(number, &key) {
        return match (&refusal, &request) {
            (MockRefusal::Outage(OutageKind::Midway), Ok(request)) if request.is_stream() => {
                call.end(CallEnd::Failed);
                Ok(request.broken(style))
            }
            _ => refused(desk, call, refusal).await,
        };
    }
    match request {
        Ok(request) => answered(desk, call, number, &request).await,
        Err(why) => {
            call.end(CallEnd::Refused);
            Ok(style.refused(Wrong::Request, &why))
        }
    }
}

async fn answered(
    desk: &ProviderState,
    mut call: OpenCall<'_>,
    number: u64,
    request: &answer::MockRequest,
) -> Result<MockReply, ResetNow> {
    let usage = request.usage();
    let Admitted { lease, at } = match desk.admit(number, usage) {
        Ok(admitted) => admitted,
        Err(refusal) => return refused(desk, call, refusal).await,
    };
    call.answering();
    desk.clock().sleep_until(at).await;
    let reply = with_standing(desk, request.answer(usage));
    // In this order: who takes the place that becomes free must not find this call still counted.
    call.end(CallEnd::Ok { tokens: usage.total });
    drop(lease);
    Ok(reply)
}

/// What becomes of a call that is not answered.
async fn refused(
    desk: &ProviderState,
    call: OpenCall<'_>,
    refusal: MockRefusal,
) -> Result<MockReply, ResetNow> {
    let style = desk.settings.style;
    let (outcome, reply) = match refusal {
        MockRefusal::Denied(denial) => {
            (CallEnd::Rejected, with_standing(desk, style.throttled(&denial, desk.settings.advice)))
        }
        MockRefusal::TooLarge { asked, limit } => (CallEnd::Refused, style.too_large(asked, limit)),
        MockRefusal::Exhausted => (CallEnd::Refused, style.exhausted()),
        MockRefusal::WrongKey => (CallEnd::Refused, style.refused(Wrong::Key, "Incorrect API key provided.")),
        MockRefusal::Outage(OutageKind::Status(429)) => (CallEnd::Rejected, style.busy()),
        MockRefusal::Outage(OutageKind::Status(status)) => (CallEnd::Failed, style.failed(status)),
        MockRefusal::Outage(OutageKind::Midway) => (CallEnd::Failed, style.failed(503)),
        MockRefusal::Outage(OutageKind::Reset) => {
            call.end(CallEnd::Failed);
            return Err(ResetNow);
        }
        MockRefusal::Outage(OutageKind::Hang) => {
            let at = desk.clock().now() + Span::covering(HANG_MAX);
            call.end(CallEnd::Failed);
            desk.clock().sleep_until(at).await;
            return Err(ResetNow);
        }
    };
    call.end(outcome);
    Ok(reply)
}

fn with_standing(desk: &ProviderState, mut reply: MockReply) -> MockReply {
    if desk.settings.headers {
        reply.headers.extend(desk.settings.style.standing(&desk.standing(), desk.clock().now()));
    }
    reply
}

/// The key that a call comes with, wherever its provider has it; empty if it has none.
fn key_of(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").map(|value| value.strip_prefix("Bearer ").unwrap_or(value));
    let key = bearer.or(text("x-api-key")).or(text("api-key")).or(text("x-goog-api-key"));
    key.unwrap_or_default().trim().to_owned()
}

async fn body_of(desk: &ProviderState, request: Request<Incoming>) -> Result<Bytes, MockReply> {
    let style = desk.settings.style;
    let too_long =
        || style.refused(Wrong::BodyTooLong, &format!("a body has at most {BODY_BYTES_MAX} bytes"));
    if request.body().size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_long());
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    match tokio::time::timeout(desk.settings.patience, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(_)) => Err(style.refused(Wrong::Request, "the body is not complete")),
        Err(_) => Err(style.refused(Wrong::BodyTooSlow, "the body takes too long")),
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
    // The date goes by the provider's clock, as its other dates do.
    if let Some(date) = http_date(now).and_then(|date| HeaderValue::try_from(date).ok()) {
        headers.insert("date", date);
    }
    response
}

fn http_date(now: Tick) -> Option<String> {
    let stamp = Timestamp::from_second(i64::try_from(now.as_micros() / 1_000_000).ok()?).ok()?;
    DateTimePrinter::new().timestamp_to_rfc9110_string(&stamp).ok()
}

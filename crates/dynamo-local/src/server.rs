//! The engine on a port of this host, for programs that use HTTP.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, DATE, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::task::JoinSet;

use crate::Engine;
use crate::answer::HttpAnswer;
use crate::connector;

/// The maximum size of a request, which is that of the service.
const BODY_BYTES_MAX: usize = 16 << 20;

/// The timeout for the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of connections. Further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 1_000;

/// Serves HTTP/1.1 on a listener until the future is dropped. There is no authentication: any
/// client that reaches the listener can do everything, so bind it to a loopback address.
///
/// # Cancel safety
///
/// Dropping the future closes all connections. A request in progress may be executed.
///
/// # Errors
///
/// Returns an error if the listener fails.
///
/// # Examples
///
/// ```
/// use std::net::TcpListener;
/// use tollgate_dynamo_local::{Engine, serve};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # let _guard = runtime.enter();
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// println!("http://{}", listener.local_addr()?);
/// let server = serve(Engine::in_memory()?, listener);
/// // Await or spawn `server`; dropping it closes all connections.
/// # drop(server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn serve(engine: Engine, listener: TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        let (stream, _) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        let engine = engine.clone();
        connections.spawn(async move {
            let answer = service_fn(move |request| answer(engine.clone(), request));
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
            // A broken connection only concerns its client.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(engine: Engine, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET {
        let healthy = HttpAnswer { status: 200, body: "healthy".into(), error: None };
        return Ok(response(healthy, &engine.date()));
    }
    let target = request.headers().get("x-amz-target").and_then(|value| value.to_str().ok());
    let target = target.unwrap_or_default().to_owned();
    let answer = match Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await {
        Ok(body) => engine.answer(&target, &body.to_bytes()),
        Err(error) => HttpAnswer::refusal(413, "RequestTooLarge", &error.to_string()),
    };
    Ok(response(answer, &engine.date()))
}

fn response(answer: HttpAnswer, date: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(connector::CONTENT_TYPE));
    if let Ok(date) = HeaderValue::from_str(date) {
        headers.insert(DATE, date);
    }
    if let Some(kind) = answer.error.and_then(|kind| HeaderValue::try_from(kind).ok()) {
        headers.insert(HeaderName::from_static("x-amzn-errortype"), kind);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn send(port: u16, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let length = body.len();
        let request =
            format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn requests_are_answered_on_a_port() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let engine = Engine::in_memory().unwrap();
        engine.set_time(|| 1_700_000_000_000_000);
        let server = runtime.spawn(serve(engine.clone(), listener));
        assert!(send(port, "GET / HTTP/1.1", "").ends_with("healthy"));
        let target = |target: &str| format!("POST / HTTP/1.1\r\nx-amz-target: {target}");
        let tables = send(port, &target("DynamoDB_20120810.ListTables"), "{}");
        assert!(tables.starts_with("HTTP/1.1 200") && tables.contains(r#"{"TableNames":[]}"#), "{tables}");
        assert!(tables.contains("date: Tue, 14 Nov 2023 22:13:20 GMT"), "{tables}");
        let streams = send(port, &target("DynamoDBStreams_20120810.ListStreams"), "{}");
        assert!(streams.contains(r#""Streams":[]"#), "{streams}");
        let missing = send(port, &target("DynamoDB_20120810.DescribeTable"), r#"{"TableName":"none"}"#);
        assert!(missing.starts_with("HTTP/1.1 400"), "{missing}");
        assert!(missing.contains("x-amzn-errortype: ResourceNotFoundException"), "{missing}");
        assert_eq!(engine.calls().of("ListTables"), 1);
        server.abort();
    }
}

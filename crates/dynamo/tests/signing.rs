//! A service that accepts no signature that is more than five minutes off.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::DateTime;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::date_time::Format;
use tollgate_dynamo::DynamoStore;
use tollgate_dynamo_local::Engine;
use tollgate_store::Clock;

const ACCEPTED_SECS: i64 = 300;

/// A client in front of an engine that is ahead by so many seconds.
#[derive(Clone, Debug)]
struct Strict {
    client: SharedHttpClient,
    ahead_secs: i64,
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    now_secs: i64,
}

impl HttpClient for Strict {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        parts: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let now_secs = (Clock::system().now().as_micros() / 1_000_000) as i64 + self.ahead_secs;
        SharedHttpConnector::new(Connector { inner: self.client.http_connector(settings, parts), now_secs })
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let signed = request.headers().get("x-amz-date").map(signed_secs).expect("requests are signed");
        if (signed - self.now_secs).abs() <= ACCEPTED_SECS {
            return self.inner.call(request);
        }
        let body = r#"{"__type":"com.amazon.coral.service#InvalidSignatureException",
            "message":"Signature expired: 1 is now earlier than 2"}"#;
        let status = StatusCode::try_from(400).expect("it is one");
        let mut refused = HttpResponse::new(status, SdkBody::from(body));
        let date = DateTime::from_secs(self.now_secs).fmt(Format::HttpDate).expect("it has a date");
        refused.headers_mut().insert("date", date);
        HttpConnectorFuture::ready(Ok(refused))
    }
}

/// `20260131T235959Z`, in seconds.
fn signed_secs(date: &str) -> i64 {
    let (day, time) = date.split_at(9);
    let day = format!("{}-{}-{}T", &day[..4], &day[4..6], &day[6..8]);
    let time = format!("{}:{}:{}Z", &time[..2], &time[2..4], &time[4..6]);
    DateTime::from_str(&(day + &time), Format::DateTime).expect("it is a date").secs()
}

#[test]
fn a_host_that_is_an_hour_off_is_let_in_at_its_second_try() {
    for ahead_secs in [-3_600, 3_600] {
        let engine = Engine::in_memory().expect("there is memory for an engine");
        let ahead = ahead_secs * 1_000_000;
        engine.set_time(move || Clock::system().now().as_micros().saturating_add_signed(ahead));
        let strict = Strict { client: engine.http_client(), ahead_secs };
        let store = DynamoStore::builder("limits").http_client(strict).create_table(true).build().wait();
        let counts = store.expect("it is let in").error_counts();
        assert_eq!((counts.skewed, counts.retries), (1, 1), "{ahead_secs}");
    }
}

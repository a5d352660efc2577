//! Another implementation of the service, over HTTP, for a second opinion: where the environment says that it is.

use aws_smithy_http_client::Builder;
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
use tollgate_store::Clock;

/// The variable that says where it is, such as `http://127.0.0.1:4566`.
const VARIABLE: &str = "TOLLGATE_TEST_DYNAMODB";

/// Where it is, if it is to be used.
pub(crate) fn endpoint() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|endpoint| !endpoint.is_empty())
}

/// How many traces to run: few, where each call goes over a socket to a slow program.
pub(crate) fn traces(here: u64) -> u64 {
    if endpoint().is_some() { here.div_ceil(8) } else { here }
}

/// A client over HTTP, for which it is as late as a clock says: tests run on a manual clock, and the store goes by the
/// time of the service.
pub(crate) fn client(clock: Clock) -> SharedHttpClient {
    SharedHttpClient::new(Dated { client: Builder::new().build_http(), clock })
}

#[derive(Debug)]
struct Dated<T> {
    client: T,
    clock: Clock,
}

impl HttpClient for Dated<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let client = self.client.http_connector(settings, components);
        SharedHttpConnector::new(Dated { client, clock: self.clock.clone() })
    }
}

impl HttpConnector for Dated<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        // ministack 1.5 deletes by its own clock, every minute, what has expired: records of usage that are old by its
        // time and new by that of the test. So it never gets the request to expire anything; whether it did is the
        // store's business.
        if request.headers().get("x-amz-target") == Some("DynamoDB_20120810.UpdateTimeToLive") {
            let answer = r#"{"TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}"#;
            let status = StatusCode::try_from(200).expect("it is a status");
            return HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(answer))));
        }
        let (answer, clock) = (self.client.call(request), self.clock.clone());
        HttpConnectorFuture::new(async move {
            let mut answer = answer.await?;
            let secs = i64::try_from(clock.now().as_micros() / 1_000_000).unwrap_or(i64::MAX);
            if let Ok(date) = DateTime::from_secs(secs).fmt(Format::HttpDate) {
                answer.headers_mut().insert("date", date);
            }
            Ok(answer)
        })
    }
}

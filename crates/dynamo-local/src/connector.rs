//! The engine as an HTTP client of the SDK.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;

use crate::Engine;
use crate::answer::HttpAnswer;

pub(crate) const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// An engine that answers requests.
///
/// It answers on the calling thread: an update takes about 80 us, and a hop to another thread would
/// add 30.
#[derive(Clone, Debug)]
pub(crate) struct Embedded(pub(crate) Engine);

impl HttpClient for Embedded {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Embedded {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Embedded(engine) = self;
        let answer = engine.answer(target_of(&request), request.body().bytes().unwrap_or_default());
        HttpConnectorFuture::ready(response(answer, Some(engine.date())))
    }
}

/// Returns the target of a request.
pub(crate) fn target_of(request: &HttpRequest) -> &str {
    request.headers().get("x-amz-target").unwrap_or_default()
}

/// Converts an answer to a response of the SDK.
pub(crate) fn response(answer: HttpAnswer, date: Option<String>) -> Result<HttpResponse, ConnectorError> {
    let status =
        StatusCode::try_from(answer.status).map_err(|error| ConnectorError::other(error.into(), None))?;
    let mut response = HttpResponse::new(status, SdkBody::from(answer.body));
    let headers = response.headers_mut();
    headers.insert("content-type", CONTENT_TYPE);
    if let Some(kind) = answer.error {
        headers.insert("x-amzn-errortype", kind);
    }
    if let Some(date) = date {
        headers.insert("date", date);
    }
    Ok(response)
}

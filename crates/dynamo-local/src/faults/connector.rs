//! A connector that forwards to another client, and injects faults.

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use parking_lot::Mutex;

use super::fault::can_be_stale;
use super::plan::FaultSchedule;
use super::{CallFault, refusal, unprocessed};
use crate::answer::HttpAnswer;
use crate::connector::{response, target_of};
use crate::operation;

#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) inner: SharedHttpConnector,
    pub(crate) plan: Arc<Mutex<FaultSchedule>>,
}

impl HttpConnector for Faulty {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let operation = operation::name_in(target_of(&request)).to_owned();
        let body = request.body().bytes().unwrap_or_default().to_vec();
        let drawn = self.plan.lock().draw(&operation, &body);
        let Some((fault, number)) = drawn else { return self.pass(request, &operation, body) };
        if let Some(answer) = refusal::refusal(fault, &operation, &body, number) {
            return HttpConnectorFuture::ready(response(answer, None));
        }
        match fault {
            CallFault::LostBefore => HttpConnectorFuture::ready(Err(lost(0))),
            CallFault::LostAfter => {
                let call = self.inner.call(request);
                HttpConnectorFuture::new(async move { call.await.and(Err(lost(number))) })
            }
            CallFault::Slow(long) => {
                let inner = self.inner.clone();
                HttpConnectorFuture::new(async move {
                    tokio::time::sleep(long).await;
                    inner.call(request).await
                })
            }
            CallFault::Unprocessed => self.partially(request, operation, &body),
            CallFault::StaleRead => match self.plan.lock().stale(&body) {
                Some(answer) => HttpConnectorFuture::ready(response(answer, None)),
                None => self.pass(request, &operation, body),
            },
            _ => self.inner.call(request),
        }
    }
}

impl Faulty {
    /// Forwards a request without a fault; stores the answer of a read if a later read may return
    /// it again.
    fn pass(&self, request: HttpRequest, operation: &str, body: Vec<u8>) -> HttpConnectorFuture {
        let call = self.inner.call(request);
        if !can_be_stale(operation, &body) || !self.plan.lock().may_be_stale() {
            return call;
        }
        let plan = Arc::clone(&self.plan);
        HttpConnectorFuture::new(async move {
            let answered = call.await?;
            if let Some(answer) = text_of(&answered).filter(|_| answered.status().is_success()) {
                plan.lock().remember(body, HttpAnswer::ok(answer));
            }
            Ok(answered)
        })
    }

    /// Executes a part of a batch.
    fn partially(&self, mut request: HttpRequest, operation: String, body: &[u8]) -> HttpConnectorFuture {
        let Some(split) = unprocessed::split(body) else { return self.inner.call(request) };
        let Some(done) = split.done.clone() else {
            return HttpConnectorFuture::ready(response(
                HttpAnswer::ok(split.answer(&operation, "{}")),
                None,
            ));
        };
        request.headers_mut().insert("content-length", done.len().to_string());
        *request.body_mut() = SdkBody::from(done);
        let call = self.inner.call(request);
        HttpConnectorFuture::new(async move {
            let mut answered: HttpResponse = call.await?;
            if let Some(text) = text_of(&answered).filter(|_| answered.status().is_success()) {
                let text = split.answer(&operation, &text);
                answered.headers_mut().insert("content-length", text.len().to_string());
                *answered.body_mut() = SdkBody::from(text);
            }
            Ok(answered)
        })
    }
}

/// Returns the body of an answer, if it is in memory.
fn text_of(answered: &HttpResponse) -> Option<String> {
    answered.body().bytes().and_then(|bytes| String::from_utf8(bytes.to_vec()).ok())
}

fn lost(number: u64) -> ConnectorError {
    if number.is_multiple_of(2) {
        ConnectorError::io("connection reset by peer".into())
    } else {
        ConnectorError::timeout("no answer in time".into())
    }
}

//! Calls on their way to the engine, as IAM sees them.

use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use serde_json::Value;

use crate::TABLE;
use crate::policy::Request;

/// A client for the SDK that records what is asked of another one.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    client: SharedHttpClient,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Recorder {
    pub(crate) fn new(client: SharedHttpClient) -> Recorder {
        Recorder { client, requests: Arc::default() }
    }

    /// What was asked since the last time.
    pub(crate) fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock().expect("nobody panics with it"))
    }
}

impl HttpClient for Recorder {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.client.http_connector(settings, components);
        SharedHttpConnector::new(Recording { inner, requests: Arc::clone(&self.requests) })
    }
}

#[derive(Debug)]
struct Recording {
    inner: SharedHttpConnector,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl HttpConnector for Recording {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let body: Value =
            serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        self.requests.lock().expect("nobody panics with it").extend(requests(operation, &body));
        self.inner.call(request)
    }
}

/// What a call asks for. A transaction is no action: each of its items is one.
fn requests(operation: &str, body: &Value) -> Vec<Request> {
    let one = |action: &str, keys: Vec<String>| vec![of_table(action, keys)];
    match operation {
        "TransactWriteItems" | "TransactGetItems" => {
            let items = body["TransactItems"].as_array().expect("a transaction has items");
            items.iter().flat_map(|item| item.as_object().expect("it is one").iter().map(part)).collect()
        }
        "GetItem" | "UpdateItem" | "DeleteItem" => one(operation, vec![key(&body["Key"])]),
        "PutItem" => one(operation, vec![key(&body["Item"])]),
        "BatchGetItem" => {
            let asked = body["RequestItems"].as_object().expect("a batch has tables").values();
            let keys = asked.flat_map(|table| table["Keys"].as_array().expect("it has keys").iter().map(key));
            one(operation, keys.collect())
        }
        "Query" => vec![query(body)],
        "DescribeTable" | "DescribeTimeToLive" | "DescribeContinuousBackups" => one(operation, Vec::new()),
        other => panic!("{other} is unknown to the recorder"),
    }
}

fn part((kind, item): (&String, &Value)) -> Request {
    match kind.as_str() {
        "Put" => of_table("PutItem", vec![key(&item["Item"])]),
        "Get" | "Update" | "Delete" => of_table(&format!("{kind}Item"), vec![key(&item["Key"])]),
        "ConditionCheck" => of_table("ConditionCheckItem", vec![key(&item["Key"])]),
        other => panic!("{other} is unknown to the recorder"),
    }
}

fn of_table(action: &str, leading_keys: Vec<String>) -> Request {
    Request { action: format!("dynamodb:{action}"), resource: TABLE.into(), leading_keys }
}

/// The partition that is asked for stands first in the condition, as `#name = :value`.
fn query(body: &Value) -> Request {
    let condition = body["KeyConditionExpression"].as_str().expect("a query has a condition");
    let value = condition.split_whitespace().nth(2).expect("it compares");
    let leading = body["ExpressionAttributeValues"][value]["S"].as_str().expect("it is a text").to_owned();
    let resource = match body["IndexName"].as_str() {
        Some(index) => format!("{TABLE}/index/{index}"),
        None => TABLE.to_owned(),
    };
    Request { action: "dynamodb:Query".into(), resource, leading_keys: vec![leading] }
}

fn key(attributes: &Value) -> String {
    attributes["PK"]["S"].as_str().expect("an item has a partition").to_owned()
}

//! The table as a program sees it that is not ours: calls of the SDK, and what the original writes with them.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use tollgate_dynamo_local::Engine;

pub(crate) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(crate) fn number(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// A client of the SDK on the tables of an engine.
pub(crate) fn client(engine: &Engine) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .http_client(engine.http_client());
    Client::from_conf(config.build())
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("there are threads").block_on(future)
}

pub(crate) type Attributes = HashMap<String, AttributeValue>;

pub(crate) fn put(engine: &Engine, attributes: Vec<(&str, AttributeValue)>) {
    let item: Attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let put = client(engine).put_item().table_name("limits").set_item(Some(item));
    wait(put.send()).expect("it answers");
}

pub(crate) fn get(engine: &Engine, partition: &str, sort: &str) -> Option<Attributes> {
    let get = client(engine).get_item().table_name("limits").key("PK", text(partition)).key("SK", text(sort));
    wait(get.send()).expect("it answers").item
}

/// The number of an attribute.
pub(crate) fn number_of(item: &Attributes, name: &str) -> i64 {
    let text =
        item.get(name).and_then(|value| value.as_n().ok()).unwrap_or_else(|| panic!("no number {name}"));
    text.parse().unwrap_or_else(|_| panic!("{name} is {text}"))
}

/// The update with which a client of the original takes `amount` of a limit without reading: it adds to the credit and to
/// the count, and moves neither the time nor anything of ours. Whether it was admitted.
pub(crate) async fn take_fast(client: &Client, partition: &str, limit: &str, amount: i64) -> bool {
    let (credit, count) = (format!("b_{limit}_tk"), format!("b_{limit}_tc"));
    let update =
        client.update_item().table_name("limits").key("PK", text(partition)).key("SK", text("#STATE"));
    let update = update
        .update_expression("ADD #tk :less, #tc :more, b_wcu_tk :wless, b_wcu_tc :wmore")
        .condition_expression("attribute_exists(PK) AND #tk >= :need")
        .expression_attribute_names("#tk", credit)
        .expression_attribute_names("#tc", count)
        .expression_attribute_values(":less", number(-amount * 1_000))
        .expression_attribute_values(":more", number(amount * 1_000))
        .expression_attribute_values(":wless", number(0))
        .expression_attribute_values(":wmore", number(1_000))
        .expression_attribute_values(":need", number(amount * 1_000));
    match update.send().await {
        Ok(_) => true,
        Err(error) => {
            let refused =
                error.as_service_error().is_some_and(|why| why.is_conditional_check_failed_exception());
            assert!(refused, "{error:?}");
            false
        }
    }
}

type Other = Arc<dyn Fn(&str) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync>;

/// A client for the SDK that lets another program do something right before a request is answered, by its operation.
#[derive(Clone)]
pub(crate) struct Meanwhile {
    client: SharedHttpClient,
    other: Other,
}

impl Meanwhile {
    pub(crate) fn new<F>(
        client: SharedHttpClient,
        other: impl Fn(&str) -> Option<F> + Send + Sync + 'static,
    ) -> Meanwhile
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let other: Other = Arc::new(move |operation| other(operation).map(|it| Box::pin(it) as _));
        Meanwhile { client, other }
    }
}

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meanwhile").finish_non_exhaustive()
    }
}

impl HttpClient for Meanwhile {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.client.http_connector(settings, components);
        SharedHttpConnector::new(Interrupted { inner, other: Arc::clone(&self.other) })
    }
}

struct Interrupted {
    inner: SharedHttpConnector,
    other: Other,
}

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interrupted").finish_non_exhaustive()
    }
}

impl HttpConnector for Interrupted {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let (inner, other) = (self.inner.clone(), (self.other)(&operation));
        HttpConnectorFuture::new(async move {
            if let Some(other) = other {
                other.await;
            }
            inner.call(request).await
        })
    }
}

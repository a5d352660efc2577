//! Reading records by their keys.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{Get, KeysAndAttributes, TransactGetItem};
use tollgate_store::StoreError;
use tollgate_store::records::{Item, ItemKey};

use crate::ServiceError;
use crate::attributes::{item_of, key_attributes, key_of};
use crate::service::{Attempts, Attributes, CallFailure, TableService};

/// How many items the service reads at once.
const BATCH_MAX: usize = 100;

/// Reads the records at these keys, in their order, expired or not.
pub(super) async fn get_many(
    service: &TableService,
    keys: &[ItemKey],
) -> Result<Vec<Option<Item>>, StoreError> {
    let mut distinct: Vec<&ItemKey> = keys.iter().collect();
    distinct.sort();
    distinct.dedup();
    let found = match distinct.as_slice() {
        [] => return Ok(Vec::new()),
        [key] => one(service, key).await.map(Vec::from_iter),
        keys => together(service, keys).await,
    };
    let found = by_key(found.map_err(CallFailure::store_error)?);
    Ok(keys.iter().map(|key| found.get(key).cloned().and_then(item_of)).collect())
}

pub(super) fn by_key(found: Vec<Attributes>) -> HashMap<ItemKey, Attributes> {
    found.into_iter().filter_map(|attributes| Some((key_of(&attributes)?, attributes))).collect()
}

async fn one(service: &TableService, key: &ItemKey) -> Result<Option<Attributes>, CallFailure> {
    let get = || {
        let get = service.client.get_item().table_name(&service.table).consistent_read(true);
        get.set_key(Some(key_attributes(key))).send()
    };
    Ok(service.with_retries(get).await?.item)
}

/// Reads several records as they were at one instant. More than the service reads at one instant, 4 MB, are read one by one.
async fn together(service: &TableService, keys: &[&ItemKey]) -> Result<Vec<Attributes>, CallFailure> {
    let mut gets = Vec::with_capacity(keys.len());
    for key in keys {
        let get = Get::builder().table_name(&service.table).set_key(Some(key_attributes(key))).build();
        gets.push(TransactGetItem::builder().get(get.map_err(incomplete)?).build());
    }
    let get = || service.client.transact_get_items().set_transact_items(Some(gets.clone())).send();
    match service.with_retries(get).await {
        Ok(answer) => Ok(answer.responses.unwrap_or_default().into_iter().filter_map(|it| it.item).collect()),
        Err(CallFailure::Service(ServiceError::Invalid(_), _)) => batch(service, keys, None).await,
        Err(failure) => Err(failure),
    }
}

/// Reads items, each as it is at its own instant, with some of their attributes or all.
pub(super) async fn batch(
    service: &TableService,
    keys: &[&ItemKey],
    attributes: Option<&[&str]>,
) -> Result<Vec<Attributes>, CallFailure> {
    let mut found = Vec::with_capacity(keys.len());
    for keys in keys.chunks(BATCH_MAX) {
        read_batch(service, request(keys, attributes)?, &mut found).await?;
    }
    Ok(found)
}

fn request(keys: &[&ItemKey], attributes: Option<&[&str]>) -> Result<KeysAndAttributes, CallFailure> {
    let mut request = KeysAndAttributes::builder().consistent_read(true);
    for (number, name) in attributes.into_iter().flatten().enumerate() {
        request = request.expression_attribute_names(format!("#{number}"), *name);
    }
    let projection = attributes
        .map(|names| (0..names.len()).map(|number| format!("#{number}")).collect::<Vec<_>>().join(", "));
    let keys = keys.iter().map(|key| key_attributes(key)).collect();
    request.set_projection_expression(projection).set_keys(Some(keys)).build().map_err(incomplete)
}

/// Reads the items at these keys, each as it is at its own instant; as many as a batch may have.
pub(crate) async fn read_items(
    service: &TableService,
    keys: Vec<Attributes>,
) -> Result<Vec<Attributes>, CallFailure> {
    let mut found = Vec::with_capacity(keys.len());
    let request = KeysAndAttributes::builder().consistent_read(true).set_keys(Some(keys)).build();
    read_batch(service, request.map_err(incomplete)?, &mut found).await?;
    Ok(found)
}

/// Reads a batch, and what was left of it, until nothing is.
async fn read_batch(
    service: &TableService,
    mut request: KeysAndAttributes,
    found: &mut Vec<Attributes>,
) -> Result<(), CallFailure> {
    let mut attempts = Attempts::start();
    loop {
        let asked = request.keys.len();
        let get = || service.client.batch_get_item().request_items(&service.table, request.clone()).send();
        let answer = service.with_retries(get).await?;
        found.extend(answer.responses.unwrap_or_default().into_values().flatten());
        let rest = answer.unprocessed_keys.unwrap_or_default().into_values().next();
        let Some(rest) = rest.filter(|rest| !rest.keys.is_empty()) else { return Ok(()) };
        if rest.keys.len() < asked {
            // There is progress, so the attempts are counted anew.
            attempts.progress();
        }
        request = rest;
        service.counts.record(&ServiceError::Unprocessed);
        service.pause(&mut attempts, ServiceError::Unprocessed).await?;
    }
}

pub(super) fn incomplete(error: aws_sdk_dynamodb::error::BuildError) -> CallFailure {
    let error = ServiceError::Invalid(format!("the request cannot be made: {error}"));
    CallFailure::Service(error, std::time::Duration::ZERO)
}

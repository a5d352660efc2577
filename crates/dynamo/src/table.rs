//! Table schema: creating a table, and checking one that exists.

use std::time::Duration;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, IndexStatus, KeySchemaElement, KeyType,
    PointInTimeRecoverySpecification, Projection, ProjectionType, ScalarAttributeType, StreamSpecification,
    StreamViewType, TableDescription, TableStatus, TimeToLiveSpecification,
};
use tollgate_store::records::Index;
use tollgate_store::workers::CallTimer;

use crate::service::{CallFailure, TableService};
use crate::{DynamoOpenError, ServiceError};

/// The partition key of an item.
pub(crate) const PARTITION: &str = "PK";

/// The sort key of an item.
pub(crate) const SORT: &str = "SK";

/// When the service may delete an item, in whole seconds.
pub(crate) const TTL: &str = "ttl";

/// The sort key of a bucket. No record has it.
pub(crate) const STATE: &str = "#STATE";

/// How long to wait for a table that is being created.
const ACTIVE_WITHIN: Duration = Duration::from_secs(120);

/// How often to check whether it is active.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// An index of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexNames {
    pub(crate) name: &'static str,
    pub(crate) partition: &'static str,
    pub(crate) sort: &'static str,
}

const INDEXES: [Index; 4] = [Index::Children, Index::Resource, Index::Custom, Index::Namespace];

/// Returns the names of an index in the table.
pub(crate) const fn index_names(index: Index) -> IndexNames {
    match index {
        Index::Children => IndexNames { name: "GSI1", partition: "GSI1PK", sort: "GSI1SK" },
        Index::Resource => IndexNames { name: "GSI2", partition: "GSI2PK", sort: "GSI2SK" },
        Index::Custom => IndexNames { name: "GSI3", partition: "GSI3PK", sort: "GSI3SK" },
        Index::Namespace => IndexNames { name: "GSI4", partition: "GSI4PK", sort: "GSI4SK" },
    }
}

/// Returns the description of the table.
pub(crate) async fn describe(service: &TableService) -> Result<TableDescription, CallFailure> {
    let describe = || service.client.describe_table().table_name(&service.table).send();
    let described = service.with_retries(describe).await?;
    let none = || CallFailure::Service(ServiceError::NoTable(service.table.clone()), Duration::ZERO);
    described.table.ok_or_else(none)
}

/// Creates the table, and waits until it is active; also if another client creates it.
pub(crate) async fn create(
    service: &TableService,
    location: &str,
) -> Result<TableDescription, DynamoOpenError> {
    let open_error = |failure| DynamoOpenError::of(failure, &service.table, location);
    let creation = creation(service).map_err(incomplete)?;
    match service.with_retries(|| creation.clone().send()).await {
        // It was created by another client, or by an attempt whose reply was lost.
        Ok(_) | Err(CallFailure::Service(ServiceError::TableBusy(_), _)) => {}
        Err(failure) => return Err(open_error(failure)),
    }
    let table = active(service, location).await?;
    forget_expired(service).await.map_err(open_error)?;
    keep_backups(service).await.map_err(open_error)?;
    Ok(table)
}

/// Waits until the table is active.
pub(crate) async fn active(
    service: &TableService,
    location: &str,
) -> Result<TableDescription, DynamoOpenError> {
    let timer = CallTimer::start();
    loop {
        let status = match describe(service).await {
            Ok(table) if table.table_status == Some(TableStatus::Active) => return Ok(table),
            Ok(table) => table.table_status.map_or("unknown".into(), |status| status.as_str().to_owned()),
            // A new table is not visible everywhere at once.
            Err(CallFailure::Service(ServiceError::NoTable(_), _)) => "not there yet".into(),
            Err(failure) => return Err(DynamoOpenError::of(failure, &service.table, location)),
        };
        let waited = timer.elapsed();
        if waited >= ACTIVE_WITHIN {
            return Err(DynamoOpenError::NotActive { table: service.table.clone(), status, waited });
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// Checks that the table has our keys and indexes. Projections do not matter: every index has the keys.
///
/// # Errors
///
/// [`DynamoOpenError::Unfit`] with everything that is missing or other.
pub(crate) fn check(table: &TableDescription) -> Result<(), DynamoOpenError> {
    let mut faults = Vec::new();
    let typed = |name: &str| attribute_type(table, name);
    check_keys(table.key_schema(), PARTITION, SORT, "the table", typed, &mut faults);
    for index in INDEXES {
        let IndexNames { name, partition, sort } = index_names(index);
        let found = table.global_secondary_indexes().iter().find(|found| found.index_name() == Some(name));
        let Some(found) = found else {
            faults.push(format!("index {name} by {partition} and {sort} is missing"));
            continue;
        };
        check_keys(found.key_schema(), partition, sort, &format!("index {name}"), typed, &mut faults);
        if matches!(found.index_status(), Some(IndexStatus::Creating | IndexStatus::Deleting)) {
            faults.push(format!("index {name} is still being made or deleted, wait until it is active"));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(DynamoOpenError::Unfit { table: table.table_name().unwrap_or_default().into(), faults })
}

fn check_keys<'a>(
    keys: &[KeySchemaElement],
    partition: &str,
    sort: &str,
    named: &str,
    typed: impl Fn(&str) -> Option<&'a ScalarAttributeType>,
    faults: &mut Vec<String>,
) {
    let key = |kind: &KeyType| keys.iter().find(|key| key.key_type() == kind).map(|key| key.attribute_name());
    for (kind, what, wanted) in [(KeyType::Hash, "partition", partition), (KeyType::Range, "sort", sort)] {
        match key(&kind) {
            Some(found) if found != wanted => {
                faults.push(format!("the {what} key of {named} is {found:?} and has to be {wanted:?}"));
            }
            None => faults.push(format!("{named} has no {what} key and has to have {wanted:?}")),
            Some(_) if typed(wanted).is_some_and(|kind| *kind != ScalarAttributeType::S) => {
                faults.push(format!("the {what} key {wanted:?} of {named} has to be a string"));
            }
            Some(_) => {}
        }
    }
}

fn attribute_type<'a>(table: &'a TableDescription, name: &str) -> Option<&'a ScalarAttributeType> {
    let definition = table.attribute_definitions().iter().find(|it| it.attribute_name() == name);
    definition.map(|definition| definition.attribute_type())
}

fn creation(
    service: &TableService,
) -> Result<aws_sdk_dynamodb::operation::create_table::builders::CreateTableFluentBuilder, BuildError> {
    let mut creation = service
        .client
        .create_table()
        .table_name(&service.table)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(keys(PARTITION, SORT)?))
        .stream_specification(
            StreamSpecification::builder()
                .stream_enabled(true)
                .stream_view_type(StreamViewType::NewAndOldImages)
                .build()?,
        );
    for name in [PARTITION, SORT] {
        creation = creation.attribute_definitions(text(name)?);
    }
    for index in INDEXES {
        let IndexNames { name, partition, sort } = index_names(index);
        // Keys only: a bucket that changes with every acquire must not be copied with every acquire.
        let projection = Projection::builder().projection_type(ProjectionType::KeysOnly).build();
        let index = GlobalSecondaryIndex::builder()
            .index_name(name)
            .set_key_schema(Some(keys(partition, sort)?))
            .projection(projection)
            .build()?;
        creation = creation
            .attribute_definitions(text(partition)?)
            .attribute_definitions(text(sort)?)
            .global_secondary_indexes(index);
    }
    Ok(creation)
}

fn keys(partition: &str, sort: &str) -> Result<Vec<KeySchemaElement>, BuildError> {
    let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    Ok(vec![key(partition, KeyType::Hash)?, key(sort, KeyType::Range)?])
}

fn text(name: &str) -> Result<AttributeDefinition, BuildError> {
    AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build()
}

fn incomplete(error: BuildError) -> DynamoOpenError {
    DynamoOpenError::BadSetting(format!("the table cannot be described: {error}"))
}

/// Lets the service delete expired items.
async fn forget_expired(service: &TableService) -> Result<(), CallFailure> {
    let update = || async {
        let ttl = TimeToLiveSpecification::builder().enabled(true).attribute_name(TTL).build()?;
        let update = service.client.update_time_to_live().table_name(&service.table);
        update.time_to_live_specification(ttl).send().await
    };
    match service.with_retries(update).await {
        Ok(_) => Ok(()),
        Err(CallFailure::Service(ServiceError::Invalid(why), _)) if why.contains("already enabled") => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Lets the table be restored to any second of the last weeks. Not every endpoint can, and it works without.
async fn keep_backups(service: &TableService) -> Result<(), CallFailure> {
    let update = || async {
        let recovery =
            PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build()?;
        let update = service.client.update_continuous_backups().table_name(&service.table);
        update.point_in_time_recovery_specification(recovery).send().await
    };
    match service.with_retries(update).await {
        Ok(_) | Err(CallFailure::Service(ServiceError::Other(_) | ServiceError::Invalid(_), _)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

//! Warnings about optional settings of the table.

use aws_sdk_dynamodb::types::{
    PointInTimeRecoveryStatus, StreamViewType, TableDescription, TimeToLiveStatus,
};
use tollgate_store::{Reply, StoreError};

use crate::inner::DynamoStore;
use crate::service::{CallFailure, TableService};
use crate::table::{self, TTL};

impl DynamoStore {
    /// Returns what the table lacks. It can be used as it is, but expired items stay, nothing can be restored, or there is no
    /// stream to aggregate. Settings that an endpoint does not report count as present.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the table cannot be described.
    pub fn shortcomings(&self) -> Reply<'_, Result<Vec<String>, StoreError>> {
        let service = &self.0.service;
        Reply::later(service.within(async {
            let table = table::describe(service).await.map_err(CallFailure::store_error)?;
            let found = [stream(&table), expiry(service).await, recovery(service).await];
            Ok(found.into_iter().flatten().map(str::to_owned).collect())
        }))
    }
}

fn stream(table: &TableDescription) -> Option<&'static str> {
    let stream = table.stream_specification().filter(|stream| stream.stream_enabled());
    let view = stream.and_then(|stream| stream.stream_view_type());
    match view {
        Some(StreamViewType::NewAndOldImages) => None,
        Some(_) => Some("its stream has not both images; the aggregator needs NEW_AND_OLD_IMAGES"),
        None => {
            Some("it has no stream, so that nothing can be aggregated; enable one with NEW_AND_OLD_IMAGES")
        }
    }
}

async fn expiry(service: &TableService) -> Option<&'static str> {
    let describe = || service.client.describe_time_to_live().table_name(&service.table).send();
    let described = service.with_retries(describe).await.ok()?.time_to_live_description?;
    let is_on = matches!(
        described.time_to_live_status(),
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
    );
    match described.attribute_name() {
        _ if !is_on => Some("nothing in it expires; enable its time to live on the attribute \"ttl\""),
        Some(name) if name != TTL => Some("its time to live is on another attribute than \"ttl\""),
        _ => None,
    }
}

async fn recovery(service: &TableService) -> Option<&'static str> {
    let describe = || service.client.describe_continuous_backups().table_name(&service.table).send();
    let described = service.with_retries(describe).await.ok()?.continuous_backups_description?;
    let status = described.point_in_time_recovery_description?.point_in_time_recovery_status;
    (status == Some(PointInTimeRecoveryStatus::Disabled))
        .then_some("it cannot be restored to an earlier time; enable point-in-time recovery")
}

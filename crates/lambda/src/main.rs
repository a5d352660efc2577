//! The aggregator of a table's stream on AWS Lambda: what `tollgate aggregate` does, without a
//! process to operate.
//!
//! Lambda starts the program and passes it batches of records. The program returns which of them
//! must be delivered again.
//!
//! | variable | value |
//! |---|---|
//! | `TOLLGATE_TABLE` | the table |
//! | `TOLLGATE_ARCHIVE` | where audit events are archived: `s3://BUCKET`, `s3://BUCKET/PREFIX`, or a folder |
//! | `TOLLGATE_USAGE_RETENTION` | how long usage is stored: `90d`, `forever`, or `90d,400d,forever` for hours, days and months |

mod event;
#[cfg(feature = "s3")]
mod s3;
mod settings;

use anyhow::{Context as _, Result, anyhow};
use aws_lambda_events::event::dynamodb::Event;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::{Value, json};
use tollgate_dynamo::DynamoStore;
use tollgate_dynamo::aggregate::{Aggregator, BatchOutcome, Folder, StreamRecord};

use settings::{ArchiveAt, LambdaSettings};

fn main() -> Result<()> {
    // Lambda delivers one batch at a time, and the store has threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let settings = LambdaSettings::resolve(&|name| std::env::var(name).ok())?;
        let aggregator = aggregator(&settings).await?;
        let aggregator = &aggregator;
        let handle = service_fn(move |event: LambdaEvent<Event>| handle(aggregator, event));
        lambda_runtime::run(handle).await.map_err(|error| anyhow!("{error}"))
    })
}

async fn aggregator(settings: &LambdaSettings) -> Result<Aggregator> {
    let mut store = DynamoStore::builder(&settings.table);
    if let Some(endpoint) = &settings.endpoint {
        store = store.endpoint(endpoint);
    }
    if let Some(retention) = settings.usage_retention {
        store = store.usage_retention(retention);
    }
    let store = store.build().await.with_context(|| format!("table {} cannot be opened", settings.table))?;
    let aggregator = Aggregator::new(store);
    Ok(match &settings.archive {
        None => aggregator,
        Some(ArchiveAt::Folder(path)) => aggregator.with_archive(Folder::new(path)),
        #[cfg(feature = "s3")]
        Some(ArchiveAt::S3 { bucket, prefix }) => aggregator.with_archive(s3::S3::open(bucket, prefix).await),
        #[cfg(not(feature = "s3"))]
        Some(ArchiveAt::S3 { .. }) => {
            return Err(anyhow!("this program was built without S3; build it with the feature `s3`"));
        }
    })
}

async fn handle(aggregator: &Aggregator, event: LambdaEvent<Event>) -> Result<Value, lambda_runtime::Error> {
    let records: Vec<StreamRecord> = event.payload.records.into_iter().filter_map(event::record).collect();
    let outcome = aggregator.handle(&records).await;
    log(&outcome);
    Ok(answer(&outcome))
}

/// Returns the failed records as Lambda expects them: with `ReportBatchItemFailures` it delivers
/// again from the first of them. The aggregator skips records behind it that it has handled.
fn answer(outcome: &BatchOutcome) -> Value {
    let failed = outcome.failed.iter().map(|failed| json!({ "itemIdentifier": failed.sequence }));
    json!({ "batchItemFailures": failed.collect::<Vec<_>>() })
}

/// Logs one line of JSON for each batch, which CloudWatch can query.
fn log(outcome: &BatchOutcome) {
    let failed =
        outcome.failed.iter().map(|failed| json!({ "sequence": failed.sequence, "why": failed.why }));
    let line = json!({
        "records": outcome.records,
        "written": outcome.written,
        "remains": outcome.remains,
        "archived": outcome.archived,
        "doubled": outcome.doubled,
        "unreadable": outcome.unreadable,
        "failed": failed.collect::<Vec<_>>(),
    });
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_without_failures_is_an_empty_list() {
        // Lambda takes a reply without the list for success, and a reply that it cannot parse for a
        // failure.
        assert_eq!(answer(&BatchOutcome::default()), json!({ "batchItemFailures": [] }));
    }
}

//! The stream of a table on AWS Lambda: what `tollgate aggregate` does, with no process to look after.
//!
//! Lambda starts the program, passes it batches of records, and gets back which of them have to come again.

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
    if let Some(kept) = settings.usage_retention {
        store = store.usage_retention(kept);
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

/// What has to come again, as Lambda expects it: with `ReportBatchItemFailures` it starts over at the first of them.
/// What was done behind it is not done twice.
fn answer(outcome: &BatchOutcome) -> Value {
    let failed = outcome.failed.iter().map(|failed| json!({ "itemIdentifier": failed.sequence }));
    json!({ "batchItemFailures": failed.collect::<Vec<_>>() })
}

/// One line for each batch, which CloudWatch can be asked about.
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
    fn nothing_failed_is_an_empty_list_and_not_nothing() {
        // Lambda takes an answer without the list for a batch that went well, and one it cannot read for one that did not.
        assert_eq!(answer(&BatchOutcome::default()), json!({ "batchItemFailures": [] }));
    }
}

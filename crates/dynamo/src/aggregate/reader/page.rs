//! Calls to the stream.

use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::operation::get_records::GetRecordsError;
use aws_sdk_dynamodbstreams::types::ShardIteratorType;
use tollgate_store::StoreError;
use tollgate_store::workers::CallTimer;

use super::super::record::StreamRecord;
use super::shards::{Described, ShardPosition};
use super::{StreamReader, checkpoint};

/// The page at an iterator.
pub(super) enum StreamPage {
    Read {
        records: Vec<StreamRecord>,
        last: Option<String>,
        next: Option<String>,
    },
    /// The iterator is too old.
    Expired,
    /// The record that it points at is gone.
    Trimmed,
}

impl StreamReader {
    pub(super) async fn describe(&self) -> Result<Vec<Described>, StoreError> {
        let (mut shards, mut after) = (Vec::new(), None);
        loop {
            let timer = CallTimer::start();
            let describe = self.client.describe_stream().stream_arn(&self.stream);
            let described = describe.set_exclusive_start_shard_id(after).send().await;
            let described = described.map_err(|error| stream_error(&error, timer))?.stream_description;
            let Some(described) = described else { return Ok(shards) };
            let listed = described.shards.unwrap_or_default().into_iter();
            shards.extend(
                listed.filter_map(|shard| {
                    Some(Described { id: shard.shard_id?, parent: shard.parent_shard_id })
                }),
            );
            match described.last_evaluated_shard_id {
                Some(last) => after = Some(last),
                None => return Ok(shards),
            }
        }
    }

    pub(super) async fn iterator(&self, shard: &str, position: ShardPosition) -> Result<String, StoreError> {
        let (kind, sequence) = match position {
            ShardPosition::Oldest => (ShardIteratorType::TrimHorizon, None),
            ShardPosition::Latest => (ShardIteratorType::Latest, None),
            ShardPosition::After(sequence) => (ShardIteratorType::AfterSequenceNumber, Some(sequence)),
        };
        let is_after = sequence.is_some();
        let timer = CallTimer::start();
        let get = self.client.get_shard_iterator().stream_arn(&self.stream).shard_id(shard);
        match get.shard_iterator_type(kind).set_sequence_number(sequence).send().await {
            Ok(got) => {
                got.shard_iterator.ok_or_else(|| StoreError::Refused("the stream gives no iterator".into()))
            }
            // The record after which to go on is gone: the oldest that is left is next.
            Err(error) if is_after && code(&error) == "TrimmedDataAccessException" => {
                Box::pin(self.iterator(shard, ShardPosition::Oldest)).await
            }
            Err(error) => Err(stream_error(&error, timer)),
        }
    }

    pub(super) async fn page(&self, iterator: &str) -> Result<StreamPage, StoreError> {
        let timer = CallTimer::start();
        let got = match self.client.get_records().shard_iterator(iterator).send().await {
            Ok(got) => got,
            Err(error) if code(&error) == "ExpiredIteratorException" => return Ok(StreamPage::Expired),
            Err(error) if code(&error) == "TrimmedDataAccessException" => return Ok(StreamPage::Trimmed),
            Err(error) => return Err(stream_error::<GetRecordsError>(&error, timer)),
        };
        let records = got.records.unwrap_or_default();
        let number = |record: &aws_sdk_dynamodbstreams::types::Record| {
            record.dynamodb.as_ref()?.sequence_number.clone()
        };
        let last = records.last().and_then(number);
        let records = records.into_iter().filter_map(StreamRecord::of_sdk);
        // Checkpoints are in the stream, too, and would cause new checkpoints for ever.
        let records = records.filter(|record| !checkpoint::is_one(record)).collect();
        Ok(StreamPage::Read { records, last, next: got.next_shard_iterator })
    }
}

fn code<E: ProvideErrorMetadata>(error: &SdkError<E>) -> &str {
    error.as_service_error().and_then(|error| error.code()).unwrap_or_default()
}

/// Converts an error of the SDK, which has retried the call already.
fn stream_error<E: ProvideErrorMetadata>(error: &SdkError<E>, timer: CallTimer) -> StoreError {
    let (code, said) = error
        .as_service_error()
        .map(|error| (error.code().unwrap_or_default(), error.message().unwrap_or_default()))
        .unwrap_or(("", "no connection"));
    let why = format!("the stream of the table: {code} {said}");
    match code {
        "AccessDeniedException" | "ResourceNotFoundException" | "ValidationException" => {
            StoreError::Refused(why)
        }
        _ => StoreError::Unavailable(timer.elapsed(), why),
    }
}

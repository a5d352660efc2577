//! From the name of an operation to the engine's function for it.

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::HttpAnswer;
use crate::operation::Operation;

/// Does what a request asks.
pub(crate) fn dispatch(database: &Database, operation: &Operation, body: &[u8]) -> HttpAnswer {
    let db = database;
    let names_shards = matches!(operation.name, "DescribeStream" | "GetShardIterator");
    let renamed = names_shards.then(|| String::from_utf8_lossy(body).replace(SHARDS[1], SHARDS[0]));
    let body = renamed.as_ref().map_or(body, |body| body.as_bytes());
    match operation.name {
        "GetItem" => run(body, |request| db.get_item(request)),
        "BatchGetItem" => run(body, |request| db.batch_get_item(request)),
        "TransactGetItems" => run(body, |request| db.transact_get_items(request)),
        "Query" => run(body, |request| db.query(request)),
        "Scan" => run(body, |request| db.scan(request)),
        "PutItem" => run(body, |request| db.put_item(request)),
        "UpdateItem" => run(body, |request| db.update_item(request)),
        "DeleteItem" => run(body, |request| db.delete_item(request)),
        "BatchWriteItem" => run(body, |request| db.batch_write_item(request)),
        "TransactWriteItems" => run(body, |request| db.transact_write_items(request)),
        "CreateTable" => run(body, |request| db.create_table(request)),
        "DeleteTable" => run(body, |request| db.delete_table(request)),
        "DescribeTable" => run(body, |request| db.describe_table(request)),
        "ListTables" => run(body, |request| db.list_tables(request)),
        "UpdateTable" => run(body, |request| db.update_table(request)),
        "UpdateTimeToLive" => run(body, |request| db.update_time_to_live(request)),
        "DescribeTimeToLive" => run(body, |request| db.describe_time_to_live(request)),
        "TagResource" => run(body, |request| db.tag_resource(request)),
        "UntagResource" => run(body, |request| db.untag_resource(request)),
        "ListTagsOfResource" => run(body, |request| db.list_tags_of_resource(request)),
        "ListStreams" => run(body, |request| db.list_streams(request)),
        "DescribeStream" => with_long_shards(run(body, |request| db.describe_stream(request))),
        "GetShardIterator" => run(body, |request| db.get_shard_iterator(request)),
        "GetRecords" => named_as_the_api_does(run(body, |request| db.get_records(request))),
        _ => HttpAnswer::unknown_operation(),
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    operate: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> HttpAnswer {
    let request = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return not_read(&error.to_string()),
    };
    match operate(request) {
        Ok(answer) => match serde_json::to_string(&answer) {
            Ok(body) => HttpAnswer::ok(body),
            Err(error) => HttpAnswer::refusal(500, "InternalServerError", &error.to_string()),
        },
        Err(error) => HttpAnswer::error(error.status_code(), error.error_type(), error.to_json()),
    }
}

/// What the name of a shard begins with, as the engine writes it and as this answers it. The service's have 28 characters or
/// more, and clients check that before they ask.
const SHARDS: [&str; 2] = [r#""shardId-00000001-"#, r#""shardId-00000000000000000001-"#];

fn with_long_shards(answer: HttpAnswer) -> HttpAnswer {
    HttpAnswer { body: answer.body.replace(SHARDS[0], SHARDS[1]), ..answer }
}

/// Who deletes what has expired, as the engine writes it, which is as Lambda gets it; and as the API answers it.
const IDENTITIES: [&str; 2] = [
    r#""userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}"#,
    r#""userIdentity":{"Type":"Service","PrincipalId":"dynamodb.amazonaws.com"}"#,
];

/// Within a text of an item its quotes would be escaped, so it is found only where it is meant.
fn named_as_the_api_does(answer: HttpAnswer) -> HttpAnswer {
    let [engine, api] = IDENTITIES;
    HttpAnswer { body: answer.body.replace(engine, api), ..answer }
}

/// What marks the text of an error that the engine means to be answered, and which error it is.
const MARKS: [(&str, &str); 5] = [
    ("VALIDATION_REQUEST:", "ValidationException"),
    ("VALIDATION_AS_READ:", "ValidationException"),
    ("VALIDATION:", "ValidationException"),
    ("SERIALIZATION_AS_READ:", "SerializationException"),
    ("SERIALIZATION:", "SerializationException"),
];

/// A body that cannot be read. The engine finds some of what is not valid while it reads, and says so with a mark.
fn not_read(error: &str) -> HttpAnswer {
    let marked = MARKS.iter().find_map(|(mark, kind)| Some((error.strip_prefix(mark)?, *kind)));
    let (text, kind) = marked.unwrap_or((error, unmarked(error)));
    // A client does not need to know where in the body it was.
    let text = text.rsplit_once(" at line ").map_or(text, |(text, _)| text);
    HttpAnswer::refusal(400, kind, text)
}

/// The service calls a field that is missing not valid, and one of the wrong type not readable.
fn unmarked(error: &str) -> &'static str {
    let is_not_valid = ["missing field", "unknown variant", "invalid type: null", "AttributeValue"]
        .iter()
        .any(|sign| error.contains(sign));
    if is_not_valid { "ValidationException" } else { "SerializationException" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_finds_while_it_reads_is_not_valid() {
        let answer = not_read("VALIDATION:The number is too large at line 1 column 40");
        assert_eq!((answer.status, answer.error.as_deref()), (400, Some("ValidationException")));
        assert!(answer.body.contains("The number is too large") && !answer.body.contains("line 1"));
        let answer = not_read("invalid type: integer `23`, expected a string at line 1 column 42");
        assert_eq!(answer.error.as_deref(), Some("SerializationException"));
    }
}

//! Dispatch from the name of an operation to the function of the engine.

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::HttpAnswer;
use crate::operation::Operation;

/// Executes a request.
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
        "GetRecords" => with_api_identities(run(body, |request| db.get_records(request))),
        _ => HttpAnswer::unknown_operation(),
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    operate: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> HttpAnswer {
    let request = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return parse_error(&error.to_string()),
    };
    match operate(request) {
        Ok(answer) => match serde_json::to_string(&answer) {
            Ok(body) => HttpAnswer::ok(body),
            Err(error) => HttpAnswer::refusal(500, "InternalServerError", &error.to_string()),
        },
        Err(error) => HttpAnswer::error(error.status_code(), error.error_type(), error.to_json()),
    }
}

/// The prefix of shard ids in the engine, and in answers. Ids of the service have at least 28
/// characters, which clients check before a request.
const SHARDS: [&str; 2] = [r#""shardId-00000001-"#, r#""shardId-00000000000000000001-"#];

fn with_long_shards(answer: HttpAnswer) -> HttpAnswer {
    HttpAnswer { body: answer.body.replace(SHARDS[0], SHARDS[1]), ..answer }
}

/// The identity that deletes expired items, as the engine writes it, which is Lambda's format, and
/// in the API's format.
const IDENTITIES: [&str; 2] = [
    r#""userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}"#,
    r#""userIdentity":{"Type":"Service","PrincipalId":"dynamodb.amazonaws.com"}"#,
];

/// Converts the identity. Inside a text attribute the quotes would be escaped, so no other text
/// matches.
fn with_api_identities(answer: HttpAnswer) -> HttpAnswer {
    let [engine, api] = IDENTITIES;
    HttpAnswer { body: answer.body.replace(engine, api), ..answer }
}

/// Prefixes of the engine's errors that are meant for the client, and their kinds.
const ERROR_PREFIXES: [(&str, &str); 5] = [
    ("VALIDATION_REQUEST:", "ValidationException"),
    ("VALIDATION_AS_READ:", "ValidationException"),
    ("VALIDATION:", "ValidationException"),
    ("SERIALIZATION_AS_READ:", "SerializationException"),
    ("SERIALIZATION:", "SerializationException"),
];

/// Returns the error for a body that cannot be parsed. The engine finds some invalid input while
/// parsing, and marks its message with a prefix.
fn parse_error(error: &str) -> HttpAnswer {
    let prefixed =
        ERROR_PREFIXES.iter().find_map(|(prefix, kind)| Some((error.strip_prefix(prefix)?, *kind)));
    let (text, kind) = prefixed.unwrap_or((error, kind_of(error)));
    // The position in the body is of no use to a client.
    let text = text.rsplit_once(" at line ").map_or(text, |(text, _)| text);
    HttpAnswer::refusal(400, kind, text)
}

/// Returns the kind of an error without a prefix: for the service, a missing field is invalid, and
/// a field of the wrong type cannot be parsed.
fn kind_of(error: &str) -> &'static str {
    let is_not_valid = ["missing field", "unknown variant", "invalid type: null", "AttributeValue"]
        .iter()
        .any(|part| error.contains(part));
    if is_not_valid { "ValidationException" } else { "SerializationException" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_found_while_parsing_are_validation_errors() {
        let answer = parse_error("VALIDATION:The number is too large at line 1 column 40");
        assert_eq!((answer.status, answer.error.as_deref()), (400, Some("ValidationException")));
        assert!(answer.body.contains("The number is too large") && !answer.body.contains("line 1"));
        let answer = parse_error("invalid type: integer `23`, expected a string at line 1 column 42");
        assert_eq!(answer.error.as_deref(), Some("SerializationException"));
    }
}

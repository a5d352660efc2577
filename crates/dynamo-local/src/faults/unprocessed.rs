//! Batches of which only a part is processed.

use serde_json::{Map, Value, json};

/// A batch in two parts: the request for the processed part, if there is one, and the unprocessed
/// part.
pub(crate) struct SplitBatch {
    pub(crate) done: Option<Vec<u8>>,
    unprocessed: Value,
}

/// Splits a batch: the second half for each table, the larger one if they are not equal, is not
/// processed.
pub(crate) fn split(body: &[u8]) -> Option<SplitBatch> {
    let mut request: Value = serde_json::from_slice(body).ok()?;
    let tables = request.get_mut("RequestItems")?.as_object_mut()?;
    let mut unprocessed = Map::new();
    for (table, asked) in tables.iter_mut() {
        let mut rest = asked.clone();
        let all = requests_of(asked)?;
        let second_half = all.split_off(all.len() / 2);
        *requests_of(&mut rest)? = second_half;
        unprocessed.insert(table.clone(), rest);
    }
    tables.retain(|_, asked| requests_of(asked).is_some_and(|requests| !requests.is_empty()));
    let done = (!tables.is_empty()).then(|| request.to_string().into_bytes());
    Some(SplitBatch { done, unprocessed: Value::Object(unprocessed) })
}

/// Returns the requests for a table: keys to read, or writes.
fn requests_of(asked: &mut Value) -> Option<&mut Vec<Value>> {
    match asked {
        Value::Array(writes) => Some(writes),
        reads => reads.get_mut("Keys")?.as_array_mut(),
    }
}

impl SplitBatch {
    /// Returns the answer with the unprocessed part added.
    pub(crate) fn answer(&self, operation: &str, answer: &str) -> String {
        let mut answer: Value = serde_json::from_str(answer).unwrap_or_else(|_| json!({}));
        let field = if operation == "BatchGetItem" { "UnprocessedKeys" } else { "UnprocessedItems" };
        if operation == "BatchGetItem" && answer.get("Responses").is_none() {
            answer["Responses"] = json!({});
        }
        answer[field] = self.unprocessed.clone();
        answer.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_split_and_no_request_is_lost() {
        let body = json!({ "RequestItems": { "t": { "Keys": [1, 2, 3], "ConsistentRead": true } } });
        let batch = split(body.to_string().as_bytes()).unwrap();
        let done: Value = serde_json::from_slice(batch.done.as_deref().unwrap()).unwrap();
        assert_eq!(done["RequestItems"]["t"], json!({ "Keys": [1], "ConsistentRead": true }));
        let answer: Value = serde_json::from_str(&batch.answer("BatchGetItem", "{}")).unwrap();
        assert_eq!(answer["UnprocessedKeys"]["t"], json!({ "Keys": [2, 3], "ConsistentRead": true }));
        let single = json!({ "RequestItems": { "t": [{ "PutRequest": 1 }] } });
        assert!(split(single.to_string().as_bytes()).unwrap().done.is_none());
    }
}

//! Batches that are done in part only.

use serde_json::{Map, Value, json};

/// A batch in two: the request for what is done, if anything is, and what is left undone.
pub(crate) struct Parted {
    pub(crate) done: Option<Vec<u8>>,
    left: Value,
}

/// Parts a batch: of every table the latter half is left, the larger one if they are not equal.
pub(crate) fn part(body: &[u8]) -> Option<Parted> {
    let mut request: Value = serde_json::from_slice(body).ok()?;
    let tables = request.get_mut("RequestItems")?.as_object_mut()?;
    let mut left = Map::new();
    for (table, asked) in tables.iter_mut() {
        let mut rest = asked.clone();
        let all = requests_of(asked)?;
        let undone = all.split_off(all.len() / 2);
        *requests_of(&mut rest)? = undone;
        left.insert(table.clone(), rest);
    }
    tables.retain(|_, asked| requests_of(asked).is_some_and(|requests| !requests.is_empty()));
    let done = (!tables.is_empty()).then(|| request.to_string().into_bytes());
    Some(Parted { done, left: Value::Object(left) })
}

/// What is asked of a table: keys to read, or writes.
fn requests_of(asked: &mut Value) -> Option<&mut Vec<Value>> {
    match asked {
        Value::Array(writes) => Some(writes),
        reads => reads.get_mut("Keys")?.as_array_mut(),
    }
}

impl Parted {
    /// The answer with what was left undone in it.
    pub(crate) fn answer(&self, operation: &str, answer: &str) -> String {
        let mut answer: Value = serde_json::from_str(answer).unwrap_or_else(|_| json!({}));
        let field = if operation == "BatchGetItem" { "UnprocessedKeys" } else { "UnprocessedItems" };
        if operation == "BatchGetItem" && answer.get("Responses").is_none() {
            answer["Responses"] = json!({});
        }
        answer[field] = self.left.clone();
        answer.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_parted_and_nothing_of_it_is_lost() {
        let body = json!({ "RequestItems": { "t": { "Keys": [1, 2, 3], "ConsistentRead": true } } });
        let parted = part(body.to_string().as_bytes()).unwrap();
        let done: Value = serde_json::from_slice(parted.done.as_deref().unwrap()).unwrap();
        assert_eq!(done["RequestItems"]["t"], json!({ "Keys": [1], "ConsistentRead": true }));
        let answer: Value = serde_json::from_str(&parted.answer("BatchGetItem", "{}")).unwrap();
        assert_eq!(answer["UnprocessedKeys"]["t"], json!({ "Keys": [2, 3], "ConsistentRead": true }));
        let single = json!({ "RequestItems": { "t": [{ "PutRequest": 1 }] } });
        assert!(part(single.to_string().as_bytes()).unwrap().done.is_none());
    }
}

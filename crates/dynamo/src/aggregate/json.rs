//! Attributes as JSON, without the types of DynamoDB.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Number, Value};

use crate::attributes::{EXPIRES, item_of};
use crate::service::Attributes;
use crate::table::TTL;

/// Returns an item as an object of its fields, without the keys, the keys of indexes and the expiry.
pub(super) fn object_of(attributes: &Attributes) -> Value {
    let fields = item_of(attributes.clone()).map(|item| item.fields).unwrap_or_default();
    let is_field = |name: &str| fields.contains_key(name) && name != TTL && name != EXPIRES;
    let mut named: Vec<(&String, &AttributeValue)> =
        attributes.iter().filter(|(name, _)| is_field(name)).collect();
    named.sort_by_key(|(name, _)| *name);
    Value::Object(
        named.into_iter().map(|(name, value)| (name.clone(), json_of(value))).collect::<Map<_, _>>(),
    )
}

fn json_of(attribute: &AttributeValue) -> Value {
    match attribute {
        AttributeValue::Bool(yes) => Value::Bool(*yes),
        AttributeValue::N(number) => number_of(number),
        AttributeValue::S(text) => Value::String(text.clone()),
        AttributeValue::L(values) => values.iter().map(json_of).collect(),
        AttributeValue::Ss(members) => sorted(members).into_iter().map(Value::from).collect(),
        AttributeValue::Ns(members) => sorted(members).into_iter().map(number_of).collect(),
        AttributeValue::M(fields) => {
            let mut named: Vec<(&String, &AttributeValue)> = fields.iter().collect();
            named.sort_by_key(|(name, _)| *name);
            Value::Object(named.into_iter().map(|(name, value)| (name.clone(), json_of(value))).collect())
        }
        // Audit events have no binaries.
        _ => Value::Null,
    }
}

/// Sorts the members of a set: a file has to be the same each time.
fn sorted(members: &[String]) -> Vec<&str> {
    let mut members: Vec<&str> = members.iter().map(String::as_str).collect();
    members.sort_unstable();
    members
}

/// Returns a number as it is, or its text if JSON has no such number.
fn number_of(text: &str) -> Value {
    text.parse::<Number>().map_or_else(|_| Value::String(text.into()), Value::Number)
}

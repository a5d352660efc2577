//! Conversion of attribute values.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

pub(crate) fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(crate) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(crate) fn bytes(bytes: Vec<u8>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

/// Returns the number of an attribute, rounded down: the original writes some with decimals.
pub(crate) fn read_number(value: Option<&AttributeValue>) -> Option<i128> {
    let AttributeValue::N(text) = value? else { return None };
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => {
            text.parse::<f64>().ok().filter(|number| number.abs() < 1e18).map(|number| number.floor() as i128)
        }
    }
}

pub(crate) fn read_unsigned(value: Option<&AttributeValue>) -> Option<u64> {
    read_number(value).and_then(|number| u64::try_from(number).ok())
}

pub(crate) fn read_text(value: Option<&AttributeValue>) -> Option<&str> {
    match value? {
        AttributeValue::S(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn read_bytes(value: Option<&AttributeValue>) -> Option<&[u8]> {
    match value? {
        AttributeValue::B(bytes) => Some(bytes.as_ref()),
        _ => None,
    }
}

//! Parsing the replies of scripts.

use std::time::Duration;

use redis::Value;
use tollgate_core::Tick;
use tollgate_store::StoreError;

use crate::ServerError;

/// The reply of a script that changes something.
#[derive(Debug)]
pub(crate) enum ScriptAnswer {
    /// It was applied, now or before: the remembered outcome.
    Done(Vec<u8>),
    /// Nothing was changed. The values at its keys.
    Seen(SeenValues),
}

/// Values at one instant; those that are not there are empty.
#[derive(Clone, Debug)]
pub(crate) struct SeenValues {
    pub(crate) now: Tick,
    pub(crate) values: Vec<Vec<u8>>,
}

impl ScriptAnswer {
    pub(crate) fn of(value: Value) -> Result<ScriptAnswer, StoreError> {
        match value {
            Value::BulkString(outcome) => Ok(ScriptAnswer::Done(outcome)),
            value => SeenValues::of(value).map(ScriptAnswer::Seen),
        }
    }
}

impl SeenValues {
    pub(crate) fn of(value: Value) -> Result<SeenValues, StoreError> {
        let Value::Array(values) = value else { return Err(garbage()) };
        let mut values = values.into_iter();
        let Some(Value::Int(now)) = values.next() else { return Err(garbage()) };
        let now = Tick::from_micros(u64::try_from(now).map_err(|_| garbage())?);
        Ok(SeenValues { now, values: values.map(bulk).collect::<Result<_, _>>()? })
    }
}

fn bulk(value: Value) -> Result<Vec<u8>, StoreError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(garbage()),
    }
}

pub(crate) fn bulks(value: Value) -> Result<Vec<Vec<u8>>, StoreError> {
    let Value::Array(values) = value else { return Err(garbage()) };
    values.into_iter().map(bulk).collect()
}

fn garbage() -> StoreError {
    ServerError::Garbage("a script answered something of another form".into()).into_error(Duration::ZERO)
}

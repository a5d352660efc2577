//! Integrity check: finds stored values that cannot be read.

use redis::Value;
use tollgate_store::workers::CallTimer;
use tollgate_store::{Key, Reply, StoreError};

use crate::ServerError;
use crate::codec::RedisRow;
use crate::inner::{RedisInner, RedisStore};
use crate::layout::record_from;
use crate::records::item_of;
use crate::service::{TimedError, bulks};

/// How many damages are reported at most.
const DAMAGES_MAX: usize = 100;

/// How many keys the server scans at once.
const SCANNED: usize = 1_000;

/// How many values are read at once.
const READ: usize = 200;

impl RedisStore {
    /// Returns the values under the keys of buckets and records that cannot be read: written by hand or by another program, or
    /// by a version that this one does not know. Reports 100 at most. Scans all keys of the server, a thousand at a time.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// The server did not answer, or refused.
    pub fn damages(&self) -> Reply<'_, Result<Vec<String>, StoreError>> {
        Reply::later(self.0.service.within(self.0.damages()))
    }
}

impl RedisInner {
    async fn damages(&self) -> Result<Vec<String>, StoreError> {
        let layout = &self.service.layout;
        let mut damages = Vec::new();
        for (start, is_bucket) in [(layout.all_keys_of_buckets(), true), (layout.records(), false)] {
            let mut cursor = b"0".to_vec();
            loop {
                let (next, keys) = self.scan(&cursor, &start).await?;
                for keys in keys.chunks(READ) {
                    self.look_at(keys, &start, is_bucket, &mut damages).await?;
                }
                cursor = next;
                if cursor == b"0" || damages.len() >= DAMAGES_MAX {
                    break;
                }
            }
        }
        damages.truncate(DAMAGES_MAX);
        Ok(damages)
    }

    /// Returns a part of the keys that start with `start`, and the cursor of the next part.
    async fn scan(&self, cursor: &[u8], start: &[u8]) -> Result<(Vec<u8>, Vec<Vec<u8>>), StoreError> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern(start)).arg("COUNT").arg(SCANNED);
        let answer = self.call(&scan).await?;
        match answer {
            Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
                Ok([Value::BulkString(next), keys]) => Ok((next, bulks(keys)?)),
                _ => Err(garbage("SCAN")),
            },
            _ => Err(garbage("SCAN")),
        }
    }

    async fn look_at(
        &self,
        keys: &[Vec<u8>],
        start: &[u8],
        is_bucket: bool,
        damages: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        let mut read = redis::cmd("MGET");
        keys.iter().for_each(|key| {
            read.arg(key);
        });
        let Value::Array(values) = self.call(&read).await? else { return Err(garbage("MGET")) };
        for (key, value) in keys.iter().zip(values) {
            let rest = key.get(start.len()..).unwrap_or_default();
            let problem = match value {
                Value::BulkString(bytes) if is_bucket => {
                    RedisRow::from_bytes(&bytes, None).err().map(|why| why.to_string())
                }
                Value::BulkString(bytes) => damage_of_record(rest, &bytes),
                _ => self.other_type(key).await?,
            };
            let name = if is_bucket { bucket_name(rest) } else { record_name(rest) };
            damages.extend(problem.map(|problem| format!("{name}: {problem}")));
        }
        Ok(())
    }

    /// Returns the type of a key that is not a string; `None` if the key is gone.
    async fn other_type(&self, key: &[u8]) -> Result<Option<String>, StoreError> {
        let mut ask = redis::cmd("TYPE");
        ask.arg(key);
        let kind = match self.call(&ask).await? {
            Value::SimpleString(kind) => kind,
            _ => return Err(garbage("TYPE")),
        };
        Ok((kind != "none" && kind != "string").then(|| format!("it is of the type {kind}, not a string")))
    }

    async fn call(&self, command: &redis::Cmd) -> Result<Value, StoreError> {
        self.service.with_retries(CallTimer::start(), command, None).await.map_err(TimedError::into_error)
    }
}

/// Returns the pattern of keys that start with these bytes, which are escaped.
fn pattern(start: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| {
        let is_special = b"*?[]\\".contains(byte);
        is_special.then_some(b'\\').into_iter().chain([*byte]).collect::<Vec<u8>>()
    };
    start.iter().flat_map(escape).chain([b'*']).collect()
}

fn damage_of_record(rest: &[u8], bytes: &[u8]) -> Option<String> {
    let Some(key) = record_from(rest) else { return Some("its key is no key of a record".into()) };
    item_of(&key, bytes).err().map(|_| "it is no record, or damaged".into())
}

/// Formats a bucket: its namespace and the parts of its key.
fn bucket_name(rest: &[u8]) -> String {
    format!("bucket {:?}", Key::from_bytes(rest))
}

fn record_name(rest: &[u8]) -> String {
    match record_from(rest) {
        Some(key) => format!("record {:?} {:?}", key.partition, key.sort),
        None => format!("record {:?}", String::from_utf8_lossy(rest)),
    }
}

fn garbage(command: &str) -> StoreError {
    ServerError::Garbage(format!("{command} answered something of another form"))
        .into_error(Default::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_the_prefix_and_nothing_else() {
        assert_eq!(pattern(b"{a*b}b:"), b"{a\\*b}b:*");
    }
}

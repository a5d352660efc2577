//! Addresses of buckets in the table.

use std::fmt::Write;

use tollgate_store::records::ItemKey;
use tollgate_store::usage::bucket_of_usage;
use tollgate_store::{BucketRef, Key, StoreError};

/// The longest partition key of an item, and sort key of an index, in bytes.
const KEY_MAX: usize = 1_024;

/// The sort key of every bucket.
pub(crate) const STATE: &str = "#STATE";

/// The address of a bucket: a namespace and a key in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) namespace: Box<str>,
    pub(crate) key: Key,
}

impl Address {
    pub(crate) fn of(place: &BucketRef<'_>) -> Result<Address, StoreError> {
        let address = Address { namespace: place.namespace.into(), key: place.key.clone() };
        let len = address.partition(0).len();
        if len > KEY_MAX {
            let why =
                format!("the key {:?} takes {len} bytes in the table; at most {KEY_MAX} may be", place.key);
            return Err(StoreError::BadCall(why));
        }
        Ok(address)
    }

    /// Returns the bucket of an entity and a resource.
    pub(crate) fn pair(namespace: &str, entity: &str, resource: &str) -> Address {
        Address { namespace: namespace.into(), key: Key::new(&[entity, resource]) }
    }

    /// Returns the bucket whose usage is in the record at a key.
    pub(crate) fn of_usage(key: &ItemKey) -> Option<Address> {
        let (space, entity, resource) = bucket_of_usage(key)?;
        Some(Address::pair(&name_of(space)?, entity, resource))
    }

    /// Returns the entity and the resource, if the key has these parts and the table can separate them.
    pub(crate) fn names(&self) -> Option<(&str, &str)> {
        self.key.pair().filter(|(entity, resource)| is_plain(entity) && is_plain(resource))
    }

    /// Returns the namespace as keys have it.
    pub(crate) fn space(&self) -> String {
        space(&self.namespace)
    }

    /// Returns the partition of one of its items.
    pub(crate) fn partition(&self, shard: u32) -> String {
        let mut partition = self.space();
        match self.names() {
            Some((entity, resource)) => {
                let _ = write!(partition, "/BUCKET#{entity}#{resource}#{shard}");
            }
            // Other keys are written as hexadecimal bytes.
            None => {
                partition.push_str("/KEY#");
                self.key.as_bytes().iter().for_each(|byte| {
                    let _ = write!(partition, "{byte:02x}");
                });
                let _ = write!(partition, "#{shard}");
            }
        }
        partition
    }

    /// Parses the address and the shard of a partition.
    pub(crate) fn parse(partition: &str) -> Option<(Address, u32)> {
        let (space, rest) = partition.split_once('/')?;
        let namespace = name_of(space)?;
        let (kind, rest) = rest.split_once('#')?;
        let (name, shard) = rest.rsplit_once('#')?;
        let key = match kind {
            "BUCKET" => {
                let (entity, resource) = name.split_once('#')?;
                Key::new(&[entity, resource])
            }
            "KEY" => Key::from_bytes(&bytes_of(name)?),
            _ => return None,
        };
        Some((Address { namespace: namespace.into(), key }, shard.parse().ok()?))
    }

    /// Returns the keys of the indexes by resource, by entity and by namespace: pairs of attributes.
    pub(crate) fn index_keys(&self, shard: u32) -> Vec<(&'static str, String)> {
        let space = self.space();
        let mut keys = match self.key.pair() {
            None => Vec::new(),
            Some((entity, resource)) => vec![
                ("GSI2PK", format!("{space}/RESOURCE#{resource}")),
                ("GSI2SK", format!("BUCKET#{entity}#{shard}")),
                ("GSI3PK", format!("{space}/ENTITY#{entity}")),
                ("GSI3SK", format!("BUCKET#{resource}#{shard}")),
            ],
        };
        keys.push(("GSI4SK", self.partition(shard)[space.len() + 1..].to_owned()));
        keys.push(("GSI4PK", space));
        keys
    }
}

/// Returns a namespace as keys have it: the part of a partition before the first `/`.
pub(crate) fn space(namespace: &str) -> String {
    namespace.replace('%', "%25").replace('/', "%2F")
}

fn name_of(space: &str) -> Option<String> {
    if space.contains('%') { Some(space.replace("%2F", "/").replace("%25", "%")) } else { Some(space.into()) }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains('#')
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks_exact(2);
    if !digits.remainder().is_empty() {
        return None;
    }
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_of_an_entity_and_a_resource_is_where_the_original_has_it() {
        let address = Address::pair("ns", "user-1", "gpt-4");
        assert_eq!(address.partition(3), "ns/BUCKET#user-1#gpt-4#3");
        let keys = address.index_keys(3).into_iter().map(|(name, key)| format!("{name}={key}"));
        let expected = [
            "GSI2PK=ns/RESOURCE#gpt-4",
            "GSI2SK=BUCKET#user-1#3",
            "GSI3PK=ns/ENTITY#user-1",
            "GSI3SK=BUCKET#gpt-4#3",
            "GSI4SK=BUCKET#user-1#gpt-4#3",
            "GSI4PK=ns",
        ];
        assert_eq!(keys.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_key_has_a_partition_of_its_own_that_says_it() {
        let keys: [&[&str]; 8] = [
            &[],
            &["a"],
            &["a", "b"],
            &["a#b", "c"],
            &["a", "b#c"],
            &["", "x"],
            &["a", "b", "c"],
            &["ü/", "%"],
        ];
        let mut seen = std::collections::HashSet::new();
        for namespace in ["ns", "n/s", "n%2Fs"] {
            for parts in keys {
                let address = Address { namespace: namespace.into(), key: Key::new(parts) };
                let partition = address.partition(7);
                assert_eq!(Address::parse(&partition), Some((address, 7)));
                assert!(seen.insert(partition));
            }
        }
        for foreign in ["ns/ENTITY#a", "ns", "ns/BUCKET#a#0", "ns/BUCKET#a#b#c", "ns/KEY#0#1", "ns/KEY#zz#1"]
        {
            assert_eq!(Address::parse(foreign), None, "{foreign}");
        }
    }
}

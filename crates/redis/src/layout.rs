//! Key layout: the names of all keys.
//!
//! All keys of a store have one hash tag, its prefix, so all of them are in one slot of a cluster. It cannot be less: a
//! change of a record is one transaction with the check that its namespace is there, which is a record of another
//! namespace, and a bucket changes together with records.

use tollgate_core::Tick;
use tollgate_store::Key;
use tollgate_store::records::{Index, ItemKey, index_number};

/// The names of the keys of one store.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    tag: Vec<u8>,
}

impl Layout {
    /// Returns the layout under a prefix with no braces in it.
    pub(crate) fn new(prefix: &str) -> Layout {
        Layout { tag: format!("{{{prefix}}}").into_bytes() }
    }

    fn key(&self, kind: &str, parts: &[&[u8]]) -> Vec<u8> {
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut key = Vec::with_capacity(self.tag.len() + kind.len() + len);
        key.extend_from_slice(&self.tag);
        key.extend_from_slice(kind.as_bytes());
        parts.iter().for_each(|part| key.extend_from_slice(part));
        key
    }

    /// Returns the prefix of the keys of the buckets of all namespaces.
    pub(crate) fn all_keys_of_buckets(&self) -> Vec<u8> {
        self.key("b:", &[])
    }

    /// Returns the prefix of the keys of the buckets of a namespace; the key of the bucket follows.
    pub(crate) fn buckets(&self, namespace: &str) -> Vec<u8> {
        self.key("b:", &[Key::new(&[namespace]).as_bytes()])
    }

    pub(crate) fn bucket(&self, namespace: &str, key: &Key) -> Vec<u8> {
        self.key("b:", &[Key::new(&[namespace]).as_bytes(), key.as_bytes()])
    }

    /// Returns the key of the list of all buckets of a namespace, in order.
    pub(crate) fn all_buckets(&self, namespace: &str) -> Vec<u8> {
        self.key("B:", &[namespace.as_bytes()])
    }

    /// Returns the key of the list of the buckets of a resource, in order.
    pub(crate) fn resource_buckets(&self, namespace: &str, resource: &str) -> Vec<u8> {
        self.key("R:", &[Key::new(&[namespace, resource]).as_bytes()])
    }

    /// Returns the key that exists if the namespace is closed.
    pub(crate) fn closed(&self, namespace: &str) -> Vec<u8> {
        self.key("x:", &[namespace.as_bytes()])
    }

    /// Returns the key of the claims on a bucket, by waiter and limit: until when, and how much.
    pub(crate) fn claims(&self, namespace: &str, key: &Key) -> Vec<u8> {
        self.key("c:", &[Key::new(&[namespace]).as_bytes(), key.as_bytes()])
    }

    /// Returns the key of the waiters that claim a limit of a bucket, by rank.
    pub(crate) fn queue(&self, namespace: &str, key: &Key, limit: &str) -> Vec<u8> {
        self.key("q:", &[Key::new(&[namespace, limit]).as_bytes(), key.as_bytes()])
    }

    /// Returns the key of the remembered outcome of a call.
    pub(crate) fn outcome(&self, id: u128) -> Vec<u8> {
        self.key("i:", &[&id.to_be_bytes()])
    }

    /// Returns the prefix of the keys of all records.
    pub(crate) fn records(&self) -> Vec<u8> {
        self.key("r:", &[])
    }

    pub(crate) fn record(&self, key: &ItemKey) -> Vec<u8> {
        self.key("r:", &[&record_bytes(key)])
    }

    /// Returns the prefix of the keys of the records of a partition; the sort key follows.
    pub(crate) fn records_of(&self, partition: &str) -> Vec<u8> {
        self.key("r:", &[Key::new(&[partition]).as_bytes()])
    }

    /// Returns the key of the list of the sort keys of a partition, in order.
    pub(crate) fn partition(&self, partition: &str) -> Vec<u8> {
        self.key("p:", &[partition.as_bytes()])
    }

    /// Returns the key of the list of a partition of an index, in order.
    pub(crate) fn index(&self, index: Index, partition: &str) -> Vec<u8> {
        self.key("n:", &[format!("{}:", index_number(index)).as_bytes(), partition.as_bytes()])
    }

    /// Returns the key of the list of the records that expire, by when.
    pub(crate) fn expiring(&self) -> Vec<u8> {
        self.key("e", &[])
    }
}

/// Encodes the key of a record.
pub(crate) fn record_bytes(key: &ItemKey) -> Vec<u8> {
    [Key::new(&[&key.partition]).as_bytes(), key.sort.as_bytes()].concat()
}

/// Decodes the key of a record.
pub(crate) fn record_from(bytes: &[u8]) -> Option<ItemKey> {
    const LONG: u8 = u8::MAX;
    let (short, rest) = bytes.split_first()?;
    let (partition, sort) = if *short < LONG {
        rest.split_at_checked(usize::from(*short))?
    } else {
        let (len, rest) = rest.split_first_chunk()?;
        rest.split_at_checked(usize::from_be_bytes(*len))?
    };
    Some(ItemKey::new(str::from_utf8(partition).ok()?, str::from_utf8(sort).ok()?))
}

/// Encodes an entry of an index: the sort key there, then the key of the record. In the order of the sort keys.
pub(crate) fn place_bytes(sort: &str, key: &ItemKey) -> Vec<u8> {
    let mut bytes = escaped(sort);
    bytes.extend([0, 0]);
    bytes.extend(record_bytes(key));
    bytes
}

/// Decodes an entry of an index: the sort key there, and the key of the record.
pub(crate) fn place_from(bytes: &[u8]) -> Option<(String, ItemKey)> {
    let end = bytes.windows(2).position(|pair| pair == [0, 0])?;
    let key = record_from(&bytes[end + 2..])?;
    let mut sort = Vec::with_capacity(end);
    let mut rest = bytes[..end].iter();
    while let Some(byte) = rest.next() {
        sort.push(*byte);
        if *byte == 0 && rest.next() != Some(&u8::MAX) {
            return None;
        }
    }
    Some((String::from_utf8(sort).ok()?, key))
}

/// Escapes a text so that two zeros never follow each other; keeps the order of texts.
pub(crate) fn escaped(sort: &str) -> Vec<u8> {
    let escape = |byte: u8| [byte, u8::MAX].into_iter().take(1 + usize::from(byte == 0));
    sort.bytes().flat_map(escape).collect()
}

/// Returns an expiry in milliseconds, which a sorted set can hold exactly. Rounds up: never too early.
pub(crate) fn millis(at: Tick) -> String {
    at.as_micros().div_ceil(1_000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_says_what_it_was_made_of_and_is_in_order() {
        let key = ItemKey::new("ns/ENTITY#ü", "#META");
        let long = ItemKey::new("x".repeat(300), "s\0\0t");
        let sorts = ["", "\0", "\0\0", "\0a", "a", "a\0", "a\0\0b", "a\0b", "aa", "ü"];
        for key in [&key, &long] {
            let places: Vec<Vec<u8>> = sorts.iter().map(|sort| place_bytes(sort, key)).collect();
            assert!(places.is_sorted());
            for (sort, place) in sorts.iter().zip(&places) {
                assert_eq!(place_from(place), Some(((*sort).to_owned(), key.clone())));
            }
        }
    }

    #[test]
    fn keys_of_one_store_share_a_slot_and_nothing_else() {
        let layout = Layout::new("tollgate");
        let keys = [
            layout.bucket("a", &Key::new(&["b"])),
            layout.bucket("", &Key::new(&["a", "b"])),
            layout.record(&ItemKey::new("a", "b")),
            layout.record(&ItemKey::new("ab", "")),
            layout.closed("a"),
            layout.all_buckets("a"),
            layout.resource_buckets("a", "b"),
            layout.outcome(1),
            layout.claims("a", &Key::new(&["b"])),
            layout.queue("a", &Key::new(&["b"]), "c"),
            layout.queue("a", &Key::new(&["c", "b"]), ""),
        ];
        assert!(keys.iter().all(|key| key.starts_with(b"{tollgate}")));
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), keys.len());
    }
}

//! Conditional commits: changes that are made together if what was read has not changed.

use tollgate_core::Tick;
use tollgate_store::BucketRef;
use tollgate_store::records::{Index, Item, ItemKey, item_text};

use crate::codec::RedisRow;
use crate::layout::{Layout, millis, place_bytes, record_bytes};

/// Commands, and the condition for them to be executed.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The keys whose values must be those that were read.
    pub(crate) checked: Vec<Vec<u8>>,
    /// The other keys that are changed.
    pub(crate) touched: Vec<Vec<u8>>,
    /// Commands, as words; the second is the key.
    pub(crate) commands: Vec<Vec<Vec<u8>>>,
    /// How many buckets are new.
    pub(crate) created: usize,
    /// How many records will expire.
    pub(crate) expiring: usize,
    expiry: Expiry,
}

/// Whether keys of buckets expire once the bucket equals a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// By the time of the server.
    #[default]
    ByServer,
    /// Never, because the time comes from another clock.
    Never,
}

impl Changes {
    pub(crate) fn new(expiry: Expiry) -> Changes {
        Changes { expiry, ..Changes::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub(crate) fn check(&mut self, key: &[u8]) {
        if !self.checked.iter().any(|checked| checked == key) {
            self.checked.push(key.to_vec());
        }
    }

    pub(crate) fn command(&mut self, words: &[&[u8]]) {
        let key = words[1];
        let is_known = |keys: &[Vec<u8>]| keys.iter().any(|known| known == key);
        if !is_known(&self.checked) && !is_known(&self.touched) {
            self.touched.push(key.to_vec());
        }
        self.commands.push(words.iter().map(|word| word.to_vec()).collect());
    }

    pub(crate) fn put_bucket(
        &mut self,
        layout: &Layout,
        place: &BucketRef<'_>,
        row: &RedisRow,
        is_new: bool,
        now: Tick,
    ) {
        let BucketRef { namespace, key, .. } = *place;
        let (name, value) = (layout.bucket(namespace, key), row.to_bytes());
        match row.lasts_until().filter(|_| self.expiry == Expiry::ByServer) {
            Some(until) => {
                let keep = until.since(now).as_micros().div_ceil(1_000).max(1).to_string();
                self.command(&[b"SET", &name, &value, b"PX", keep.as_bytes()]);
            }
            None => self.command(&[b"SET", &name, &value]),
        }
        if is_new {
            self.created += 1;
            self.list_bucket(layout, namespace, key, &[b"ZADD", b"0"]);
        }
    }

    /// Deletes a bucket, if it is there, and removes it from the lists.
    pub(crate) fn drop_bucket(&mut self, layout: &Layout, namespace: &str, key: &tollgate_store::Key) {
        self.command(&[b"DEL", &layout.bucket(namespace, key)]);
        self.list_bucket(layout, namespace, key, &[b"ZREM"]);
    }

    fn list_bucket(&mut self, layout: &Layout, namespace: &str, key: &tollgate_store::Key, words: &[&[u8]]) {
        let resource = key.pair().map(|(_, resource)| layout.resource_buckets(namespace, resource));
        for list in [Some(layout.all_buckets(namespace)), resource].into_iter().flatten() {
            let mut command: Vec<&[u8]> = vec![words[0], &list];
            command.extend(&words[1..]);
            command.push(key.as_bytes());
            self.command(&command);
        }
    }

    /// Replaces the record `stored` by `item`, in its partition and in all indexes.
    pub(crate) fn put_record(
        &mut self,
        layout: &Layout,
        key: &ItemKey,
        stored: Option<&Item>,
        item: Option<&Item>,
    ) {
        if stored == item {
            return;
        }
        let (name, bytes) = (layout.record(key), record_bytes(key));
        match item {
            Some(item) => self.command(&[b"SET", &name, item_text(item).as_bytes()]),
            None => self.command(&[b"DEL", &name]),
        }
        let places = |item: Option<&Item>| {
            let mut places = Vec::new();
            if let Some(item) = item {
                places.push((layout.partition(&key.partition), key.sort.as_bytes().to_vec()));
                let own = ItemKey::new(key.namespace(), &key.partition);
                let all = [(Index::Namespace, own)].into_iter().chain(item.indexed.iter().cloned());
                places.extend(all.map(|(index, place)| {
                    (layout.index(index, &place.partition), place_bytes(&place.sort, key))
                }));
            }
            places
        };
        let (before, after) = (places(stored), places(item));
        for (list, member) in before.iter().filter(|place| !after.contains(place)) {
            self.command(&[b"ZREM", list, member]);
        }
        for (list, member) in after.iter().filter(|place| !before.contains(place)) {
            self.command(&[b"ZADD", list, b"0", member]);
        }
        let expires = |item: Option<&Item>| item.and_then(|item| item.expires);
        match (expires(stored), expires(item)) {
            (_, Some(at)) => {
                self.expiring += 1;
                self.command(&[b"ZADD", &layout.expiring(), millis(at).as_bytes(), &bytes]);
            }
            (Some(_), None) => self.command(&[b"ZREM", &layout.expiring(), &bytes]),
            (None, None) => {}
        }
    }
}

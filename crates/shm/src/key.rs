//! Keys of the ordered map: parts one behind the other, so that keys compare as their parts do.
//!
//! A part that others follow ends with the bytes 0 and 1, and a 0 in it is written as 0 and 255. So no part runs into
//! the next, and keys sort as their parts do.

use crate::alloc::{word_of, words_for};

/// The kind of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum KeyKind {
    /// A bucket: namespace, key.
    Bucket = 1,
    /// A bucket of a resource: namespace, resource, key.
    OfResource,
    /// A namespace that was closed.
    Closed,
    /// Limits, by their text.
    Limits,
    /// A call, by its id.
    Call,
    /// A call, by when it was made and its id.
    CallAt,
    /// A record: partition, sort key.
    Record,
    /// When a record expires: the time, partition, sort key.
    Expiry,
    /// An index entry: number of the index, partition and sort key in the index, those of the record.
    Place,
    /// A waiter: namespace, bucket, limit, rank.
    Waiter,
    /// The number of waiters in a queue: namespace, bucket, limit.
    Queue,
    /// A queue whose head is to ask again: process, namespace, limit, bucket.
    Note,
}

impl KeyKind {
    /// All of them.
    pub(crate) const ALL: [KeyKind; 12] = [
        KeyKind::Bucket,
        KeyKind::OfResource,
        KeyKind::Closed,
        KeyKind::Limits,
        KeyKind::Call,
        KeyKind::CallAt,
        KeyKind::Record,
        KeyKind::Expiry,
        KeyKind::Place,
        KeyKind::Waiter,
        KeyKind::Queue,
        KeyKind::Note,
    ];
}

const INLINE: usize = 120;

/// A key, on the stack unless it is long.
#[derive(Clone)]
pub(crate) struct MapKey {
    inline: [u8; INLINE],
    len: usize,
    heap: Option<Vec<u8>>,
}

impl MapKey {
    #[inline]
    pub(crate) fn new(kind: KeyKind) -> MapKey {
        let mut inline = [0; INLINE];
        inline[0] = kind as u8;
        MapKey { inline, len: 1, heap: None }
    }

    /// Appends a part that other parts follow.
    #[inline]
    #[must_use]
    pub(crate) fn part(mut self, part: &str) -> MapKey {
        self.push_part(part);
        self
    }

    /// Appends the beginning of a part, to find all parts with this prefix.
    #[must_use]
    pub(crate) fn start_of_part(mut self, part: &str) -> MapKey {
        self.push_start_of_part(part);
        self
    }

    /// Appends the last part, or a number of fixed length.
    #[inline]
    #[must_use]
    pub(crate) fn raw(mut self, bytes: &[u8]) -> MapKey {
        self.push(bytes);
        self
    }

    /// As [`part`](MapKey::part), in place: a key is large to be moved for each of its parts.
    #[inline]
    pub(crate) fn push_part(&mut self, part: &str) {
        self.push_start_of_part(part);
        self.push(&[0, 1]);
    }

    #[inline]
    fn push_start_of_part(&mut self, part: &str) {
        let mut rest = part.as_bytes();
        while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
            self.push(&rest[..zero]);
            self.push(&[0, 255]);
            rest = &rest[zero + 1..];
        }
        self.push(rest);
    }

    /// As [`raw`](MapKey::raw), in place.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match (&mut self.heap, self.inline.get_mut(self.len..self.len + bytes.len())) {
            (Some(heap), _) => heap.extend_from_slice(bytes),
            (None, Some(place)) => place.copy_from_slice(bytes),
            (None, None) => {
                let mut heap = self.inline[..self.len].to_vec();
                heap.extend_from_slice(bytes);
                self.heap = Some(heap);
            }
        }
        self.len += bytes.len();
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.heap {
            Some(heap) => heap,
            None => &self.inline[..self.len.min(INLINE)],
        }
    }

    /// Returns the key as words, which compare as its bytes do if the longer of equal ones is the greater.
    #[inline]
    pub(crate) fn with_words<R>(&self, use_words: impl FnOnce(&[u64], u64) -> R) -> R {
        let len = self.len as u64;
        if let Some(heap) = &self.heap {
            let words: Vec<u64> = heap.chunks(8).map(word_of).collect();
            return use_words(&words, len);
        }
        // Behind its end the key is zero, so that the last word needs no padding.
        let mut words = [0; INLINE / 8];
        let used = &mut words[..(words_for(len) as usize).min(INLINE / 8)];
        used.iter_mut().zip(self.inline.chunks_exact(8)).for_each(|(word, chunk)| *word = word_of(chunk));
        use_words(used, len)
    }

    /// Returns the least key that is greater than every key with this prefix. There is one, because no kind is 255.
    pub(crate) fn behind(&self) -> MapKey {
        let mut bytes = self.bytes().to_vec();
        while bytes.last() == Some(&u8::MAX) {
            bytes.pop();
        }
        if let Some(last) = bytes.last_mut() {
            *last += 1;
        }
        MapKey::from_bytes(&bytes)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> MapKey {
        let empty = MapKey { inline: [0; INLINE], len: 0, heap: None };
        empty.raw(bytes)
    }
}

/// Reads the parts of a key, from the front.
pub(crate) struct KeyParts<'a>(&'a [u8]);

impl<'a> KeyParts<'a> {
    /// Returns the parts of a key behind a prefix.
    pub(crate) fn behind(bytes: &'a [u8], beginning: &MapKey) -> Option<KeyParts<'a>> {
        bytes.strip_prefix(beginning.bytes()).map(KeyParts)
    }

    /// Returns the parts of a key of any kind.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<KeyParts<'a>> {
        bytes.split_first().map(|(_, rest)| KeyParts(rest))
    }

    /// Reads the next part that other parts follow.
    pub(crate) fn part(&mut self) -> Option<String> {
        let mut part = Vec::new();
        loop {
            let zero = self.0.iter().position(|byte| *byte == 0)?;
            part.extend_from_slice(&self.0[..zero]);
            let mark = *self.0.get(zero + 1)?;
            self.0 = &self.0[zero + 2..];
            match mark {
                1 => return String::from_utf8(part).ok(),
                255 => part.push(0),
                _ => return None,
            }
        }
    }

    /// Reads a number of fixed length.
    pub(crate) fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*number)
    }

    /// Returns the rest of the key.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_compare_as_their_parts_do() {
        let texts = ["", "\0", "\0\0", "\0a", "\u{1}", "a", "a\0", "a\0b", "a\u{1}", "aa", "b", "ü"];
        let pairs = texts.iter().flat_map(|one| texts.iter().map(move |two| (*one, *two)));
        let pairs: Vec<(&str, &str)> = pairs.collect();
        for one in &pairs {
            for two in &pairs {
                let key =
                    |pair: &(&str, &str)| MapKey::new(KeyKind::Record).part(pair.0).raw(pair.1.as_bytes());
                assert_eq!(key(one).bytes().cmp(key(two).bytes()), one.cmp(two), "{one:?} {two:?}");
            }
            let key = MapKey::new(KeyKind::Place).part(one.0).part(one.1).raw(b"x");
            let mut parts = KeyParts::of(key.bytes()).unwrap();
            assert_eq!((parts.part().as_deref(), parts.part().as_deref()), (Some(one.0), Some(one.1)));
            assert_eq!(parts.rest(), b"x");
        }
    }

    #[test]
    fn long_keys_are_as_good_as_short_ones() {
        for len in [0, 1, 100, 119, 120, 121, 5_000] {
            let text = "x".repeat(len);
            let key = MapKey::new(KeyKind::Bucket).part(&text).raw(b"end");
            let mut parts = KeyParts::of(key.bytes()).unwrap();
            assert_eq!(parts.part(), Some(text));
            assert_eq!(parts.rest(), b"end");
            key.with_words(|words, len| assert_eq!(words.len() as u64, words_for(len)));
        }
    }

    #[test]
    fn what_is_behind_a_beginning_is_behind_all_that_begin_so() {
        let key = MapKey::new(KeyKind::Record).raw(&[7, 255, 255]);
        assert_eq!(key.behind().bytes(), [KeyKind::Record as u8, 8]);
        let key = MapKey::new(KeyKind::Record).raw(b"ab");
        assert_eq!(key.behind().bytes(), [KeyKind::Record as u8, b'a', b'c']);
    }
}

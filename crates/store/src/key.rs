//! Keys of buckets: several parts, kept apart.

use std::fmt;

const INLINE: usize = 22;

/// A length byte that says that the length follows in eight more.
const LONG: u8 = u8::MAX;

/// The key of a bucket. Parts stay apart: `["a:b", "c"]` is not `["a", "b:c"]`.
///
/// Up to 22 bytes are kept inline, so that ten million of them cost no allocation of their own.
///
/// # Examples
///
/// ```
/// use tollgate_store::Key;
///
/// let key = Key::new(&["user-1", "gpt-4"]);
/// assert_eq!(key.pair(), Some(("user-1", "gpt-4")));
/// assert_ne!(Key::new(&["a:b", "c"]), Key::new(&["a", "b:c"]));
/// assert_eq!(Key::from_bytes(key.as_bytes()), key);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(Bytes);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Bytes {
    Inline(u8, [u8; INLINE]),
    Heap(Box<[u8]>),
}

impl Key {
    /// Returns the key with these parts, in this order.
    pub fn new<S: AsRef<str>>(parts: &[S]) -> Key {
        Key::with_bytes(parts, Key::from_bytes)
    }

    /// Calls `use_bytes` with the encoded parts, which are on the stack unless they are long.
    #[inline]
    pub(crate) fn with_bytes<S: AsRef<str>, R>(parts: &[S], use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        let mut stack = [0; 128];
        let mut len = 0;
        let fits = encode(parts, |bytes| {
            let place = stack.get_mut(len..len + bytes.len());
            len += bytes.len();
            place.map(|place| place.copy_from_slice(bytes)).is_some()
        });
        if fits {
            return use_bytes(&stack[..len]);
        }
        let mut heap = Vec::new();
        encode(parts, |bytes| {
            heap.extend_from_slice(bytes);
            true
        });
        use_bytes(&heap)
    }

    /// Returns the key that was written as these [bytes](Key::as_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Key {
        let mut inline = [0; INLINE];
        match inline.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Key(Bytes::Inline(bytes.len() as u8, inline))
            }
            None => Key(Bytes::Heap(bytes.into())),
        }
    }

    /// Returns the two parts, if it has two.
    pub fn pair(&self) -> Option<(&str, &str)> {
        let (first, rest) = decode(self.as_bytes())?;
        let (second, rest) = decode(rest)?;
        if !rest.is_empty() {
            return None;
        }
        Some((str::from_utf8(first).ok()?, str::from_utf8(second).ok()?))
    }

    /// Returns true if this is its only part.
    #[inline]
    pub fn is_only(&self, part: &str) -> bool {
        decode(self.as_bytes()).is_some_and(|(only, rest)| rest.is_empty() && only == part.as_bytes())
    }

    /// Returns true if it has [two parts](Key::pair).
    #[inline]
    pub fn is_pair(&self) -> bool {
        let is_text = |bytes: &[u8]| bytes.is_ascii() || str::from_utf8(bytes).is_ok();
        let second =
            decode(self.as_bytes()).filter(|(first, _)| is_text(first)).and_then(|(_, rest)| decode(rest));
        second.is_some_and(|(second, rest)| rest.is_empty() && is_text(second))
    }

    /// Returns the key as bytes, for stores that write it: each part behind its length, so that keys with the same first
    /// parts have the same first bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline(len, bytes) => &bytes[..usize::from(*len).min(INLINE)],
            Bytes::Heap(bytes) => bytes,
        }
    }
}

/// Writes each part behind its length, for as long as `put` has room.
#[inline]
fn encode<S: AsRef<str>>(parts: &[S], mut put: impl FnMut(&[u8]) -> bool) -> bool {
    parts.iter().all(|part| {
        let part = part.as_ref().as_bytes();
        match u8::try_from(part.len()) {
            Ok(short) if short < LONG => put(&[short]) && put(part),
            _ => put(&[LONG]) && put(&part.len().to_be_bytes()) && put(part),
        }
    })
}

fn decode(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (short, rest) = bytes.split_first()?;
    if *short < LONG {
        return rest.split_at_checked(usize::from(*short));
    }
    let (long, rest) = rest.split_first_chunk()?;
    rest.split_at_checked(usize::from_be_bytes(*long))
}

/// The parts, as text.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        let mut rest = self.as_bytes();
        while let Some((part, tail)) = decode(rest) {
            list.entry(&String::from_utf8_lossy(part));
            rest = tail;
        }
        list.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_apart() {
        assert_ne!(Key::new(&["a:b", "c"]), Key::new(&["a", "b:c"]));
        assert_ne!(Key::new(&["ab", ""]), Key::new(&["a", "b"]));
        assert_ne!(Key::new(&[""]), Key::new(&["", ""]));
        assert_eq!(Key::new(&["a", "b"]), Key::new(&["a".to_string(), "b".to_string()]));
    }

    #[test]
    fn an_only_part_is_the_whole_key() {
        for part in ["", "a", &"x".repeat(254), &"x".repeat(255)] {
            assert!(Key::new(&[part]).is_only(part));
            assert!(!Key::new(&[part, ""]).is_only(part) && !Key::new(&["", part, "b"]).is_only(part));
            assert!(!Key::new(&[format!("{part}b")]).is_only(part));
        }
    }

    #[test]
    fn a_pair_is_two_parts_and_no_more() {
        assert_eq!(Key::new(&["entity", "resource"]).pair(), Some(("entity", "resource")));
        assert_eq!(Key::new(&["", ""]).pair(), Some(("", "")));
        for bytes in [&b"\x01a\x02bc"[..], b"\x00\x00", b"\x02\xC3\xBC\x00", b"\x01\xFF\x00", b"\x00\x01\xFF"]
        {
            let key = Key::from_bytes(bytes);
            assert_eq!(key.is_pair(), key.pair().is_some(), "{bytes:?}");
        }
        for parts in [&[][..], &["a"], &["a", "b", "c"], &["a", "b", ""]] {
            assert_eq!(Key::new(parts).pair(), None);
            assert!(!Key::new(parts).is_pair());
        }
    }

    #[test]
    fn long_and_short_keys_read_the_same() {
        for len in [0, 1, 19, 20, 125, 126, 254, 255, 256, 70_000] {
            let part = "x".repeat(len);
            assert_eq!(format!("{:?}", Key::new(&[&part, "y"])), format!("[{part:?}, \"y\"]"));
        }
    }
}

//! Names of limits.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The longest name of a limit, in characters.
pub const NAME_MAX: usize = 64;

/// The name of a limit: a letter, then letters, digits, `_`, `.` and `-`; at most 64 characters; not `wcu`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// What a valid name looks like, for error messages.
pub(crate) const VALID_NAME: &str =
    "a letter followed by letters, digits, '_', '.' or '-', at most 64 characters, not 'wcu'";

impl Name {
    /// Checks and keeps a name; `None` if it is not valid.
    pub fn new(name: &str) -> Option<Name> {
        let first_is_letter = name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
        let rest_is_plain =
            name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
        let valid = first_is_letter && rest_is_plain && name.len() <= NAME_MAX && name != "wcu";
        valid.then(|| Name(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name of up to 16 bytes as one number, padded with zeros, which no name contains. For a literal it is worked
/// out when the program is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tag(u64, u64);

impl Tag {
    /// `None` if the name is too long.
    #[inline(always)]
    pub(crate) fn of(name: &str) -> Option<Tag> {
        let bytes = name.as_bytes();
        let byte = |index: usize| u64::from(bytes[index]) << (8 * index);
        Some(match bytes.len() {
            0 => Tag(0, 0),
            // Start and end overlap in the middle, where they say the same.
            len @ 1..4 => Tag(byte(0) | byte(len / 2) | byte(len - 1), 0),
            len @ 4..8 => {
                let (start, end) = (bytes.first_chunk()?, bytes.last_chunk()?);
                let end = u64::from(u32::from_le_bytes(*end)) << (8 * (len - 4));
                Tag(u64::from(u32::from_le_bytes(*start)) | end, 0)
            }
            len @ 8..=16 => {
                let (start, end) = (bytes.first_chunk()?, bytes.last_chunk()?);
                let end = u64::from_le_bytes(*end).checked_shr(8 * (16 - len as u32)).unwrap_or(0);
                Tag(u64::from_le_bytes(*start), end)
            }
            _ => return None,
        })
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_tell_names_apart() {
        let names: Vec<String> =
            ["a", "b", "ab", "ba", "abc", "adc", "abd", "abcd", "abce", "abcdefg", "abcdxfg"]
                .into_iter()
                .map(String::from)
                .chain((8..=16).map(|len| "n".repeat(len)))
                .collect();
        for one in &names {
            for two in &names {
                assert_eq!(Tag::of(one) == Tag::of(two), one == two, "{one} {two}");
            }
        }
        assert_eq!(Tag::of(&"n".repeat(17)), None);
    }

    #[test]
    fn names_are_checked() {
        for good in ["rpm", "a", "tokens.in", "call_count", "x-1", &"n".repeat(NAME_MAX)] {
            assert!(Name::new(good).is_some(), "{good}");
        }
        for bad in ["", "1rpm", "_x", "a b", "a#b", "wcu", "é", "a/b", &"n".repeat(NAME_MAX + 1)] {
            assert!(Name::new(bad).is_none(), "{bad}");
        }
    }
}

//! Names of limits.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The maximum length of a limit's name, in characters.
pub const NAME_MAX: usize = 64;

/// The name of a limit: a letter, then letters, digits, `_`, `.` and `-`; at most 64 characters;
/// not `wcu`.
///
/// ```
/// use tollgate_core::Name;
///
/// let name = Name::new("tokens.in").expect("the name is valid");
/// assert_eq!(name, "tokens.in");
/// assert_eq!(Name::new("1st"), None);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// Describes a valid name, for error messages.
pub(crate) const VALID_NAME: &str =
    "a letter followed by letters, digits, '_', '.' or '-', at most 64 characters, not 'wcu'";

/// The reserved name of a [cooldown](crate::Limit::cooldown).
pub(crate) const COOLDOWN: &str = "_cooldown_";

impl Name {
    /// Returns the name, or `None` if `name` is not valid.
    pub fn new(name: &str) -> Option<Name> {
        let first_is_letter = name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
        let rest_is_plain =
            name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
        let valid = first_is_letter && rest_is_plain && name.len() <= NAME_MAX && name != "wcu";
        valid.then(|| Name(name.into()))
    }

    /// Returns the reserved name of a cooldown. [`Name::new`] rejects it, and it is too long for a
    /// [`Tag`].
    pub(crate) fn cooldown() -> Name {
        Name(COOLDOWN.into())
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a limit in a demand, with the tag that [`Limits::index_of`](crate::Limits::index_of)
/// compares. For a literal the compiler computes the tag.
// Hidden: public only because `demand!` expands to it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct HashedName<'a> {
    text: &'a str,
    pub(crate) tag: Tag,
}

impl<'a> HashedName<'a> {
    /// Wraps any text; the lookup finds out whether it is the name of a limit.
    pub const fn new(text: &'a str) -> HashedName<'a> {
        HashedName { text, tag: Tag::of(text) }
    }

    /// Wraps a text whose tag was computed before.
    pub(crate) const fn tagged(text: &'a str, tag: Tag) -> HashedName<'a> {
        HashedName { text, tag }
    }

    /// Returns the text.
    #[inline]
    pub const fn as_str(self) -> &'a str {
        self.text
    }
}

/// A text of up to 8 bytes as one number, padded with zero bytes. Longer text, and text with a zero
/// byte, has the tag [`Tag::NONE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tag(u64);

impl Tag {
    /// The tag of text that has no tag of its own. No short text has this tag, because no text
    /// contains a byte of 255.
    pub(crate) const NONE: Tag = Tag(u64::MAX);

    pub(crate) const fn of(name: &str) -> Tag {
        let bytes = name.as_bytes();
        if bytes.len() > 8 {
            return Tag::NONE;
        }
        let (mut tag, mut index) = (0, 0);
        while index < bytes.len() {
            if bytes[index] == 0 {
                return Tag::NONE;
            }
            tag |= (bytes[index] as u64) << (8 * index);
            index += 1;
        }
        Tag(tag)
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
    fn short_names_have_distinct_tags() {
        let short =
            ["a", "b", "ab", "ba", "abc", "adc", "abcd", "abce", "abcdefg", "abcdefgh", "abcdefgi", "é"];
        for one in short {
            for two in short {
                assert_eq!(Tag::of(one) == Tag::of(two), one == two, "{one} {two}");
            }
            assert_ne!(Tag::of(one), Tag::NONE);
        }
        assert_eq!(Tag::of("abcdefghi"), Tag::NONE);
        assert_eq!(Tag::of("a\0"), Tag::NONE);
    }

    #[test]
    fn a_valid_name_is_accepted_and_an_invalid_one_is_refused() {
        for good in ["rpm", "a", "tokens.in", "call_count", "x-1", &"n".repeat(NAME_MAX)] {
            assert!(Name::new(good).is_some(), "{good}");
        }
        for bad in ["", "1rpm", "_x", "a b", "a#b", "wcu", "é", "a/b", &"n".repeat(NAME_MAX + 1)] {
            assert!(Name::new(bad).is_none(), "{bad}");
        }
    }
}

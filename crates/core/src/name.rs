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

/// What a cooldown is called.
pub(crate) const COOLDOWN: &str = "_cooldown_";

impl Name {
    /// Checks and keeps a name; `None` if it is not valid.
    pub fn new(name: &str) -> Option<Name> {
        let first_is_letter = name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
        let rest_is_plain =
            name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
        let valid = first_is_letter && rest_is_plain && name.len() <= NAME_MAX && name != "wcu";
        valid.then(|| Name(name.into()))
    }

    /// The name of a cooldown. It is not valid for anything else, and too long for a [`Tag`].
    pub(crate) fn cooldown() -> Name {
        Name(COOLDOWN.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a limit as a demand gives it, ready to be looked up. For a literal that is done when the program
/// is compiled.
#[derive(Clone, Copy, Debug)]
pub struct HashedName<'a> {
    text: &'a str,
    pub(crate) tag: Tag,
}

impl<'a> HashedName<'a> {
    /// Any text; whether it is the name of a limit shows when it is looked up.
    pub const fn new(text: &'a str) -> HashedName<'a> {
        HashedName { text, tag: Tag::of(text) }
    }

    /// A text whose tag is known.
    pub(crate) const fn tagged(text: &'a str, tag: Tag) -> HashedName<'a> {
        HashedName { text, tag }
    }

    /// The text.
    #[inline]
    pub const fn as_str(self) -> &'a str {
        self.text
    }
}

/// A name of up to 8 bytes as one number, padded with zeros, which no name contains; other text has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tag(u64);

impl Tag {
    /// What a longer name has, and no shorter one: no text has a byte of 255.
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
    fn tags_tell_short_names_apart() {
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
    fn names_are_checked() {
        for good in ["rpm", "a", "tokens.in", "call_count", "x-1", &"n".repeat(NAME_MAX)] {
            assert!(Name::new(good).is_some(), "{good}");
        }
        for bad in ["", "1rpm", "_x", "a b", "a#b", "wcu", "é", "a/b", &"n".repeat(NAME_MAX + 1)] {
            assert!(Name::new(bad).is_none(), "{bad}");
        }
    }
}

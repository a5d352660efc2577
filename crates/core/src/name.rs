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

/// A name of up to 15 bytes as one number. For a literal it is worked out when the program is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tag(u64, u64);

impl Tag {
    /// `None` if the name is too long. No name has the default tag, because none is empty.
    #[inline(always)]
    pub(crate) fn of(name: &str) -> Option<Tag> {
        let mut packed = [0; 16];
        let len = name.len();
        if len > 15 {
            return None;
        }
        packed[..len].copy_from_slice(name.as_bytes());
        packed[15] = len as u8;
        let packed = u128::from_le_bytes(packed);
        Some(Tag(packed as u64, (packed >> 64) as u64))
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
    fn names_are_checked() {
        for good in ["rpm", "a", "tokens.in", "call_count", "x-1", &"n".repeat(NAME_MAX)] {
            assert!(Name::new(good).is_some(), "{good}");
        }
        for bad in ["", "1rpm", "_x", "a b", "a#b", "wcu", "é", "a/b", &"n".repeat(NAME_MAX + 1)] {
            assert!(Name::new(bad).is_none(), "{bad}");
        }
    }
}

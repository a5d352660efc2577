//! Names: the characters they may have, so that they can be parts of keys.

use std::fmt;

/// The resource name under which limits for all resources of an entity are stored.
pub const DEFAULT_RESOURCE: &str = "_default_";

/// How many characters of a name an error shows.
const SHOWN_MAX: usize = 80;

/// The reason that a name is not valid: what it names, what is wrong with it, and what is valid.
///
/// ```
/// use tollgate_catalog::NameKind;
///
/// let error = NameKind::Entity.check("a b").unwrap_err();
/// assert_eq!((error.what(), error.name()), ("entity", "a b"));
/// assert!(error.to_string().contains("character ' ' at position 2 is not allowed"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    what: &'static str,
    name: String,
    fault: NameFault,
    valid: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NameFault {
    Empty,
    TooLong(usize),
    Character { character: char, position: usize },
    Reserved,
}

/// The kind of a name, for callers that check one before they use a store.
///
/// ```
/// use tollgate_catalog::NameKind;
///
/// assert!(NameKind::Entity.check("user-1").is_ok());
/// assert!(NameKind::Resource.check("gpt#4").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameKind {
    /// An entity.
    Entity,
    /// A resource.
    Resource,
    /// A namespace.
    Namespace,
    /// The id of a namespace.
    NamespaceId,
    /// A principal, which makes changes.
    Principal,
    /// The key of an idempotent change.
    Key,
    /// A managed set of limits.
    ManagedSet,
    /// A limit.
    Limit,
}

/// The rule for names of one kind.
pub(crate) struct NameRule {
    what: &'static str,
    length_max: usize,
    first: fn(char) -> bool,
    rest: fn(char) -> bool,
    reserved: &'static [&'static str],
    valid: &'static str,
}

const ENTITY_VALID: &str =
    "1 to 256 characters, first a letter or digit, then letters, digits, '_', '.', '-', ':' or '@'";

/// Names of entities.
pub(crate) const ENTITY: NameRule = like_entity("entity");

/// Names of parents of entities.
pub(crate) const PARENT: NameRule = like_entity("parent");

/// Names of principals.
pub(crate) const PRINCIPAL: NameRule = like_entity("principal");

/// Keys of idempotent changes.
pub(crate) const IDEMPOTENCY_KEY: NameRule = like_entity("key");

/// Names of managed sets of limits.
pub(crate) const MANAGED_SET: NameRule = like_entity("set");

const fn like_entity(what: &'static str) -> NameRule {
    NameRule {
        what,
        length_max: 256,
        first: |c| c.is_ascii_alphanumeric(),
        rest: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ':' | '@'),
        reserved: &[],
        valid: ENTITY_VALID,
    }
}

/// Names of resources.
pub(crate) const RESOURCE: NameRule = NameRule {
    what: "resource",
    length_max: 64,
    first: |c| c.is_ascii_alphabetic(),
    rest: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/'),
    reserved: &[DEFAULT_RESOURCE],
    valid: "1 to 64 characters, first a letter, then letters, digits, '_', '-', '.', ':' or '/'",
};

/// Names of limits, where a limit is looked up by its name.
pub(crate) const LIMIT: NameRule = NameRule {
    what: "limit",
    length_max: 64,
    first: |c| c.is_ascii_alphabetic(),
    rest: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'),
    reserved: &["wcu"],
    valid: "1 to 64 characters, first a letter, then letters, digits, '_', '.' or '-', not 'wcu'",
};

/// Names of namespaces.
pub(crate) const NAMESPACE: NameRule = NameRule {
    what: "namespace",
    length_max: 64,
    first: |c| c.is_ascii_alphanumeric(),
    rest: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'),
    reserved: &["_"],
    valid: "1 to 64 characters, first a letter or digit, then letters, digits, '_', '-' or '.'",
};

/// Ids of namespaces. Those of other programs may have another length than ours.
pub(crate) const NAMESPACE_ID: NameRule = NameRule {
    what: "namespace id",
    length_max: 64,
    first: |c| c.is_ascii_alphanumeric() || c == '_',
    rest: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
    reserved: &["_"],
    valid: "an id as it was given out: letters, digits, '_' and '-', not starting with '-'",
};

impl NameKind {
    /// Checks that the name is valid.
    ///
    /// # Errors
    ///
    /// [`NameError`] with the reason.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_catalog::NameKind;
    ///
    /// assert!(NameKind::Entity.check("user-1").is_ok());
    /// assert!(NameKind::Resource.check("gpt#4").is_err());
    /// ```
    pub fn check(self, name: &str) -> Result<(), NameError> {
        let rule = match self {
            NameKind::Entity => &ENTITY,
            NameKind::Resource => &RESOURCE,
            NameKind::Namespace => &NAMESPACE,
            NameKind::NamespaceId => &NAMESPACE_ID,
            NameKind::Principal => &PRINCIPAL,
            NameKind::Key => &IDEMPOTENCY_KEY,
            NameKind::ManagedSet => &MANAGED_SET,
            NameKind::Limit => &LIMIT,
        };
        rule.check(name)
    }
}

impl NameRule {
    /// Checks that the name is valid.
    pub(crate) fn check(&self, name: &str) -> Result<(), NameError> {
        let refuse = |fault| Err(NameError { what: self.what, name: shown(name), fault, valid: self.valid });
        if name.is_empty() {
            return refuse(NameFault::Empty);
        }
        if self.reserved.contains(&name) {
            return refuse(NameFault::Reserved);
        }
        let is_bad =
            |(index, c): &(usize, char)| !if *index == 0 { (self.first)(*c) } else { (self.rest)(*c) };
        if let Some((index, character)) = name.chars().enumerate().find(is_bad) {
            return refuse(NameFault::Character { character, position: index + 1 });
        }
        let length = name.chars().count();
        if length > self.length_max { refuse(NameFault::TooLong(length)) } else { Ok(()) }
    }
}

/// Checks that limits can be stored under this name: a resource, or the name for all of them.
pub(crate) fn check_resource_or_default(name: &str) -> Result<(), NameError> {
    if name == DEFAULT_RESOURCE { Ok(()) } else { RESOURCE.check(name) }
}

fn shown(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN_MAX).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

impl NameError {
    /// Returns what was named: `entity`, `resource` and so on.
    pub fn what(&self) -> &str {
        self.what
    }

    /// Returns the name, or its beginning if it is very long.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what is valid.
    pub fn valid(&self) -> &str {
        self.valid
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}: ", self.what, self.name)?;
        match &self.fault {
            NameFault::Empty => f.write_str("it is empty")?,
            NameFault::TooLong(length) => write!(f, "it has {length} characters")?,
            NameFault::Character { character, position } => {
                write!(f, "character {character:?} at position {position} is not allowed")?;
            }
            NameFault::Reserved => f.write_str("it is reserved")?,
        }
        write!(f, "; valid is {}", self.valid)
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_pass() {
        let long = "x".repeat(256);
        for name in ["user-1", "0", "a:b@c.d_e-f", &long] {
            assert_eq!(ENTITY.check(name), Ok(()), "{name}");
        }
        for name in ["gpt-4", "openai/gpt-4", "a", "gpt-3.5_turbo", "claude:beta", &long[..64]] {
            assert_eq!(RESOURCE.check(name), Ok(()), "{name}");
        }
        for name in ["default", "tenant-alpha", "t.1_x", "7"] {
            assert_eq!(NAMESPACE.check(name), Ok(()), "{name}");
        }
        assert_eq!(check_resource_or_default("_default_"), Ok(()));
    }

    #[test]
    fn an_error_shows_the_name_the_position_and_what_is_valid() {
        let error = RESOURCE.check("gpt#4").unwrap_err();
        let text = "resource \"gpt#4\": character '#' at position 4 is not allowed; valid is 1 to 64 characters, \
                    first a letter, then letters, digits, '_', '-', '.', ':' or '/'";
        assert_eq!(error.to_string(), text);
        for (rule, name, message) in [
            (&ENTITY, "", "it is empty"),
            (&ENTITY, "$SYSTEM", "character '$' at position 1"),
            (&ENTITY, "a b", "character ' ' at position 2"),
            (&ENTITY, "é", "character 'é' at position 1"),
            (&ENTITY, "a\n", "character '\\n' at position 2"),
            (&RESOURCE, "4", "character '4' at position 1"),
            (&RESOURCE, "_x", "character '_' at position 1"),
            (&RESOURCE, "_default_", "it is reserved"),
            (&NAMESPACE, "_", "it is reserved"),
            (&NAMESPACE, "a/b", "character '/' at position 2"),
            (&NAMESPACE_ID, "-abc", "character '-' at position 1"),
            (&LIMIT, "wcu", "it is reserved"),
        ] {
            let text = rule.check(name).unwrap_err().to_string();
            assert!(text.contains(message), "{text}");
        }
    }

    #[test]
    fn a_long_name_is_counted_and_shown_in_part() {
        let error = ENTITY.check(&"x".repeat(257)).unwrap_err();
        assert!(error.to_string().contains("it has 257 characters"));
        assert_eq!(error.name().chars().count(), SHOWN_MAX + 1);
    }
}

//! Names on the command line, checked before anything is opened: a bad one writes nothing.

use tollgate::catalog::NameKind;

/// An entity.
pub(crate) fn entity(text: &str) -> Result<String, String> {
    checked(NameKind::Entity, text, "user-1")
}

/// A resource.
pub(crate) fn resource(text: &str) -> Result<String, String> {
    checked(NameKind::Resource, text, "gpt-4")
}

/// A namespace.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    checked(NameKind::Namespace, text, "tenant-alpha")
}

/// The id of a namespace.
pub(crate) fn namespace_id(text: &str) -> Result<String, String> {
    checked(NameKind::NamespaceId, text, "b3JwaGFuLTE")
}

/// A limit.
pub(crate) fn limit(text: &str) -> Result<String, String> {
    checked(NameKind::Limit, text, "tpm")
}

/// Who makes changes.
pub(crate) fn principal(text: &str) -> Result<String, String> {
    checked(NameKind::Principal, text, "alice@example.com")
}

/// The key of a change that happens once.
pub(crate) fn key(text: &str) -> Result<String, String> {
    checked(NameKind::Key, text, "invoice-17")
}

/// A managed set of limits.
pub(crate) fn managed_set(text: &str) -> Result<String, String> {
    checked(NameKind::ManagedSet, text, "prod")
}

/// How many characters the name of a limit set may have, and that of its namespace.
const SET_NAME_MAX: usize = 256;

/// A limit set: whatever a program called it.
pub(crate) fn limit_set(text: &str) -> Result<String, String> {
    set_text(text, "openai/blue")
}

/// The namespace of limit sets: whatever a program called it.
pub(crate) fn set_namespace(text: &str) -> Result<String, String> {
    set_text(text, tollgate::SETS_NAMESPACE)
}

fn set_text(text: &str, example: &str) -> Result<String, String> {
    let is_valid = (1..=SET_NAME_MAX).contains(&text.chars().count()) && !text.contains(char::is_control);
    let valid =
        format!("1 to {SET_NAME_MAX} characters, none of them a control character, such as {example}");
    if is_valid { Ok(text.into()) } else { Err(format!("valid is {valid}")) }
}

fn checked(kind: NameKind, text: &str, example: &str) -> Result<String, String> {
    kind.check(text).map_err(|why| {
        // The caller that shows this has shown the name already.
        let (said, shown) = (why.to_string(), format!("{} {:?}: ", why.what(), why.name()));
        format!("{}, such as {example}", said.strip_prefix(&shown).unwrap_or(&said))
    })?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_name_says_where_and_shows_a_good_one() {
        assert_eq!(entity("user-1"), Ok("user-1".into()));
        let why = resource("gpt#4").unwrap_err();
        assert!(why.starts_with("character '#' at position 4 is not allowed; valid is "), "{why}");
        assert!(why.ends_with(", such as gpt-4"), "{why}");
    }
}

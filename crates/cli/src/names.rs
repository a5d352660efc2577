//! Names on the command line, validated before anything is opened.

use tollgate::catalog::NameKind;

/// Parses the name of an entity.
pub(crate) fn entity(text: &str) -> Result<String, String> {
    checked(NameKind::Entity, text, "user-1")
}

/// Parses the name of a resource.
pub(crate) fn resource(text: &str) -> Result<String, String> {
    checked(NameKind::Resource, text, "gpt-4")
}

/// Parses the name of a namespace.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    checked(NameKind::Namespace, text, "tenant-alpha")
}

/// Parses the id of a namespace.
pub(crate) fn namespace_id(text: &str) -> Result<String, String> {
    checked(NameKind::NamespaceId, text, "b3JwaGFuLTE")
}

/// Parses the name of a limit.
pub(crate) fn limit(text: &str) -> Result<String, String> {
    checked(NameKind::Limit, text, "tpm")
}

/// Parses the principal of audit events.
pub(crate) fn principal(text: &str) -> Result<String, String> {
    checked(NameKind::Principal, text, "alice@example.com")
}

/// Parses an idempotency key.
pub(crate) fn key(text: &str) -> Result<String, String> {
    checked(NameKind::Key, text, "invoice-17")
}

/// Parses the name of a managed set.
pub(crate) fn managed_set(text: &str) -> Result<String, String> {
    checked(NameKind::ManagedSet, text, "prod")
}

/// The maximum length of the name of a limit set, and of its namespace, in characters.
const SET_NAME_MAX: usize = 256;

/// Parses the name of a limit set, which programs choose freely.
pub(crate) fn limit_set(text: &str) -> Result<String, String> {
    set_text(text, "openai/blue")
}

/// Parses the namespace of limit sets, which programs choose freely.
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
        // clap shows the name in front of this message.
        let message = why.to_string();
        let name = format!("{} {:?}: ", why.what(), why.name());
        format!("{}, such as {example}", message.strip_prefix(&name).unwrap_or(&message))
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

use crate::output::style::{self, paint};

/// Returns the label of an action: `action_label(false, "created", "create")` is `created`, and in a dry run
/// `would create`.
pub(crate) fn action_label(dry_run: bool, done: &str, to_do: &str) -> String {
    if dry_run { paint(style::WARN, format!("would {to_do}")) } else { paint(style::GOOD, done) }
}

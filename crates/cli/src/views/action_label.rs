use crate::output::style::{self, paint};

/// What was done, or in a dry run what would be: `action_label(false, "created", "create")` is `created`, in a dry run it is
/// `would create`.
pub(crate) fn action_label(dry_run: bool, done: &str, to_do: &str) -> String {
    if dry_run { paint(style::WARN, format!("would {to_do}")) } else { paint(style::GOOD, done) }
}

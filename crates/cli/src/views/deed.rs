use crate::output::style::{self, paint};

/// What was done, or in a dry run what would be: `deed(false, "created", "create")` is `created`, in a dry run it is
/// `would create`.
pub(crate) fn deed(dry_run: bool, done: &str, to_do: &str) -> String {
    if dry_run { paint(style::WARN, format!("would {to_do}")) } else { paint(style::GOOD, done) }
}

//! The default principal of changes: the user that the program runs as.

use std::ffi::OsString;
use std::fs;

/// The principal of an audit event if the user is not known.
const UNKNOWN: &str = "unknown";

/// The longest principal, in characters.
const LENGTH_MAX: usize = 256;

/// Returns the user that this program runs as, as a principal.
pub(crate) fn login() -> String {
    let by_id = || login_of(user_id()?, &fs::read_to_string("/etc/passwd").ok()?);
    principal_of(|name| std::env::var_os(name), by_id)
}

/// Returns the login of a user as a principal, with invalid characters replaced: by the variables
/// of the environment, or by `otherwise`. Returns `unknown` if that leaves no login.
pub fn principal_of(
    variable: impl Fn(&str) -> Option<OsString>,
    otherwise: impl FnOnce() -> Option<String>,
) -> String {
    let login = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| variable(name));
    let login = login.filter(|login| !login.is_empty()).map(|login| login.to_string_lossy().into_owned());
    // Services and containers often have no login in their environment.
    let login = login.or_else(otherwise).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_.-:@".contains(c) { c } else { '-' };
    let login: String = login.chars().map(plain).take(LENGTH_MAX).collect();
    let login = login.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if login.is_empty() { UNKNOWN.into() } else { login.into() }
}

/// Returns the login of a user id in the text of `/etc/passwd`.
pub fn login_of(user: u32, users: &str) -> Option<String> {
    let user = user.to_string();
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let line = lines.find(|line| line.get(2) == Some(&user.as_str()))?;
    line.first().map(|login| (*login).to_owned())
}

/// Returns the user id of this process, where the system has it in a file.
#[cfg(unix)]
fn user_id() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").ok().map(|this| this.uid())
}

#[cfg(not(unix))]
fn user_id() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name;

    const USERS: &str = "root:x:0:0::/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n";

    fn principal(user: Option<&str>, number: u32) -> String {
        principal_of(|name| user.filter(|_| name == "USER").map(OsString::from), || login_of(number, USERS))
    }

    #[test]
    fn a_login_that_is_not_a_valid_principal_becomes_one() {
        assert_eq!(principal(Some("alice"), 0), "alice");
        assert_eq!(principal(Some("CORP\\alice b"), 0), "CORP-alice-b");
        assert_eq!(principal(Some("-"), 0), UNKNOWN);
        let long = principal(Some(&"x".repeat(1_000)), 0);
        assert_eq!(name::PRINCIPAL.check(&long), Ok(()));
    }

    #[test]
    fn a_user_without_a_login_in_the_environment_is_looked_up() {
        assert_eq!((principal(None, 1_000), principal(Some(""), 0)), ("alice".into(), "root".into()));
        assert_eq!(principal(None, 7), UNKNOWN);
    }

    #[test]
    fn this_user_is_a_principal() {
        assert_eq!(name::PRINCIPAL.check(&login()), Ok(()));
    }
}

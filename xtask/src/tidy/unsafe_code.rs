//! No `unsafe` outside the crates that call the system, and no crate without the workspace's lints.

use super::{Violation, manifest, source};

/// The crates that need unsafe code.
const HOMES: [&str; 2] = ["crates/sys/", "crates/shm/"];

fn is_home(path: &str) -> bool {
    HOMES.iter().any(|home| path.starts_with(home))
}

/// Finds the keyword in code without comments and strings.
pub(crate) fn check_source(path: &str, code: &str) -> Vec<Violation> {
    if is_home(path) {
        return Vec::new();
    }
    let message = "unsafe code, it belongs in crates/sys or crates/shm, or has a safe equivalent";
    source::lines_with_word(code, "unsafe").map(|line| Violation::new(path, line, message)).collect()
}

/// Requires `[lints] workspace = true`.
pub(crate) fn check_manifest(path: &str, text: &str) -> Option<Violation> {
    let entries = manifest::entries(text);
    let mut lints =
        entries.iter().filter(|entry| entry.table == "lints" || entry.table.starts_with("lints."));
    let good = if is_home(path) {
        // The workspace forbids unsafe code, and a crate cannot lift what is forbidden: it writes its own table.
        lints.next().is_some()
    } else {
        lints.any(|entry| entry.table == "lints" && entry.key == "workspace" && entry.value == "true")
    };
    (!good).then(|| {
        Violation::new(path, 1, "the workspace's lints are off here, add `[lints]` with `workspace = true`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_caught_outside_sys_and_shm() {
        let code = "fn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(check_source("crates/core/src/lib.rs", code)[0].line, 2);
        assert_eq!(check_source("crates/shm/src/lib.rs", code), []);
    }

    #[test]
    fn the_name_of_the_lint_is_not_the_keyword() {
        assert_eq!(check_source("crates/core/src/lib.rs", "#![forbid(unsafe_code)]\n"), []);
    }

    #[test]
    fn a_manifest_without_lints_is_caught() {
        assert!(check_manifest("crates/core/Cargo.toml", "[package]\nname = \"x\"\n").is_some());
        assert!(check_manifest("crates/core/Cargo.toml", "[lints]\nworkspace = false\n").is_some());
        assert!(check_manifest("crates/core/Cargo.toml", "[lints]\nworkspace = true\n").is_none());
    }

    #[test]
    fn sys_and_shm_have_lints_of_their_own() {
        assert!(check_manifest("crates/shm/Cargo.toml", "[lints.rust]\nunsafe_code = \"allow\"\n").is_none());
        assert!(check_manifest("crates/shm/Cargo.toml", "[package]\n").is_some());
    }
}

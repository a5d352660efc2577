//! No tracked file contains a path of the author's machine or its package mirror.

use super::Violation;

// Written in two pieces, because this file is checked too.
const DIRECTORIES: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

/// Addresses of registries in settings, lock files and scripts.
const REGISTRIES: [&str; 8] = [
    concat!("sparse", "+http"),
    concat!("registry", "+http"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi.org", "/simple"),
    concat!("files.", "pythonhosted.org"),
    concat!("registry.", "npmjs.org"),
    concat!("index", "-url"),
];

/// Cargo writes this for the public registry, whatever mirror the machine uses.
const PUBLIC: &str = concat!("registry", "+https://github.com/rust-lang/crates.io-index");

/// Checks every line, with comments and strings.
pub(crate) fn check(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.replace(PUBLIC, "");
        if let Some(directory) = DIRECTORIES.iter().find(|directory| has_path(&line, directory)) {
            let message =
                format!("`{directory}` is a directory of one machine, use a path from the repository's root");
            found.push(Violation::new(path, index + 1, message));
        }
        if let Some(registry) = REGISTRIES.iter().find(|registry| line.contains(**registry)) {
            let message = format!("`{registry}` names a registry, leave that to each user's own settings");
            found.push(Violation::new(path, index + 1, message));
        }
    }
    found
}

/// Returns whether the path starts at the root: `$DIR/work/` and `a/work/` do not.
fn has_path(line: &str, directory: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "_-.~}*".contains(c);
    line.match_indices(directory).any(|(at, _)| !line[..at].ends_with(goes_on))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_one_machine_is_caught() {
        for directory in DIRECTORIES {
            assert_eq!(check("a.md", &format!("fine\nsee {directory}x\n"))[0].line, 2);
            assert_eq!(check("a.md", &format!("`{directory}x`")).len(), 1);
            assert_eq!(check("a.md", &format!("$HOME{directory}x ../a{directory}")), []);
        }
    }

    #[test]
    fn a_registry_is_caught() {
        for registry in REGISTRIES {
            assert_eq!(check(".cargo/config.toml", &format!("x = \"{registry}\"\n")).len(), 1, "{registry}");
        }
    }

    #[test]
    fn the_public_registry_in_the_lock_file_passes() {
        assert_eq!(check("Cargo.lock", &format!("source = \"{PUBLIC}\"\n")), []);
    }
}

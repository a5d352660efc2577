//! Pages that the repository must have.

use super::Violation;
use crate::repo::File;

const REQUIRED: [&str; 7] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
];

/// Reports pages that are missing or empty.
pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let present = |name: &str| files.iter().any(|file| file.path == name && !file.text.trim().is_empty());
    let missing = REQUIRED.into_iter().filter(|name| !present(name));
    missing
        .map(|name| Violation::new(name, 1, format!("the file is missing or empty, write {name}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str], text: &str) -> Vec<File> {
        names.iter().map(|name| File { path: (*name).to_owned(), text: text.to_owned() }).collect()
    }

    #[test]
    fn a_missing_page_is_caught_and_so_is_an_empty_one() {
        assert_eq!(check(&files(&REQUIRED, "text")), []);
        assert_eq!(check(&files(&REQUIRED[1..], "text"))[0].path, "ARCHITECTURE.md");
        assert_eq!(check(&files(&REQUIRED, " \n")).len(), 7);
    }
}

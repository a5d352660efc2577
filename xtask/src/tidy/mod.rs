//! `cargo xtask tidy`: checks the house rules.
//!
//! Each rule is a pure function over text in a file of its own, with a test that plants the fault it must catch.

mod clock;
mod crate_pages;
mod dependencies;
mod layers;
mod leftovers;
mod length;
mod links;
mod machine_paths;
mod manifest;
mod pages;
mod private_keys;
mod required_files;
mod source;
mod type_names;
mod unsafe_code;
mod words;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use crate::TaskOutcome;
use crate::metadata::{self, Member};
use crate::repo::{self, File};

/// A violation of a rule: its position, and what to do.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    path: String,
    line: usize,
    message: String,
}

impl Violation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks the repository around the current directory.
pub(crate) fn run(arguments: &[String]) -> Result<TaskOutcome> {
    if let Some(argument) = arguments.first() {
        return Ok(TaskOutcome::Misused(format!("tidy takes no arguments, but was given {argument:?}")));
    }
    let count = check_and_print(&repo::root()?)?;
    println!("xtask tidy: {count} violations");
    Ok(if count == 0 { TaskOutcome::Passed } else { TaskOutcome::Failed })
}

/// Prints every violation on one line, and returns their number.
pub(crate) fn check_and_print(root: &Path) -> Result<usize> {
    let exists = |path: &str| root.join(path).exists();
    let violations = check(&repo::files(root)?, &metadata::load(root)?.members, &exists);
    for violation in &violations {
        println!("{violation}");
    }
    Ok(violations.len())
}

fn check(files: &[File], members: &[Member], exists: &dyn Fn(&str) -> bool) -> Vec<Violation> {
    let mut found = required_files::check(files);
    found.extend(type_names::check(files));
    found.extend(links::check(files, exists));
    found.extend(pages::check(files));
    for file in files {
        found.extend(check_file(file));
    }
    for member in members {
        found.extend(check_member(files, member));
    }
    found.sort();
    found
}

fn check_file(file: &File) -> Vec<Violation> {
    let File { path, text } = file;
    let mut found = machine_paths::check(path, text);
    found.extend(length::check(path, text));
    found.extend(words::check(path, text));
    found.extend(private_keys::check(path, text));
    if path.ends_with(".rs") {
        let code = source::code_only(text);
        found.extend(unsafe_code::check_source(path, &code));
        found.extend(clock::check(path, &code));
        found.extend(leftovers::check(path, &code));
    }
    found
}

fn check_member(files: &[File], member: &Member) -> Vec<Violation> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let manifest = text(&member.manifest).unwrap_or_default();
    let mut found = layers::check(member, manifest);
    found.extend(unsafe_code::check_manifest(&member.manifest, manifest));
    found.extend(dependencies::check(&member.manifest, manifest));
    found.extend(crate_pages::check(member, manifest, &text));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_prints_as_editors_like_it() {
        let violation = Violation::new("crates/core/src/lib.rs", 3, "wrong, right");
        assert_eq!(violation.to_string(), "crates/core/src/lib.rs:3: wrong, right");
    }

    #[test]
    fn every_rule_is_wired_in() {
        let rust = [
            "unsafe fn f() {}",
            "Instant::now();",
            "todo!();",
            concat!("// /ro", "ot/x for no", "body"),
            concat!("// -----BEGIN PRIVATE", " KEY-----"),
        ]
        .join("\n");
        let file = File { path: "crates/core/src/faulty.rs".to_owned(), text: rust + &"\n".repeat(601) };
        assert_eq!(check_file(&file).len(), 7);

        let manifest = "[package]\nname = \"tollgate-core\"\n[dependencies]\ntokio = \"1\"\n";
        let files = [
            File { path: "crates/core/Cargo.toml".to_owned(), text: manifest.to_owned() },
            File { path: "ARCHITECTURE.md".to_owned(), text: "[nothing](nowhere.md)\n".to_owned() },
            File { path: "crates/core/src/desk.rs".to_owned(), text: "struct Desk;\n".to_owned() },
            File { path: "docs/lost.md".to_owned(), text: "# Lost\n".to_owned() },
        ];
        let member = Member {
            name: "tollgate-core".to_owned(),
            manifest: "crates/core/Cargo.toml".to_owned(),
            dependencies: vec![metadata::Dependency { name: "tokio".to_owned(), optional: false }],
            ..Member::default()
        };
        let found: Vec<String> =
            check(&files, &[member], &|_| false).iter().map(ToString::to_string).collect();
        // Layers, lints, dependencies; the description, the crate page, ARCHITECTURE.md; six required files; a metaphor; a link; a page
        // that is not in the summary.
        assert_eq!(found.len(), 3 + 3 + 6 + 1 + 1 + 1, "{found:#?}");
    }
}

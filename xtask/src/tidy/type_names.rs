//! A type name exists once in the workspace, and is not a metaphor.

use std::collections::BTreeMap;

use super::Violation;
use super::source::code_only;
use crate::repo::File;

/// Names that may exist more than once: the first two are alternatives of which a build has one; the last is the public name of
/// what two libraries are about.
const SHARED: [&str; 3] = ["Mutex", "NoFork", "Item"];

/// Words of a waiting room, an office or a body for which the field has a term, and the terms.
const METAPHORS: [(&str, &str); 22] = [
    ("away", "fallback"),
    ("bell", "alarm, waker"),
    ("deed", "operation, change"),
    ("desk", "queue"),
    ("errand", "job, request"),
    ("farewell", "settlement"),
    ("fate", "result"),
    ("flight", "in flight"),
    ("hall", "queues"),
    ("heart", "heartbeat"),
    ("lane", "queue"),
    ("meeting", "state"),
    ("patience", "wait policy, retry policy"),
    ("rehearsal", "dry run"),
    ("room", "queue"),
    ("seat", "locked item"),
    ("shelf", "range, path"),
    ("stash", "buffer"),
    ("stroke", "stamp"),
    ("told", "reported, advertised"),
    ("trip", "transaction"),
    ("whereabouts", "state"),
];

/// Checks the names of types and modules in the sources of all crates.
pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut defined: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for File { path, text } in files.iter().filter(|file| is_source(&file.path)) {
        for (index, line) in code_only(text).lines().enumerate() {
            let Some(name) = defined_by(line) else { continue };
            if let Some((_, terms)) = METAPHORS.iter().find(|(word, _)| name.eq_ignore_ascii_case(word)) {
                let message = format!("`{name}` is a metaphor, the field says {terms}");
                found.push(Violation::new(path, index + 1, message));
            }
            if name.starts_with(char::is_uppercase) {
                defined.entry(name.to_owned()).or_default().push((path, index + 1));
            }
        }
    }
    for (name, places) in defined.iter().filter(|(name, _)| !SHARED.contains(&name.as_str())) {
        let (first, ..) = places[0];
        for (path, line) in &places[1..] {
            let message = format!("`{name}` is also the name of a type in {first}, give each its own");
            found.push(Violation::new(path, *line, message));
        }
    }
    found
}

fn is_source(path: &str) -> bool {
    path.ends_with(".rs") && path.contains("src/")
}

/// Returns the name of the type or module that a line defines. Types within a trait or an impl do not count.
fn defined_by(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let item = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) if rest.starts_with(' ') => rest.trim_start(),
        _ => code,
    };
    let (keyword, rest) = item.split_once(' ')?;
    let is_definition = match keyword {
        "struct" | "enum" | "trait" | "union" | "mod" => true,
        "type" => code.len() == line.len(),
        _ => false,
    };
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| is_definition && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_name_that_exists_twice_is_caught_at_the_second() {
        let one = file("crates/a/src/lib.rs", "pub(crate) struct Row;\nstruct Other;\n");
        let two = file("crates/b/src/lib.rs", "\npub enum Row {}\npub struct Mutex;\n");
        let three = file(
            "crates/c/src/lib.rs",
            "struct Mutex;\n// struct Other;\ntrait Row_ {\n    type Other;\n}\n",
        );
        let found = check(&[one, two, three]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/b/src/lib.rs", 2));
    }

    #[test]
    fn tests_may_name_their_types_as_they_like() {
        let one = file("crates/a/src/lib.rs", "struct Row;\n");
        let two = file("crates/a/tests/rows.rs", "struct Row;\nstruct Desk;\n");
        assert_eq!(check(&[one, two]), []);
    }

    #[test]
    fn a_metaphor_is_caught_as_a_type_and_as_a_module() {
        let found =
            check(&[file("crates/a/src/lib.rs", "mod desk;\npub struct Errand<T>(T);\nstruct Deskwork;\n")]);
        let lines: Vec<usize> = found.iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [1, 2], "{found:?}");
    }
}

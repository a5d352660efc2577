//! Comments and pages name the actor: a process, a caller, a waiter. A pronoun that stands for any of them is refused.

use super::Violation;
use super::source::code_only;

/// Words that hide the actor, or that no reader of the field would search for.
const WORDS: [&str; 6] = ["whoever", "nobody", "somebody", "everybody", "anybody", "in vain"];

/// Generated pages, and the page that says what earlier versions said.
const NOT_READ: [&str; 2] = ["docs/reference/", "CHANGELOG.md"];

/// Looks at the comments of a source and at the prose of a page.
pub(crate) fn check(path: &str, text: &str) -> Vec<Violation> {
    if path.ends_with(".rs") {
        let code = code_only(text);
        let is_comment = |line: &str, code: &str| line.contains("//") && code.len() < line.len();
        let lines = text.lines().zip(code.lines()).enumerate();
        let comments = lines.filter(|(_, (line, code))| is_comment(line, code.trim_end()));
        return comments
            .flat_map(|(index, (line, code))| found(path, index, comment_of(line, code)))
            .collect();
    }
    if !path.ends_with(".md") || NOT_READ.iter().any(|page| path.starts_with(page)) {
        return Vec::new();
    }
    let mut is_code = false;
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            violations.extend(found(path, index, line));
        }
    }
    violations
}

/// What stands behind the code of a line. Strings before a comment are blank in the code, too, so they are cut off with it.
fn comment_of<'l>(line: &'l str, code: &str) -> &'l str {
    let end_of_code = code.trim_end().len();
    line.get(end_of_code..).and_then(|rest| rest.find("//").map(|at| &rest[at..])).unwrap_or_default()
}

fn found(path: &str, index: usize, text: &str) -> Vec<Violation> {
    let text = text.to_lowercase();
    let has = |word: &&&str| {
        let is_letter =
            |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '`' || c == '"');
        text.match_indices(**word).any(|(at, _)| {
            let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
            !is_letter(before) && !is_letter(after)
        })
    };
    let message = |word: &&str| Violation::new(path, index + 1, format!("`{word}`: name the actor"));
    WORDS.iter().filter(has).map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, text).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_word_is_caught_in_a_comment_and_in_prose() {
        let source = "//! Whoever comes.\nfn f() {} // for nobody\n/// Waits in vain.\nfn g() {}\n";
        assert_eq!(lines("crates/a/src/lib.rs", source), [1, 2, 3]);
        assert_eq!(lines("docs/page.md", "It is for everybody.\n"), [1]);
    }

    #[test]
    fn code_strings_names_and_fences_are_left_alone() {
        let source =
            "let nobody = \"for everybody // whoever\";\n// The entity `nobody`, and is_everybody_s.\n";
        assert!(lines("crates/a/src/lib.rs", source).is_empty());
        assert!(lines("docs/page.md", "```sh\ntollgate peek nobody\n```\n").is_empty());
        assert!(lines("docs/reference/cli.md", "for everybody\n").is_empty());
    }
}

//! Plain technical English in comments, pages and help: pronouns that hide the actor, and idioms that readers do not search
//! for, are refused.

use super::Violation;
use super::source::code_only;

/// Phrases that are refused, and what to write instead.
const PHRASES: [(&[&str], &str); 5] = [
    (&["whoever", "nobody", "somebody", "everybody", "anybody"], "name the actor"),
    (
        &["is told", "was told", "were told", "as far as can be told", "heard of", "lets hear"],
        "write what is returned, reported or known",
    ),
    (&["in vain", "is no use", "nought", "sees to it"], "write what happens"),
    (&["rehearse", "rehearses", "rehearsed", "rehearsal"], "write dry run"),
    (
        &["hence", "whence", "thither", "so to speak", "as it were", "at hand", "of its own accord"],
        "use modern words",
    ),
];

/// The page that quotes earlier versions.
const NOT_READ: &str = "CHANGELOG.md";

/// The folder whose strings are help texts.
const HELP: &str = "crates/cli/src/args/";

/// Checks the comments of a source, the strings of help texts, and the prose of a page.
pub(crate) fn check(path: &str, text: &str) -> Vec<Violation> {
    if path.starts_with(HELP) {
        return text.lines().enumerate().flat_map(|(index, line)| found(path, index, line)).collect();
    }
    if path.ends_with(".rs") {
        let code = code_only(text);
        let is_comment = |line: &str, code: &str| line.contains("//") && code.len() < line.len();
        let lines = text.lines().zip(code.lines()).enumerate();
        let comments = lines.filter(|(_, (line, code))| is_comment(line, code.trim_end()));
        return comments
            .flat_map(|(index, (line, code))| found(path, index, comment_of(line, code)))
            .collect();
    }
    if !path.ends_with(".md") || path == NOT_READ {
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

/// Returns the comment behind the code of a line. Strings before a comment are blank in the code, too, so they are cut off.
fn comment_of<'l>(line: &'l str, code: &str) -> &'l str {
    let end_of_code = code.trim_end().len();
    line.get(end_of_code..).and_then(|rest| rest.find("//").map(|at| &rest[at..])).unwrap_or_default()
}

fn found(path: &str, index: usize, text: &str) -> Vec<Violation> {
    let text = text.to_lowercase();
    let mut violations = Vec::new();
    for (phrases, advice) in PHRASES {
        for phrase in phrases.iter().filter(|phrase| has(&text, phrase)) {
            violations.push(Violation::new(path, index + 1, format!("`{phrase}`: {advice}")));
        }
    }
    violations
}

/// Returns whether a phrase is in a text, and is neither part of a word nor quoted.
fn has(text: &str, phrase: &str) -> bool {
    let is_word =
        |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '`' || c == '"');
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !is_word(before) && !is_word(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, text).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_phrase_of_each_kind_is_caught_in_a_comment_in_prose_and_in_help() {
        let source = "//! Whoever comes.\nfn f() {} // for nobody\n/// Waits in vain.\nfn g() {}\n";
        assert_eq!(lines("crates/a/src/lib.rs", source), [1, 2, 3]);
        for planted in [
            "It is for everybody.",
            "A caller is told so.",
            "It is right, as far as can be told.",
            "It is no use to retry.",
            "A change is rehearsed first.",
            "Hence the flag.",
        ] {
            assert_eq!(lines("docs/page.md", &format!("A page.\n{planted}\n")), [2], "{planted}");
            assert_eq!(
                lines("crates/a/src/lib.rs", &format!("fn f() {{}} // {planted}\n")),
                [1],
                "{planted}"
            );
            let help = format!("const EXAMPLES: &str = \"\\\nExamples:\n{planted}\";\n");
            assert_eq!(lines("crates/cli/src/args/planted.rs", &help), [3], "{planted}");
        }
    }

    #[test]
    fn every_phrase_is_caught() {
        for phrase in PHRASES.iter().flat_map(|(phrases, _)| phrases.iter()) {
            assert_eq!(lines("docs/page.md", &format!("So {phrase} it is.\n")), [1], "{phrase}");
        }
    }

    #[test]
    fn code_strings_names_and_fences_are_left_alone() {
        let source =
            "let nobody = \"for everybody // whoever\";\n// The entity `nobody`, and is_everybody_s.\n";
        assert!(lines("crates/a/src/lib.rs", source).is_empty());
        assert!(lines("docs/page.md", "```sh\ntollgate peek nobody\n```\n").is_empty());
        assert!(lines("docs/page.md", "# Thence and the \"nobody\" of a test\n").is_empty());
        assert!(lines("CHANGELOG.md", "It was for everybody.\n").is_empty());
    }
}

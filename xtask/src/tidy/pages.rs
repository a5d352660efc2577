//! Pages: each is in the summary of the book, and their samples hide nothing.

use super::Violation;
use crate::repo::File;

/// The list of all pages of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks all pages of the repository.
pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let summary = files.iter().find(|file| file.path == SUMMARY).map_or("", |file| file.text.as_str());
    let pages = || files.iter().filter(|file| file.path.ends_with(".md") && file.path != SUMMARY);
    let mut found: Vec<Violation> = pages().filter_map(|page| unlisted(page, summary)).collect();
    found.extend(pages().flat_map(hidden_lines));
    found
}

fn unlisted(page: &File, summary: &str) -> Option<Violation> {
    let link = format!("({})", page.path.strip_prefix("docs/")?);
    let message = || format!("the page is not in {SUMMARY}, add it");
    (!summary.contains(&link)).then(|| Violation::new(&page.path, 1, message()))
}

/// Finds lines that only rustdoc hides: readers of the page see them.
fn hidden_lines(page: &File) -> Vec<Violation> {
    let mut is_rust = false;
    let mut found = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            is_rust = fence.starts_with("rust");
        } else if is_rust && (line.trim() == "#" || line.trim_start().starts_with("# ")) {
            let message = "readers see this line, because only rustdoc hides it; write a whole program";
            found.push(Violation::new(&page.path, index + 1, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let summary = file(SUMMARY, "- [Here](guide/here.md)\n");
        check(&[summary, file(path, text)]).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_page_that_is_not_in_the_summary_is_caught() {
        assert_eq!(lines("docs/lost.md", "# Lost\n"), [1]);
        assert!(lines("docs/guide/here.md", "# Here\n").is_empty());
        assert!(lines("README.md", "# Readme\n").is_empty());
    }

    #[test]
    fn a_hidden_line_is_caught_and_a_shell_comment_is_not() {
        let page = "```rust\nlet x = 1;\n# Ok(())\n#\n#[test]\n```\n\n```sh\n# a comment\n```\n# A title\n";
        assert_eq!(lines("docs/guide/here.md", page), [3, 4]);
    }
}

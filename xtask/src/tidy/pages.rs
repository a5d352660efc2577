//! Pages: each is in the summary of the book, their links lead somewhere, and their samples hide nothing.

use std::path::{Component, Path, PathBuf};

use super::Violation;
use crate::repo::File;

/// The list of all pages of the book. Whether its own links lead somewhere, mdBook checks.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks all pages of the repository.
pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let summary = files.iter().find(|file| file.path == SUMMARY).map_or("", |file| file.text.as_str());
    let pages = || files.iter().filter(|file| file.path.ends_with(".md") && file.path != SUMMARY);
    let mut found: Vec<Violation> = pages().filter_map(|page| unlisted(page, summary)).collect();
    for page in pages() {
        found.extend(hidden_lines(page));
        found.extend(broken_links(page, files));
    }
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

fn broken_links(page: &File, files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (index, line) in page.text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !is_code && !leads_somewhere(link, &page.path, files) {
                found.push(Violation::new(&page.path, index + 1, format!("`{link}` leads nowhere")));
            }
        }
    }
    found
}

/// Returns whether a link is to another site, to something that is not a page, or to a heading of an existing page.
fn leads_somewhere(link: &str, page: &str, files: &[File]) -> bool {
    let (target, heading) = link.split_once('#').unwrap_or((link, ""));
    let path = if target.is_empty() { page.to_owned() } else { beside(page, target) };
    if link.contains("://") || !path.ends_with(".md") {
        return true;
    }
    let there = files.iter().find(|file| file.path == path);
    there.is_some_and(|file| heading.is_empty() || headings(&file.text).any(|known| known == heading))
}

/// Returns the path that a link in a page names, from the root of the repository.
fn beside(page: &str, target: &str) -> String {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path.to_string_lossy().into_owned()
}

/// Returns the anchors of a page, as GitHub and mdBook make them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    titles.map(|title| {
        let kept = title.to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let summary = file(SUMMARY, "- [Here](guide/here.md)\n- [There](there.md)\n- [Later](later.md)\n");
        let there = file("docs/there.md", "# There\n\n## Once more: `a` b_c!\n");
        check(&[summary, there, file(path, text)]).iter().map(|violation| violation.line).collect()
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

    #[test]
    fn a_link_that_leads_nowhere_is_caught() {
        let page = "[a](../there.md) [b](../there.md#once-more-a-b_c) [c](https://example.com/x.md)\n\
                    [d](gone.md)\n[e](../there.md#gone)\n[f](#here)\n# Here\n[g](picture.svg)\n";
        assert_eq!(lines("docs/guide/here.md", page), [2, 3]);
    }
}

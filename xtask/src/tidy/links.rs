//! Links between pages: the file and the heading that a relative link names exist.

use std::collections::{HashMap, HashSet};

use super::Violation;
use crate::repo::File;

/// Checks the links of all pages. `exists` returns whether there is a file or a directory with a path from the root.
pub(crate) fn check(files: &[File], exists: &dyn Fn(&str) -> bool) -> Vec<Violation> {
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    let anchors: HashMap<&str, HashSet<String>> =
        pages.clone().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut found = Vec::new();
    for page in pages {
        for (line, link) in links(&page.text) {
            if let Some(why) = broken(&page.path, &link, &anchors, exists) {
                found.push(Violation::new(&page.path, line, format!("the link `{link}` is broken, {why}")));
            }
        }
    }
    found
}

fn broken(
    page: &str,
    link: &str,
    anchors: &HashMap<&str, HashSet<String>>,
    exists: &dyn Fn(&str) -> bool,
) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (target, anchor) =
        link.split_once('#').map_or((link, None), |(target, anchor)| (target, Some(anchor)));
    let Some(path) = resolve(page, target) else {
        return Some("it leaves the repository".to_owned());
    };
    if !exists(&path) {
        return Some(format!("there is no {path}"));
    }
    // Anchors of files that are no pages, such as lines of a source, are not known.
    let known = anchors.get(path.as_str())?;
    let anchor = anchor.filter(|anchor| !known.contains(*anchor))?;
    Some(format!("{path} has no heading #{anchor}"))
}

/// Returns the path from the root, or `None` if it leads out of it.
fn resolve(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.to_owned());
    }
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the lines of prose with their numbers, with inline code blanked out.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            return None;
        }
        (!is_fenced).then(|| (index + 1, without_code(line)))
    })
}

/// Blanks out what is between backticks.
fn without_code(line: &str) -> String {
    let last = line.matches('`').count();
    let pieces = line.split('`').enumerate();
    // A backtick without a partner is text.
    pieces.map(|(at, piece)| if at % 2 == 1 && at < last { "" } else { piece }).collect()
}

/// Returns the targets of links and images with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (opening, closing) in [("](", ')'), ("href=\"", '"'), ("src=\"", '"')] {
            for (at, _) in line.match_indices(opening) {
                let rest = &line[at + opening.len()..];
                let target = rest.split(closing).next().unwrap_or_default();
                // A title may follow the target.
                let target = target.split_whitespace().next().unwrap_or_default();
                found.push((number, target.trim_matches(['<', '>']).to_owned()));
            }
        }
        let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        found.extend(definition.map(|(_, target)| (number, target.trim().to_owned())));
    }
    found
}

/// Returns the anchors of the headings, as hosts of repositories make them, and of explicit ids.
fn anchors(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if is_fenced {
            continue;
        }
        if (1..=6).contains(&level) && title.starts_with(' ') {
            let slug = slug(title);
            let repeated = (1..).map(|count| format!("{slug}-{count}"));
            let free = std::iter::once(slug.clone()).chain(repeated).find(|name| !found.contains(name));
            found.extend(free);
        }
        for opening in ["id=\"", "name=\""] {
            let ids = line.split(opening).skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(ids.map(str::to_owned));
        }
    }
    found
}

/// Lower case, hyphens for spaces, and nothing but letters, digits, hyphens and underscores. Of a link its text is kept.
fn slug(title: &str) -> String {
    let mut text = title.trim().to_lowercase();
    while let Some((start, end)) = text.find("](").and_then(|at| Some((at, at + text[at..].find(')')?))) {
        text.replace_range(start..=end, "");
    }
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# Limits & buckets\n\n## `tollgate run`\n\n## Same\n\n## Same\n\n<a id=\"old\"></a>\n";

    /// Returns the lines of broken links of a page in `docs/guide`, beside which there is `limits.md`.
    fn broken_lines(text: &str) -> Vec<usize> {
        let page = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let files = [page("docs/guide/page.md", text), page("docs/guide/limits.md", PAGE)];
        let exists = |path: &str| {
            ["README.md", "docs/guide", "docs/guide/page.md", "docs/guide/limits.md", "a.svg"].contains(&path)
        };
        check(&files, &exists).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        for good in [
            "[a](limits.md) and [b](./limits.md#limits--buckets)",
            "[a](limits.md#tollgate-run) [b](limits.md#same-1) [c](limits.md#old)",
            "[a](../../README.md#anything) ![b](../../a.svg \"a title\") [c](../guide)",
            "[a](https://example.com/no.md#x) <a href=\"mailto:a@b.example\">b</a>",
            "[a]: limits.md",
            "## Here\n[a](#here)",
            "```\n[a](no.md)\n```\n`[a](no.md)`",
        ] {
            assert_eq!(broken_lines(good), [0; 0], "{good}");
        }
    }

    #[test]
    fn a_planted_broken_link_is_caught_on_its_line() {
        for planted in [
            "[a](no.md)",
            "[a](limits.md) [b](no.md)",
            "![a](../b.svg)",
            "[a](limits.md#Same)",
            "[a](limits.md#same-2)",
            "[a](#nowhere)",
            "[a](../../../outside.md)",
            "[a]: no.md",
            "<img src=\"no.svg\">",
            "a ` and [a](no.md)",
        ] {
            assert_eq!(broken_lines(&format!("# Page\n\n{planted}\n")), [3], "{planted}");
        }
    }
}

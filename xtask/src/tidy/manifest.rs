//! A Cargo.toml as a list of entries with their lines.
//!
//! Parses the common form of a manifest, not all of TOML: one entry per line, tables by their headers.

/// `key = value` under a `[table]`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) table: &'a str,
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
    pub(crate) line: usize,
}

/// Returns all entries, top to bottom.
pub(crate) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut table = "";
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            table = line.trim_matches(['[', ']']);
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            entries.push(Entry { table, key: key.trim(), value: value.trim(), line: index + 1 });
        }
    }
    entries
}

/// One dependency, in any notation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedEntry<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    pub(crate) from_workspace: bool,
    /// Whether it is for tests and a path of the workspace without a version, which cargo leaves out of what it publishes.
    pub(crate) is_unpublished: bool,
}

/// Returns all dependencies: normal, for tests, for build scripts, for one target.
pub(crate) fn dependencies(text: &str) -> Vec<NamedEntry<'_>> {
    let mut found: Vec<NamedEntry<'_>> = Vec::new();
    for entry in entries(text) {
        let Some((name, from_workspace)) = dependency(&entry) else { continue };
        match found.last_mut().filter(|last| last.name == name && !is_plain(entry.table)) {
            // A table of its own spreads one dependency over several lines.
            Some(last) => last.from_workspace |= from_workspace,
            None => found.push(NamedEntry {
                name,
                line: entry.line,
                from_workspace,
                is_unpublished: is_unpublished(&entry),
            }),
        }
    }
    found
}

fn dependency<'a>(entry: &Entry<'a>) -> Option<(&'a str, bool)> {
    if is_plain(entry.table) {
        let (name, dotted) = entry.key.split_once('.').unwrap_or((entry.key, ""));
        let inline = entry.value.replace(' ', "").contains("workspace=true");
        return Some((name, inline || (dotted == "workspace" && is_true(entry.value))));
    }
    let (table, name) = entry.table.rsplit_once('.')?;
    is_plain(table).then_some((name, entry.key == "workspace" && is_true(entry.value)))
}

fn is_unpublished(entry: &Entry<'_>) -> bool {
    let is_path = entry.value.contains("path = \"") && !entry.value.contains("version");
    entry.table.ends_with("dev-dependencies") && is_path
}

fn is_plain(table: &str) -> bool {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let last = table.rsplit_once('.').map_or(table, |(_, last)| last);
    kinds.contains(&last) && (table == last || table.starts_with("target."))
}

fn is_true(value: &str) -> bool {
    value.split('#').next().is_some_and(|value| value.trim() == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_dependency_is_read() {
        let text = "\
[dependencies]
a.workspace = true
b = { workspace = true, optional = true }
c = \"1\"
[dev-dependencies.d]
optional = true
workspace = true
[target.'cfg(unix)'.dependencies]
e = { version = \"2\" }
";
        let read: Vec<_> = dependencies(text)
            .iter()
            .map(|dependency| (dependency.name, dependency.line, dependency.from_workspace))
            .collect();
        assert_eq!(read, [("a", 2, true), ("b", 3, true), ("c", 4, false), ("d", 6, true), ("e", 9, false)]);
    }

    #[test]
    fn other_tables_and_comments_are_no_dependencies() {
        let text = "[package]\nname = \"x\"\n[dependencies]\n# old = \"1\"\n[features]\ndefault = []\n";
        assert_eq!(dependencies(text), []);
    }
}

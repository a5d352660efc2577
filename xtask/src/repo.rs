//! The root of the repository, and its files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::Cargo;

/// One text file: its path from the root, with forward slashes, and its contents.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns the directory of the workspace manifest, from any directory of the repository.
pub(crate) fn root() -> Result<PathBuf> {
    let located = Cargo::new(["locate-project", "--workspace", "--message-format", "plain"]);
    let manifest = located.output(Path::new(".")).context("xtask works inside the repository")?;
    let root = Path::new(manifest.trim()).parent().context("the workspace manifest has no directory")?;
    Ok(root.to_path_buf())
}

/// Returns every text file that is tracked, or would be after `git add`.
pub(crate) fn files(root: &Path) -> Result<Vec<File>> {
    let paths = match git_paths(root) {
        Some(paths) => paths,
        // A source archive has no repository around it, and CI promises no git.
        None => walked_paths(root)?,
    };
    Ok(paths.into_iter().filter_map(|path| read_text(root, path)).collect())
}

fn git_paths(root: &Path) -> Option<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let names = String::from_utf8(output.stdout).ok()?;
    Some(names.split_terminator('\0').map(String::from).collect())
}

fn walked_paths(root: &Path) -> Result<Vec<String>> {
    let mut pending = vec![root.to_path_buf()];
    let mut paths = Vec::new();
    while let Some(directory) = pending.pop() {
        let entries = directory.read_dir().with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                let relative = path.strip_prefix(root).context("the walk left the root")?;
                paths.push(relative.to_string_lossy().replace('\\', "/"));
            } else if !is_output(&entry.file_name().to_string_lossy()) {
                pending.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns whether .gitignore names a directory, for hosts without git.
fn is_output(directory: &str) -> bool {
    directory == ".git" || directory == ".venv" || directory == "target" || directory.starts_with("target-")
}

/// Reads a text file. Returns `None` for a file that is deleted but tracked, for links to directories, and for binary files.
fn read_text(root: &Path, path: String) -> Option<File> {
    let text = std::fs::read_to_string(root.join(&path)).ok()?;
    Some(File { path, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_finds_what_git_finds() {
        let root = root().unwrap();
        let walked = walked_paths(&root).unwrap();
        assert!(walked.iter().any(|path| path == "xtask/src/repo.rs"));
        assert!(!walked.iter().any(|path| path.starts_with("target/")));
    }
}

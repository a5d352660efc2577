//! The readme and the pages of the book.

use std::path::{Path, PathBuf};

/// Returns all pages, with their paths in the repository.
pub fn all() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![PathBuf::from("README.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).expect("the folder can be listed") {
            let entry = entry.expect("the folder can be listed");
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        (path.display().to_string(), std::fs::read_to_string(root.join(&path)).expect("the page can be read"))
    };
    paths.into_iter().map(read).collect()
}

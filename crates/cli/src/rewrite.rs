//! Files that are there whole, or as they were.

use std::io::{self, Write};
use std::path::Path;

/// Writes a file beside the one that is there, and puts it in its place. Whoever reads it meanwhile has the old one or the
/// new one, and a full disk leaves the old one.
///
/// # Errors
///
/// Those of the disk; then nothing is left behind.
pub(crate) fn rewrite(path: &Path, text: &str) -> io::Result<()> {
    // What is no ordinary file, a pipe say, is written to as it is; so is what a link leads to.
    let is_plain = std::fs::symlink_metadata(path).map_or(true, |there| there.is_file());
    let (true, Some(name)) = (is_plain, path.file_name()) else { return std::fs::write(path, text) };
    let mut beside = name.to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = write_new(&beside, path, text).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // It may not even have been made.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn write_new(beside: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(beside)?;
    if let Ok(there) = std::fs::metadata(path) {
        file.set_permissions(there.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = std::env::temp_dir().join(format!("tollgate-rewrite-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("limits.toml");
        rewrite(&path, "one").unwrap();
        let reader = std::fs::File::open(&path).unwrap();
        rewrite(&path, "two").unwrap();
        assert_eq!(io::read_to_string(reader).unwrap(), "one", "who reads has what was there");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert!(rewrite(&folder.join("no/such"), "three").is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

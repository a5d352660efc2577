//! Reading of whole files with a maximum size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a text file of at most `bytes_max` bytes.
///
/// # Errors
///
/// Those of the disk, and if the file is longer or not UTF-8.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is longer than {bytes_max} bytes")));
    }
    Ok(text)
}

/// As [`read_text`], and refuses anything but a regular file: a pipe may never end, and opening one may block forever.
///
/// # Errors
///
/// As [`read_text`].
#[cfg(any(feature = "batch", test))]
pub(crate) fn read_regular(path: &Path, bytes_max: u64) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    read_text(path, bytes_max)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_not_read_to_its_end() {
        let said = read_text(Path::new("/dev/zero"), 1_000).unwrap_err().to_string();
        assert_eq!(said, "it is longer than 1000 bytes");
        let said = read_regular(Path::new("/dev/zero"), 1_000).unwrap_err().to_string();
        assert_eq!(said, "it is not a regular file");
        assert_eq!(read_text(Path::new("/dev/null"), 1_000).unwrap(), "");
    }
}

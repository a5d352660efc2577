use std::fmt;
use std::path::PathBuf;

/// Which store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// The memory of this process: gone when the command ends.
    Memory,
    /// A file that the processes of one host share.
    File(PathBuf),
}

impl StoreUrl {
    /// The store that a text names.
    pub(crate) fn parse(text: &str) -> Result<StoreUrl, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(StoreUrl::Memory),
            Some(("file", path)) if !path.is_empty() => Ok(StoreUrl::File(path.into())),
            Some(("file", _)) => Err("the path of the file is missing; write it like file:limits.db".into()),
            _ => Err("there is no such store; valid are memory and file:PATH, such as file:limits.db".into()),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory"),
            StoreUrl::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

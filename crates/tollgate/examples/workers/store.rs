//! Which store the processes share.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tollgate::file::FileStore;
use tollgate::store::Backend;

/// The address of a store, as it is given to this program and to its children.
pub(crate) struct Address {
    text: String,
    /// A file of our own, to be removed in the end.
    own: Option<PathBuf>,
}

impl Address {
    /// The address in the first argument; without one, a file of our own.
    pub(crate) fn given() -> Result<Address, Box<dyn Error>> {
        if let Some(text) = std::env::args().nth(1) {
            // Reported now, and not by every child.
            open(&text)?;
            return Ok(Address { text, own: None });
        }
        let path = std::env::temp_dir().join(format!("tollgate-workers-{}.db", std::process::id()));
        remove(&path);
        Ok(Address { text: format!("file:{}", path.display()), own: Some(path) })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        self.own.iter().for_each(|path| remove(path));
    }
}

fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
}

/// Opens the store at an address.
pub(crate) fn open(address: &str) -> Result<Arc<dyn Backend>, Box<dyn Error>> {
    match address.split_once(':') {
        Some(("file", path)) => Ok(Arc::new(FileStore::open(path)?)),
        #[cfg(all(feature = "shm", target_os = "linux"))]
        Some(("shm", name)) => Ok(Arc::new(tollgate::shm::ShmStore::open(name)?)),
        #[cfg(feature = "redis")]
        Some(("redis", _)) => Ok(Arc::new(tollgate::redis::RedisStore::builder(address).build().wait()?)),
        _ => Err(format!(
            "{address:?} is no store that this program knows; give it file:PATH, shm:NAME or redis://HOST"
        )
        .into()),
    }
}

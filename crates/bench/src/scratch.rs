//! Files for a benchmark, on the disk of this program: a directory in memory would make syncs free.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};

/// A directory that is deleted on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let this = std::env::current_exe().context("cannot find this program")?;
        let beside = this.parent().context("this program has no directory")?;
        let name = format!("bench-scratch-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let folder = beside.join(name);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self(folder))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An error is ignored: the directory is in the target directory.
        let _ = std::fs::remove_dir_all(self.path());
    }
}

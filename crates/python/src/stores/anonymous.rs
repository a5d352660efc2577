//! Anonymous stores in shared memory: `shm:`. Each has a name that says which process made it, and is removed when that
//! process ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pyo3::prelude::*;
use tollgate::shm::ShmStore;
use tollgate_open::StoreUrl;
use tollgate_store::{LivenessCache, Mutex, PerProcess, Process, generation, random_id};

use super::{StoreAddress, StoreOpenError, StoreOptions};
use crate::error::invalid;
use crate::hooks::stores;

/// What the names of anonymous stores begin with.
const PREFIX: &str = "anonymous-";

/// The names that this process has made. A forked child has made none of them.
fn made() -> &'static Mutex<Vec<String>> {
    static MADE: OnceLock<PerProcess<Mutex<Vec<String>>>> = OnceLock::new();
    let process = generation().into();
    MADE.get_or_init(|| PerProcess::new(process)).get(process)
}

/// Makes the address of a new anonymous store.
pub(super) fn make(py: Python<'_>, options: StoreOptions) -> PyResult<StoreAddress> {
    stores(py)?.call_method0("remove_at_exit")?;
    let Process { tag, pid, started } = Process::this();
    let random = random_id() as u64;
    let name = format!("{PREFIX}{tag:08x}-{pid:x}-{started:x}-{random:016x}");
    let Some(file) = file_of(&name) else {
        return Err(invalid(py, "store: anonymous shared memory cannot be used here"));
    };
    py.detach(|| sweep(&file));
    made().lock().push(name.clone());
    Ok(StoreAddress { url: StoreUrl::Shm(name), options })
}

/// Refuses to create a store under an anonymous name of another process: it was removed with the process that made it, and a new
/// one would limit apart from it.
pub(super) fn check(url: &StoreUrl) -> Result<(), StoreOpenError> {
    let StoreUrl::Shm(name) = url else { return Ok(()) };
    let Some(maker) = maker_of(name) else { return Ok(()) };
    let is_there = file_of(name).is_some_and(|file| file.symlink_metadata().is_ok());
    if is_there || maker == Process::this() {
        return Ok(());
    }
    Err(StoreOpenError::MakerEnded)
}

/// Removes the anonymous stores that this process has made. Processes that have them open go on with them.
#[pyfunction]
pub(crate) fn _remove_anonymous_stores() {
    let names = std::mem::take(&mut *made().lock());
    for file in names.iter().filter_map(|name| file_of(name)) {
        // What is gone already need not be removed.
        let _ = fs::remove_file(file);
    }
}

/// Removes the anonymous stores of processes that ended without removing them, beside `file`.
fn sweep(file: &Path) {
    let (Some(folder), Some(this)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    let Some((before, _)) = this.split_once(PREFIX) else { return };
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut liveness = LivenessCache::default();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| maker_of(name.strip_prefix(before)?));
        if maker.is_some_and(|maker| liveness.has_ended(maker)) {
            // Another process may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn file_of(name: &str) -> Option<PathBuf> {
    ShmStore::builder(name).path().ok()
}

/// Returns the process that made an anonymous store; `None` if the name is not one of ours.
fn maker_of(name: &str) -> Option<Process> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let mut number = || u32::from_str_radix(parts.next()?, 16).ok();
    let (tag, pid, started) = (number()?, number()?, number()?);
    u64::from_str_radix(parts.next()?, 16).ok()?;
    parts.next().is_none().then_some(Process { tag, pid, started })
}

//! Work that no fork interrupts: SQLite's state of a connection that a thread is using cannot be closed in a forked process.

#[cfg(target_os = "linux")]
pub(crate) use tollgate_shm::NoFork;

/// Elsewhere forks do not wait. A file that a thread uses at that moment stays closed to the process that is forked off.
#[cfg(not(target_os = "linux"))]
pub(crate) struct NoFork;

#[cfg(not(target_os = "linux"))]
impl NoFork {
    pub(crate) fn begin() -> NoFork {
        NoFork
    }
}

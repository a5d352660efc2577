//! Critical sections that no fork interrupts.
//!
//! A forked process has one thread. What another thread was changing at the time of the fork is
//! never finished there, and that thread's locks are never released. So a fork waits until such
//! sections end, and sections that start meanwhile wait for the fork.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static FORKING: RwLock<()> = RwLock::new(());
// Sections hold it for reading, a fork for writing.

thread_local! {
    /// The number of sections that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The write lock, while this thread forks.
    static FORK: Cell<Option<RwLockWriteGuard<'static, ()>>> = const { Cell::new(None) };
}

/// A section in which no other thread of the process forks. Keep it short, because forks wait for
/// it.
///
/// ```
/// use tollgate_sys::NoFork;
///
/// let outer = NoFork::begin();
/// let nested = NoFork::begin(); // allowed: only the outermost section takes the lock
/// drop((nested, outer));
/// ```
pub struct NoFork {
    _forking: Option<RwLockReadGuard<'static, ()>>,
    /// Makes the type `!Send`, because [`DEPTH`] counts the sections of this thread.
    _of_this_thread: PhantomData<*const ()>,
}

impl NoFork {
    /// Starts a section. Waits while another thread forks.
    pub fn begin() -> NoFork {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the functions exist for as long as the process, and do nothing that a forking
            // thread must not do. If the system has no memory to register them, forks do not wait.
            let _ = unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
        });
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        // Only the outermost section takes the lock: a second read lock would wait behind a fork
        // that waits for the first, which is a deadlock.
        let forking = (depth == 0).then(|| FORKING.read().unwrap_or_else(PoisonError::into_inner));
        NoFork { _forking: forking, _of_this_thread: PhantomData }
    }
}

impl Drop for NoFork {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

extern "C" fn before_fork() {
    // A thread that forks inside its own section cannot wait for that section to end.
    if DEPTH.try_with(Cell::get).is_ok_and(|depth| depth == 0) {
        let guard = FORKING.write().unwrap_or_else(PoisonError::into_inner);
        let _ = FORK.try_with(|fork| fork.set(Some(guard)));
    }
}

extern "C" fn after_fork() {
    let _ = FORK.try_with(|fork| fork.take());
}

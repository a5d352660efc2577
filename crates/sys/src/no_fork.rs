//! Work that no fork interrupts.
//!
//! A process that is forked off has one thread. What another thread was changing at that moment is never finished there, and
//! the locks of that thread are never released. So a fork waits until such work is done, and work that begins meanwhile
//! waits for the fork.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static FORKING: RwLock<()> = RwLock::new(());

thread_local! {
    /// In how many pieces of such work this thread is.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// While this thread forks.
    static FORK: Cell<Option<RwLockWriteGuard<'static, ()>>> = const { Cell::new(None) };
}

/// While this is held, no other thread of the process forks. It is short: forks wait for it.
pub struct NoFork {
    _forking: Option<RwLockReadGuard<'static, ()>>,
    /// It counts what this thread does.
    _of_this_thread: PhantomData<*const ()>,
}

impl NoFork {
    /// Waits until no thread forks.
    pub fn begin() -> NoFork {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the functions are there for as long as the process, and do nothing that a thread may not do that forks.
            // If the system has no memory for them, forks do not wait.
            let _ = unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
        });
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        // Once for each thread: a second reader waits behind a fork that waits for the first.
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
    // One that forks in the middle of its own work cannot wait for it.
    if DEPTH.try_with(Cell::get).is_ok_and(|depth| depth == 0) {
        let guard = FORKING.write().unwrap_or_else(PoisonError::into_inner);
        let _ = FORK.try_with(|fork| fork.set(Some(guard)));
    }
}

extern "C" fn after_fork() {
    let _ = FORK.try_with(|fork| fork.take());
}

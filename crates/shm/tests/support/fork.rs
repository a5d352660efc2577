//! Processes that are forked off a test, and memory that they share with it beside the store.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Numbers that all processes see which are forked off after it was made.
pub struct Board(&'static [AtomicU64]);

impl Board {
    pub fn new(words: usize) -> Board {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping where there is room.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), words * 8, access, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        // SAFETY: it is as long, is never unmapped, and is only ever seen as atomics.
        Board(unsafe { std::slice::from_raw_parts(base.cast(), words) })
    }
}

impl std::ops::Deref for Board {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        self.0
    }
}

/// A process that was forked off. It is killed and buried when it is dropped.
pub struct Forked(i32);

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Code(i32),
    Signal(i32),
}

/// One test at a time forks: a lock that another thread has then is locked for ever in the process that is forked off.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static FORKING: Mutex<()> = Mutex::new(());
    FORKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forks off a process that does this and ends: with 0, or with 101 if it panics.
pub fn fork(work: impl FnOnce()) -> Forked {
    // SAFETY: the process goes on with this thread alone, and ends before it returns to anything of the parent's.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "a process can be forked off");
    if pid == 0 {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: it only reads what it is given. Those who are to be killed leave no image behind.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
        let ended = catch_unwind(AssertUnwindSafe(work));
        // SAFETY: it ends the process, with nothing of the parent's being run.
        unsafe { libc::_exit(if ended.is_ok() { 0 } else { 101 }) };
    }
    Forked(pid)
}

/// A process that has the lock of a store, and neither goes on nor ends.
pub fn lock_owner(store: &Path) -> Forked {
    let owner = fork(|| {
        loop {
            std::thread::park();
        }
    });
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", owner.pid())).expect("it is there");
    let fields = stat.rsplit_once(") ").expect("the name of a process is in brackets").1;
    let started = fields.split(' ').nth(19).and_then(|started| started.parse::<u64>().ok());
    let name = started.expect("it says when it started") << 32 | owner.pid() as u64;
    let file = File::options().write(true).open(store).expect("the store is there");
    file.write_all_at(&name.to_ne_bytes(), 16 * 8).expect("it can be written");
    owner
}

/// How long a process may take for what takes no time.
const PATIENCE: u32 = 120;

/// As [`fork`]; one that hangs is ended by the system.
pub fn fork_for_a_while(work: impl FnOnce()) -> Forked {
    fork(|| {
        // SAFETY: it only starts a clock of the process.
        unsafe { libc::alarm(PATIENCE) };
        work();
    })
}

/// The end of a process that is [forked for a while](fork_for_a_while).
pub fn fork_and_end(work: impl FnOnce()) -> End {
    fork_for_a_while(work).end()
}

impl Forked {
    pub fn pid(&self) -> i32 {
        self.0
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: it is our own child, which was not buried yet.
        assert_eq!(unsafe { libc::kill(self.0, signal) }, 0);
    }

    /// Waits until it has ended.
    pub fn end(mut self) -> End {
        self.bury()
    }

    fn bury(&mut self) -> End {
        let mut status = 0;
        loop {
            // SAFETY: `status` is there for as long as it is written to.
            let pid = unsafe { libc::waitpid(self.0, &mut status, 0) };
            if pid == self.0 {
                break;
            }
        }
        self.0 = 0;
        if libc::WIFSIGNALED(status) {
            return End::Signal(libc::WTERMSIG(status));
        }
        End::Code(libc::WEXITSTATUS(status))
    }

    /// Kills it as hard as it can be done.
    pub fn kill(self) -> End {
        self.signal(libc::SIGKILL);
        self.end()
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if self.0 != 0 {
            self.signal(libc::SIGKILL);
            self.bury();
        }
    }
}

//! Sleeping until a word changes.

#[cfg(target_os = "linux")]
pub(crate) use linux::{wait, wake_one};

#[cfg(not(target_os = "linux"))]
pub(crate) use atomic_wait::{wait, wake_one};

#[cfg(target_os = "linux")]
mod linux {
    use std::ptr;
    use std::sync::atomic::AtomicU32;

    /// The longest sleep. A thread that is not woken checks the word after this time.
    const SLEEP_MAX: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };

    /// Sleeps while the word has this value: until it is woken, a signal arrives, or `SLEEP_MAX` has passed.
    pub(crate) fn wait(word: &AtomicU32, value: u32) {
        // SAFETY: the word and the time are valid for reads during the call, which writes to neither.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                value,
                ptr::from_ref(&SLEEP_MAX),
            );
        }
    }

    /// Wakes one thread that sleeps on the word.
    pub(crate) fn wake_one(word: &AtomicU32) {
        // SAFETY: the kernel uses the address as a key only.
        unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
        }
    }
}

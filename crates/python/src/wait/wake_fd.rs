use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};

/// A file descriptor that is readable once a waker was called: `poll` and event loops can wait for it, and signals interrupt
/// such a wait.
pub(crate) struct WakeFd {
    fd: OwnedFd,
    /// Whether it is readable, or is about to be: wakers that find it set write nothing.
    is_set: AtomicBool,
}

/// Why [`WakeFd::wait`] returned.
#[derive(PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// A waker was called.
    Notified,
    /// A signal arrived, or the time passed.
    Interrupted,
}

impl WakeFd {
    /// Opens one.
    ///
    /// # Errors
    ///
    /// The process has too many open files.
    pub(crate) fn new() -> io::Result<WakeFd> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(WakeFd { fd, is_set: AtomicBool::new(false) })
    }

    /// Returns the descriptor, for an event loop.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Makes it readable.
    pub(crate) fn notify(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            // It fails only if the counter is full, and then it is readable.
            let _ = write(&self.fd, &1_u64.to_ne_bytes());
        }
    }

    /// Makes it unreadable again. What wakers announced before has to be looked at after this.
    pub(crate) fn clear(&self) {
        let _ = read(&self.fd, &mut [0_u8; 8]);
        // Last: a waker that finds it set meanwhile relies on the look that follows.
        self.is_set.store(false, Ordering::Release);
    }

    /// Waits until a waker is called, a signal arrives or `most` has passed.
    pub(crate) fn wait(&self, most: Option<Duration>) -> WakeReason {
        let timeout = most.and_then(|most| Timespec::try_from(most).ok());
        let mut fds = [PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(1..) => {
                self.clear();
                WakeReason::Notified
            }
            Ok(0) | Err(Errno::INTR) => WakeReason::Interrupted,
            // Nothing else can happen to a descriptor that is open; looking again is safe.
            Err(_) => WakeReason::Notified,
        }
    }
}

impl Wake for WakeFd {
    fn wake(self: Arc<Self>) {
        self.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notify();
    }
}

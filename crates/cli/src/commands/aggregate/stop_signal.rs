//! Graceful shutdown: the signal to stop is checked between batches.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The maximum time until a pause ends after a signal.
const SLICE: Duration = Duration::from_millis(100);

/// Becomes true with Ctrl-C or SIGTERM. The second one ends the process at once.
pub(super) struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    #[cfg(unix)]
    pub(super) fn listen() -> io::Result<StopSignal> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let stop = Arc::<AtomicBool>::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order, or the first one would count as the second.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(StopSignal(stop))
    }

    /// Elsewhere the signal kills the process, and the next run continues after the last finished batch.
    #[cfg(not(unix))]
    pub(super) fn listen() -> io::Result<StopSignal> {
        Ok(StopSignal(Arc::default()))
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps for `length`, or until a signal to stop.
    #[expect(clippy::disallowed_methods, reason = "a stream cannot notify of new records")]
    pub(super) fn pause(&self, length: Duration) {
        let mut left = length;
        while !left.is_zero() && !self.is_set() {
            let slice = left.min(SLICE);
            std::thread::sleep(slice);
            left -= slice;
        }
    }
}

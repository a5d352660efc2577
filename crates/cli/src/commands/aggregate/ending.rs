//! The signal to end, obeyed between batches.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a pause goes on after the signal to end, at most.
const SLICE: Duration = Duration::from_millis(100);

/// Becomes true with Ctrl-C or SIGTERM. The second one ends the process at once.
pub(super) struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    #[cfg(unix)]
    pub(super) fn listen() -> io::Result<StopSignal> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let told = Arc::<AtomicBool>::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order, or the first one would count as the second.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&told))?;
            signal_hook::flag::register(signal, Arc::clone(&told))?;
        }
        Ok(StopSignal(told))
    }

    /// Elsewhere the process is ended, and the next one goes on from the last batch that was done.
    #[cfg(not(unix))]
    pub(super) fn listen() -> io::Result<StopSignal> {
        Ok(StopSignal(Arc::default()))
    }

    pub(super) fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits for so long, unless a signal to end comes.
    #[expect(clippy::disallowed_methods, reason = "the stream calls nobody when there is more of it")]
    pub(super) fn pause(&self, length: Duration) {
        let mut left = length;
        while !left.is_zero() && !self.is_told() {
            let slice = left.min(SLICE);
            std::thread::sleep(slice);
            left -= slice;
        }
    }
}

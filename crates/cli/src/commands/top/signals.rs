//! Signals that end the process, delayed until the terminal is restored.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

const DELAYED: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Added to the number of a signal to make it an exit code, as shells do.
const SIGNALLED: i32 = 128;

/// The number of a signal that ends the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signalled(i32);

/// Receives signals.
pub(super) struct TopSignals(Vec<(i32, Arc<AtomicBool>)>);

impl TopSignals {
    /// Starts to listen. A second signal of one kind ends the process at once.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(super) fn listen() -> io::Result<TopSignals> {
        let mut signals = Vec::new();
        for signal in DELAYED {
            let received = Arc::new(AtomicBool::new(false));
            // In this order, or the first one would count as the second.
            flag::register_conditional_default(signal, Arc::clone(&received))?;
            flag::register(signal, Arc::clone(&received))?;
            signals.push((signal, received));
        }
        Ok(TopSignals(signals))
    }

    /// Returns a signal that was received.
    pub(super) fn received(&self) -> Option<Signalled> {
        let received = self.0.iter().find(|(_, received)| received.load(Ordering::Relaxed));
        received.map(|(signal, _)| Signalled(*signal))
    }
}

impl Signalled {
    /// Returns the exit code of the signal.
    pub(super) fn exit(self) -> Exit {
        Exit(u8::try_from(SIGNALLED + self.0).unwrap_or(Exit::FAILURE.0))
    }
}

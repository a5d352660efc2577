//! Signals that want the process to end, held back until the terminal is as it was.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

const HELD_BACK: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// What is added to the number of a signal to make it an exit code, as shells do.
const SIGNALLED: i32 = 128;

/// The number of a signal that wants the process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signalled(i32);

/// Receives signals.
pub(super) struct TopSignals(Vec<(i32, Arc<AtomicBool>)>);

impl TopSignals {
    /// Listens from now on. A second signal of one kind is obeyed at once: its sender insists.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn listen() -> io::Result<TopSignals> {
        let mut endings = Vec::new();
        for signal in HELD_BACK {
            let heard = Arc::new(AtomicBool::new(false));
            // In this order, or the first one would count as the second.
            flag::register_conditional_default(signal, Arc::clone(&heard))?;
            flag::register(signal, Arc::clone(&heard))?;
            endings.push((signal, heard));
        }
        Ok(TopSignals(endings))
    }

    /// A signal that came meanwhile.
    pub(super) fn heard(&self) -> Option<Signalled> {
        let heard = self.0.iter().find(|(_, heard)| heard.load(Ordering::Relaxed));
        heard.map(|(signal, _)| Signalled(*signal))
    }
}

impl Signalled {
    /// The exit code that says so.
    pub(super) fn exit(self) -> Exit {
        Exit(u8::try_from(SIGNALLED + self.0).unwrap_or(Exit::FAILURE.0))
    }
}

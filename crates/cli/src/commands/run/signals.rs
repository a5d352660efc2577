//! Forwarding of signals to the command.

use std::io;
use std::process::{Child, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::exfiltrator::origin::Origin;
use signal_hook::low_level::siginfo::Cause;

/// The signals that are forwarded.
const FORWARDED: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Receives signals, and the end of the command.
pub(super) struct Signals(SignalsInfo<WithOrigin>);

impl Signals {
    /// Starts to listen. A signal that the parent process set to be ignored stays ignored, also for the command, as it would
    /// without us (`nohup`, background jobs).
    pub(super) fn listen() -> io::Result<Signals> {
        let ignored = ignored();
        let handled = FORWARDED.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        Ok(Signals(SignalsInfo::new(handled.chain([SIGCHLD]))?))
    }

    /// Forwards signals to the child until it has ended. In one thread, so that no signal goes to another process that reuses
    /// the child's process id.
    pub(super) fn forward_until_exit(mut self, mut child: Child) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            for origin in self.0.wait() {
                forward(&origin, &child);
            }
        }
    }
}

/// Forwards a signal, unless it came from the terminal, which signals every process in the foreground: a command may treat a
/// second signal as a request to end at once.
fn forward(origin: &Origin, child: &Child) {
    let is_from_terminal = matches!(origin.cause, Cause::Kernel);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(signal), Some(pid)) = (named(origin.signal).filter(|_| !is_from_terminal), pid) {
        // An error is ignored: the command may have ended.
        let _ = kill_process(pid, signal);
    }
}

fn named(signal: i32) -> Option<Signal> {
    match signal {
        SIGHUP => Some(Signal::HUP),
        SIGINT => Some(Signal::INT),
        SIGQUIT => Some(Signal::QUIT),
        SIGTERM => Some(Signal::TERM),
        _ => None,
    }
}

/// Returns the signals that this process ignores, one bit each; none where that is unknown.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

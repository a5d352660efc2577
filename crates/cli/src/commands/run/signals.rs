//! Signals that are meant for the command we run.

use std::io;
use std::process::{Child, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::exfiltrator::origin::Origin;
use signal_hook::low_level::siginfo::Cause;

/// What is passed on.
const PASSED_ON: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Receives signals, and the end of the command.
pub(super) struct Signals(SignalsInfo<WithOrigin>);

impl Signals {
    /// Listens from now on. A signal that the parent process set to be ignored stays ignored, for the command too,
    /// as it would without us (`nohup`, jobs in the background).
    pub(super) fn listen() -> io::Result<Signals> {
        let ignored = ignored();
        let heard = PASSED_ON.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        Ok(Signals(SignalsInfo::new(heard.chain([SIGCHLD]))?))
    }

    /// Passes signals on to the child until it has ended. In one thread, so that none goes to another process that got
    /// the number of the child when that was gone.
    pub(super) fn pass_on_until_the_end(mut self, mut child: Child) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            for origin in self.0.wait() {
                pass_on(&origin, &child);
            }
        }
    }
}

/// Passes a signal on, unless it came from the terminal, which signals every process in its foreground: a command that
/// gets a signal twice may take it for impatience.
fn pass_on(origin: &Origin, child: &Child) {
    let is_from_terminal = matches!(origin.cause, Cause::Kernel);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(signal), Some(pid)) = (named(origin.signal).filter(|_| !is_from_terminal), pid) {
        // An error is ignored: a command that is gone needs no signal.
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

/// The signals that this process ignores, a bit for each; none where that cannot be known.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

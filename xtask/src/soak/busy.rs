//! Busy processes: each keeps a core at work until this process ends it, or is gone.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result};

/// What this program is called with to be a busy process. No person types it.
pub(crate) const COMMAND: &str = "soak-busy";

/// Busy processes. Dropping them ends them.
pub(super) struct Busy(Vec<Child>);

impl Busy {
    /// Starts so many of `program`, which is this one.
    pub(super) fn start(program: &Path, count: usize) -> Result<Busy> {
        // Those that were started are ended if a later one cannot be.
        let mut busy = Busy(Vec::new());
        for _ in 0..count {
            let mut command = Command::new(program);
            command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::null());
            busy.0.push(command.spawn().context("cannot start a busy process")?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that is gone already is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Keeps a core busy until standard input ends: so the process that started this one need not live to end it.
pub(crate) fn keep_busy() -> ExitCode {
    std::thread::spawn(|| {
        let mut number = 1_u64;
        loop {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    });
    let mut nothing = [0; 64];
    let mut input = io::stdin().lock();
    while input.read(&mut nothing).is_ok_and(|count| count > 0) {}
    ExitCode::SUCCESS
}

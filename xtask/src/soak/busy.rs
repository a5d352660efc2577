//! Busy processes: each loads a core until this process kills it or ends.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result};

/// The argument that makes this program a busy process, for internal use.
pub(crate) const COMMAND: &str = "soak-busy";

/// Busy processes. Dropping them ends them.
pub(super) struct Busy(Vec<Child>);

impl Busy {
    /// Starts `count` busy processes of `program`, which is this program.
    pub(super) fn start(program: &Path, count: usize) -> Result<Busy> {
        // If one cannot be started, the earlier ones are killed on drop.
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
            // An error is ignored: the process may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Keeps a core busy until standard input ends, which also happens when the parent process is killed.
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

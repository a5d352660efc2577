//! One run of a test binary.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::stopwatch::Stopwatch;
use crate::test_binaries::Binary;

/// The timeout of a run. On an idle core every run takes minutes at most.
const RUN_MAX: Duration = Duration::from_secs(3_600);

/// The polling interval for the end of a run.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The end of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChildEnd {
    Passed,
    /// It failed, for this reason.
    Failed(String),
    /// It was killed because this process ends.
    Interrupted,
}

/// Runs a binary as cargo would. Its output stays in `log` unless it passes.
pub(super) fn run(binary: &Binary, log: &Path, is_interrupted: &AtomicBool) -> Result<ChildEnd> {
    let child =
        start(binary, log).with_context(|| format!("cannot start {}", binary.executable.display()))?;
    let ended = wait(child, RUN_MAX, is_interrupted)?;
    if !matches!(ended, ChildEnd::Failed(_)) {
        fs::remove_file(log).with_context(|| format!("cannot remove {}", log.display()))?;
    }
    Ok(ended)
}

fn start(binary: &Binary, log: &Path) -> Result<Child> {
    let log = File::create(log)?;
    let mut command = Command::new(&binary.executable);
    command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // A separate process group, so that its children can be killed with it.
    Ok(command.process_group(0).spawn()?)
}

fn wait(mut child: Child, limit: Duration, is_interrupted: &AtomicBool) -> Result<ChildEnd> {
    let clock = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() {
                ChildEnd::Passed
            } else {
                ChildEnd::Failed(status.to_string())
            });
        }
        if is_interrupted.load(Ordering::Relaxed) {
            end(&mut child)?;
            return Ok(ChildEnd::Interrupted);
        }
        if clock.elapsed() >= limit {
            end(&mut child)?;
            return Ok(ChildEnd::Failed(format!("it did not end within {limit:?}")));
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}

/// Kills a run and its children.
fn end(child: &mut Child) -> Result<()> {
    let group = format!("-{}", child.id());
    let status = Command::new("kill").args(["-KILL", "--", &group]).status();
    if !status.context("cannot start kill")?.success() {
        // It has ended meanwhile, or there is no group.
        let _ = child.kill();
    }
    child.wait().map(drop).context("cannot wait for a run that was ended")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn folder() -> PathBuf {
        std::env::temp_dir()
    }

    fn log(name: &str) -> PathBuf {
        folder().join(format!("tollgate-soak-{}-{name}.log", std::process::id()))
    }

    fn binary(executable: &str) -> Binary {
        Binary { name: "a/b".to_owned(), executable: executable.into(), folder: folder() }
    }

    fn shell(line: &str) -> Child {
        Command::new("/bin/sh").args(["-c", line]).process_group(0).spawn().unwrap()
    }

    #[test]
    fn the_log_of_a_failure_is_kept_and_that_of_a_success_is_not() {
        let no = AtomicBool::new(false);
        assert_eq!(run(&binary("/bin/true"), &log("true"), &no).unwrap(), ChildEnd::Passed);
        assert!(!log("true").exists());
        let failed = run(&binary("/bin/false"), &log("false"), &no).unwrap();
        assert!(matches!(failed, ChildEnd::Failed(_)) && log("false").exists());
        fs::remove_file(log("false")).unwrap();
        assert!(run(&binary("/no/such/program"), &log("none"), &no).is_err());
        fs::remove_file(log("none")).unwrap();
    }

    #[test]
    fn a_run_that_hangs_is_ended_and_has_failed() {
        let ended = wait(shell("sleep 1000 & wait"), Duration::ZERO, &AtomicBool::new(false)).unwrap();
        assert!(matches!(ended, ChildEnd::Failed(why) if why.contains("did not end")));
    }

    #[test]
    fn an_interruption_ends_the_run() {
        let ended = wait(shell("exec sleep 1000"), RUN_MAX, &AtomicBool::new(true)).unwrap();
        assert_eq!(ended, ChildEnd::Interrupted);
    }
}

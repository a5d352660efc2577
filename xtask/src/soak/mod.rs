//! `cargo xtask soak`: every test that starts processes, threads or servers, again and again on a machine that is busy.
//!
//! A test whose outcome depends on timing passes on an idle machine and fails on a loaded one. So everything is built
//! first, then busy processes load the cores, and then each test binary is run many times, a few of them at once. The state
//! is written after each run: an interrupted soak can be resumed, as long as the binaries are the same.

mod binaries;
mod busy;
mod child;
mod options;
mod state;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

use crate::stopwatch::Stopwatch;
use crate::test_binaries::Binary;
use crate::{TaskOutcome, metadata, repo, servers};
use busy::Busy;
use child::ChildEnd;
use options::Options;
use state::SoakState;

pub(crate) use busy::{COMMAND as BUSY_COMMAND, keep_busy};

/// Runs a soak with these options.
pub(crate) fn run(arguments: &[String]) -> Result<TaskOutcome> {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(why) => return Ok(TaskOutcome::Misused(why)),
    };
    let root = repo::root()?;
    // Before the tests are built, which may replace this program.
    let program = std::env::current_exe().context("cannot find this program")?;
    servers::prepare(&root)?;
    println!("soak: building all tests");
    let mut binaries = binaries::build(&root)?;
    binaries.retain(|binary| options.only.as_deref().is_none_or(|only| binary.name.contains(only)));
    if binaries.is_empty() {
        return Ok(TaskOutcome::Misused("no test binary has such a name; --list shows them".to_owned()));
    }
    if options.list {
        for binary in &binaries {
            println!("{}", binary.name);
        }
        return Ok(TaskOutcome::Passed);
    }
    let folder = metadata::load(&root)?.target_directory.join("soak-runs");
    Soak { folder, program, binaries, options }.run()
}

struct Soak {
    folder: PathBuf,
    /// This program, which is also the busy process.
    program: PathBuf,
    binaries: Vec<Binary>,
    options: Options,
}

impl Soak {
    fn run(&self) -> Result<TaskOutcome> {
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot create {}", self.folder.display()))?;
        let hashes = self.binaries.iter().map(Binary::hash).collect::<Result<Vec<u64>>>()?;
        let keys = self.keys(&hashes);
        let mut state = SoakState::load(&self.state_file(), &keys)?;
        let was_interrupted = self.run_what_is_left(&keys, &mut state)?;
        let (runs, millis) = state.done(&keys);
        let seconds = millis as f64 / 1_000.0;
        println!("soak: {runs} runs of {} binaries, {seconds:.1} s of run time in total", keys.len());
        let failures = state.failures(&keys);
        for failure in &failures {
            println!("flake: {failure}");
        }
        if was_interrupted {
            println!("soak: interrupted; run it again to resume");
        }
        Ok(if was_interrupted || !failures.is_empty() { TaskOutcome::Failed } else { TaskOutcome::Passed })
    }

    /// Returns whether it was interrupted.
    fn run_what_is_left(&self, keys: &[String], state: &mut SoakState) -> Result<bool> {
        let left = state.left(keys, self.options.times);
        if left == 0 {
            println!("soak: all runs are done; remove {} to start over", self.folder.display());
            return Ok(false);
        }
        println!("soak: {left} runs, with {} busy processes", self.options.load);
        let is_interrupted = interruption()?;
        let _busy = Busy::start(&self.program, self.options.load)?;
        let queue = Mutex::new(Queue { state, running: Vec::new() });
        let work = || self.work(keys, &queue, &is_interrupted);
        std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..self.options.jobs).map(|_| scope.spawn(work)).collect();
            jobs.into_iter().try_for_each(|job| match job.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        Ok(is_interrupted.load(Ordering::Relaxed))
    }

    /// Runs one binary after the other until none is left.
    fn work(&self, keys: &[String], queue: &Mutex<Queue<'_>>, is_interrupted: &AtomicBool) -> Result<()> {
        let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some((index, round)) = lock().begin(keys, self.options.times) else { return Ok(()) };
            let clock = Stopwatch::start();
            let binary = &self.binaries[index];
            let log = self.log_of(&self.binaries[index], round);
            let ended = child::run(binary, &log, is_interrupted)?;
            let Queue { state, running } = &mut *lock();
            running.retain(|other| *other != index);
            let name = &binary.name;
            let failure = match ended {
                ChildEnd::Interrupted => return Ok(()),
                ChildEnd::Passed => None,
                ChildEnd::Failed(why) => Some(format!("{name}, run {round}: {why}, see {}", log.display())),
            };
            let result = if failure.is_none() { "passed" } else { "FAILED" };
            state.add(&keys[index], clock.millis(), failure);
            println!(
                "{name}: run {round} {result} in {clock}, {} left",
                state.left(keys, self.options.times)
            );
            state.save(&self.state_file())?;
        }
    }

    /// Returns the key of each binary: its name and its hash.
    fn keys(&self, hashes: &[u64]) -> Vec<String> {
        let key = |(binary, hash): (&Binary, &u64)| format!("{} {hash:016x}", binary.name);
        self.binaries.iter().zip(hashes).map(key).collect()
    }

    fn state_file(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    fn log_of(&self, binary: &Binary, round: u64) -> PathBuf {
        let name = binary.name.replace(['/', ' '], "-");
        Path::new(&self.folder).join(format!("{name}-{round}.log"))
    }
}

/// Finished and running runs: no binary runs twice at once, because its log has one name for each run.
struct Queue<'a> {
    state: &'a mut SoakState,
    running: Vec<usize>,
}

impl Queue<'_> {
    fn begin(&mut self, keys: &[String], times: u64) -> Option<(usize, u64)> {
        let next = self.state.next(keys, times, &self.running)?;
        self.running.push(next.0);
        Some(next)
    }
}

/// Returns a flag that becomes true with Ctrl-C, SIGTERM and SIGHUP.
fn interruption() -> Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&is_interrupted));
        registered.context("cannot listen for signals")?;
    }
    Ok(is_interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soak(folder: &Path, programs: &[&str], times: u64) -> Soak {
        let binary = |program: &&str| Binary {
            name: format!("a/{}", program.trim_start_matches("/bin/")),
            executable: program.into(),
            folder: std::env::temp_dir(),
        };
        let options = Options { times, load: 0, jobs: 2, only: None, list: false };
        let program = PathBuf::new();
        Soak { folder: folder.into(), program, binaries: programs.iter().map(binary).collect(), options }
    }

    fn runs(soak: &Soak) -> u64 {
        let hashes: Vec<u64> = soak.binaries.iter().map(|binary| binary.hash().unwrap()).collect();
        let keys = soak.keys(&hashes);
        SoakState::load(&soak.state_file(), &keys).unwrap().done(&keys).0
    }

    #[test]
    fn a_flake_fails_the_soak_and_the_next_soak_resumes_it() {
        let folder = std::env::temp_dir().join(format!("tollgate-soak-{}", std::process::id()));
        let good = soak(&folder, &["/bin/true"], 2);
        assert!(matches!(good.run().unwrap(), TaskOutcome::Passed));
        assert_eq!(runs(&good), 2);
        // The first has no runs left, and the second is run twice.
        let both = soak(&folder, &["/bin/true", "/bin/false"], 2);
        assert!(matches!(both.run().unwrap(), TaskOutcome::Failed));
        assert_eq!(runs(&both), 4);
        let logs = [1, 2].map(|round| both.log_of(&both.binaries[1], round));
        assert!(logs.iter().all(|log| log.exists()));
        // The earlier failure is still reported.
        assert!(matches!(both.run().unwrap(), TaskOutcome::Failed));
        assert_eq!(runs(&both), 4);
        let more = soak(&folder, &["/bin/true"], 3);
        assert!(matches!(more.run().unwrap(), TaskOutcome::Passed));
        assert_eq!(runs(&more), 3);
        fs::remove_dir_all(&folder).unwrap();
    }
}

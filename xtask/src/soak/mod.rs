//! `cargo xtask soak`: every test that starts processes, threads or servers, again and again on a machine that is busy.
//!
//! A test whose outcome depends on timing passes on an idle machine and fails on a loaded one. So everything is built
//! first, then busy processes load the cores, and then each test binary is run so many times, one after the other. What
//! was run is written down after each run: a soak that was interrupted goes on where it stopped, as long as the binaries
//! are the same.

mod binaries;
mod busy;
mod child;
mod options;
mod state;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use anyhow::{Context, Result};

use crate::stopwatch::Stopwatch;
use crate::{Outcome, metadata, repo, servers};
use binaries::Binary;
use busy::Busy;
use child::Ended;
use options::Options;
use state::State;

pub(crate) use busy::{COMMAND as BUSY_COMMAND, keep_busy};

/// Runs what the options say.
pub(crate) fn run(arguments: &[String]) -> Result<Outcome> {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(why) => return Ok(Outcome::Misused(why)),
    };
    let root = repo::root()?;
    servers::prepare(&root)?;
    println!("soak: building all tests");
    let mut binaries = binaries::build(&root)?;
    binaries.retain(|binary| options.only.as_deref().is_none_or(|only| binary.name.contains(only)));
    if binaries.is_empty() {
        return Ok(Outcome::Misused("no test binary has such a name; --list shows them".to_owned()));
    }
    if options.list {
        binaries.iter().for_each(|binary| println!("{}", binary.name));
        return Ok(Outcome::Passed);
    }
    let folder = metadata::load(&root)?.target_directory.join("soak");
    Soak { folder, binaries, options }.run()
}

struct Soak {
    folder: PathBuf,
    binaries: Vec<Binary>,
    options: Options,
}

impl Soak {
    fn run(&self) -> Result<Outcome> {
        fs::create_dir_all(&self.folder).with_context(|| format!("cannot make {}", self.folder.display()))?;
        let hashes = self.binaries.iter().map(Binary::hash).collect::<Result<Vec<u64>>>()?;
        let mut state = State::load(&self.state_file(), &self.keys(&hashes))?;
        let was_interrupted = self.run_what_is_left(&hashes, &mut state)?;
        let keys = self.keys(&hashes);
        let (runs, millis) = state.done(&keys);
        println!("soak: {runs} runs of {} binaries in {:.1} s", keys.len(), millis as f64 / 1_000.0);
        let failures = state.failures(&keys);
        failures.iter().for_each(|failure| println!("flake: {failure}"));
        if was_interrupted {
            println!("soak: interrupted; run it again to go on");
        }
        Ok(if was_interrupted || !failures.is_empty() { Outcome::Failed } else { Outcome::Passed })
    }

    /// Says whether it was interrupted.
    fn run_what_is_left(&self, hashes: &[u64], state: &mut State) -> Result<bool> {
        let keys = self.keys(hashes);
        let mut left = state.left(&keys, self.options.times);
        if left == 0 {
            println!("soak: nothing is left to run; remove {} to begin anew", self.folder.display());
            return Ok(false);
        }
        println!("soak: {left} runs, beside {} busy processes", self.options.load);
        let interruptions = interruptions()?;
        let _busy = Busy::start(self.options.load)?;
        while let Some((place, round)) = state.next(&keys, self.options.times) {
            let clock = Stopwatch::start();
            let log = self.log_of(&self.binaries[place], round);
            let ended = child::run(&self.binaries[place], &log, &interruptions)?;
            let name = &self.binaries[place].name;
            left -= 1;
            match &ended {
                Ended::Interrupted => return Ok(true),
                Ended::Passed => println!("{name}: run {round} passed in {clock}, {left} left"),
                Ended::Failed(why) => println!("{name}: run {round} FAILED ({why}), see {}", log.display()),
            }
            let failure = match ended {
                Ended::Failed(why) => Some(format!("{name}, run {round}: {why}, see {}", log.display())),
                _ => None,
            };
            state.add(&keys[place], clock.millis(), failure);
            state.save(&self.state_file())?;
        }
        Ok(false)
    }

    /// What each binary is known by: its name, and what is in it.
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

/// A message for each Ctrl-C and the like.
fn interruptions() -> Result<mpsc::Receiver<()>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .context("cannot listen for signals")?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || signals.forever().try_for_each(|_| sender.send(())));
    Ok(receiver)
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
        let options = Options { times, load: 0, only: None, list: false };
        Soak { folder: folder.into(), binaries: programs.iter().map(binary).collect(), options }
    }

    fn runs(soak: &Soak) -> u64 {
        let hashes: Vec<u64> = soak.binaries.iter().map(|binary| binary.hash().unwrap()).collect();
        let keys = soak.keys(&hashes);
        State::load(&soak.state_file(), &keys).unwrap().done(&keys).0
    }

    #[test]
    fn a_flake_fails_the_soak_and_another_soak_goes_on_where_one_stopped() {
        let folder = std::env::temp_dir().join(format!("tollgate-soak-{}", std::process::id()));
        let good = soak(&folder, &["/bin/true"], 2);
        assert!(matches!(good.run().unwrap(), Outcome::Passed));
        assert_eq!(runs(&good), 2);
        // Nothing is left of the first, and the second is run twice.
        let both = soak(&folder, &["/bin/true", "/bin/false"], 2);
        assert!(matches!(both.run().unwrap(), Outcome::Failed));
        assert_eq!(runs(&both), 4);
        let logs = [1, 2].map(|round| both.log_of(&both.binaries[1], round));
        assert!(logs.iter().all(|log| log.exists()));
        // That it failed before is not forgotten.
        assert!(matches!(both.run().unwrap(), Outcome::Failed));
        assert_eq!(runs(&both), 4);
        let more = soak(&folder, &["/bin/true"], 3);
        assert!(matches!(more.run().unwrap(), Outcome::Passed));
        assert_eq!(runs(&more), 3);
        fs::remove_dir_all(&folder).unwrap();
    }
}

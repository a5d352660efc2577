//! Automation in Rust: `cargo xtask test`, `cargo xtask soak`, `cargo xtask bench`, `cargo xtask tidy`.
#![allow(clippy::print_stdout, reason = "the commands talk to a person at a terminal")]

mod bench;
mod command;
mod deny;
mod emulator;
mod examples;
mod lambda;
mod metadata;
mod python;
mod repo;
mod servers;
#[cfg(unix)]
mod soak;
mod stopwatch;
mod test;
mod test_binaries;
mod tidy;
mod wheel;

use std::process::ExitCode;

use anyhow::Result;

const HELP: &str = "\
Automation for Tollgate.

Usage: cargo xtask COMMAND [OPTIONS]

Commands:
  test   Run everything that must pass: tidy, deny, tests, Python, the emulator, examples, loom, docs
           --only STEP   run one step
           --list        name the steps and stop
  soak   Run the tests that start processes, threads or servers again and again on busy cores
           --times N        how often each test binary is run (default 20)
           --load N         how many busy processes load the cores meanwhile (default 8)
           --jobs N         how many test binaries run at once (default 4)
           --only PATTERN   only binaries whose name contains it, such as tollgate-cli/
           --list           name the binaries and stop
         an interrupted soak can be resumed; target/soak-runs has the logs of failures
  bench  Run the benchmarks against the peers, in release mode
           arguments go to tollgate-bench: --only PREFIX, --json FILE, --quick, --check
  lambda Build the aggregator for AWS Lambda, and zip it
           --target TRIPLE   for another machine, such as aarch64-unknown-linux-gnu
  servers  Install Redis and Valkey for the tests, below the target directory
  tidy   Check the house rules a machine can check
  help   Print this page

Examples:
  cargo xtask test                              everything, as CI does
  cargo xtask test --only loom                  one step
  cargo xtask soak --times 5 --only tollgate-shm/    look for flakes of one crate
  cargo xtask bench --quick --only core/        a first look at the hot paths
  cargo xtask bench --json target/bench.json    all rows, for a script
  cargo xtask tidy                              a second or two, before each commit

Exit codes: 0 success, 1 a check failed, 2 the command line is invalid.
";

/// The outcome of a command.
enum TaskOutcome {
    Passed,
    Failed,
    /// The command line is invalid; the text says what would be valid.
    Misused(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    #[cfg(unix)]
    if arguments == [soak::BUSY_COMMAND] {
        return soak::keep_busy();
    }
    match run(&arguments) {
        Ok(TaskOutcome::Passed) => ExitCode::SUCCESS,
        Ok(TaskOutcome::Failed) => ExitCode::from(1),
        Ok(TaskOutcome::Misused(why)) => {
            eprintln!("xtask: {why}\nTry `cargo xtask help`.");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn run(arguments: &[String]) -> Result<TaskOutcome> {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{HELP}");
        return Ok(TaskOutcome::Passed);
    };
    let wants_help = rest.iter().any(|argument| argument == "--help" || argument == "-h");
    match name.as_str() {
        "help" | "--help" | "-h" => print!("{HELP}"),
        // The benchmarks have a help page of their own.
        "bench" => return bench::run(rest),
        "test" | "soak" | "tidy" | "lambda" | "servers" if wants_help => print!("{HELP}"),
        "test" => return test::run(rest),
        #[cfg(unix)]
        "soak" => return soak::run(rest),
        "lambda" => return lambda::run(rest),
        "servers" => return servers::run(rest),
        "tidy" => return tidy::run(rest),
        other => {
            return Ok(TaskOutcome::Misused(format!(
                "no command {other:?}; there are test, soak, bench, lambda, servers, tidy and help"
            )));
        }
    }
    Ok(TaskOutcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn unknown_input_is_misuse_and_names_what_was_typed() {
        for (line, typed) in [("tests", "tests"), ("test --onyl loom", "--onyl"), ("tidy now", "now")] {
            match run(&arguments(line)).unwrap() {
                TaskOutcome::Misused(why) => assert!(why.contains(typed), "{line}: {why}"),
                _ => panic!("{line:?} was accepted"),
            }
        }
    }
}

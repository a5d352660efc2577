//! `cargo xtask test`: everything that must pass, in order, until something does not.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::Cargo;
use crate::stopwatch::Stopwatch;
use crate::{Outcome, examples, metadata, repo, tidy};

/// One step: what it is called, what it proves, and how to do it.
struct Step {
    name: &'static str,
    promise: &'static str,
    run: fn(&Path) -> Result<Done>,
}

/// How a step that did not fail ended.
enum Done {
    Passed,
    /// What it needs is not there; the text says what.
    Skipped(&'static str),
}

/// Cheap steps first, so that a slip is told early.
const STEPS: [Step; 5] = [
    Step { name: "tidy", promise: "the house rules hold", run: tidy_step },
    Step { name: "test", promise: "unit, integration and documentation tests pass", run: tests },
    Step { name: "examples", promise: "the examples build and run", run: run_examples },
    Step { name: "loom", promise: "every interleaving of the store's locks is sound", run: loom },
    Step { name: "docs", promise: "the documentation builds without a warning", run: docs },
];

/// Runs all steps, or the one that `--only` names.
pub(crate) fn run(arguments: &[String]) -> Result<Outcome> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let chosen: Vec<&Step> = match words[..] {
        [] => STEPS.iter().collect(),
        ["--only", name] => STEPS.iter().filter(|step| step.name == name).collect(),
        ["--list"] => {
            STEPS.iter().for_each(|step| println!("{:<9} {}", step.name, step.promise));
            return Ok(Outcome::Passed);
        }
        _ => return Ok(misused(&words)),
    };
    if chosen.is_empty() {
        return Ok(misused(&words));
    }
    run_steps(&repo::root()?, &chosen)?;
    Ok(Outcome::Passed)
}

fn run_steps(root: &Path, steps: &[&Step]) -> Result<()> {
    let mut passed = 0;
    for (index, step) in steps.iter().enumerate() {
        let clock = Stopwatch::start();
        let label = format!("[{}/{}] {}", index + 1, steps.len(), step.name);
        println!("{label}: {}", step.promise);
        match (step.run)(root).with_context(|| format!("step {} failed", step.name))? {
            Done::Passed => {
                passed += 1;
                println!("{label}: passed in {clock}");
            }
            Done::Skipped(why) => println!("{label}: skipped, {why}"),
        }
    }
    println!("{}", summary(passed, steps.len()));
    Ok(())
}

/// A step that was skipped has proved nothing, and is not counted as if it had.
fn summary(passed: usize, all: usize) -> String {
    match all - passed {
        0 => format!("xtask test: {passed} steps passed"),
        skipped => format!("xtask test: {passed} steps passed, {skipped} skipped"),
    }
}

fn misused(words: &[&str]) -> Outcome {
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    Outcome::Misused(format!(
        "test does not understand `{}`; it takes --list or --only STEP, with STEP one of {}",
        words.join(" "),
        names.join(", "),
    ))
}

fn tidy_step(root: &Path) -> Result<Done> {
    match tidy::check_and_print(root)? {
        0 => Ok(Done::Passed),
        count => bail!("`cargo xtask tidy` found {count} violations"),
    }
}

fn tests(root: &Path) -> Result<Done> {
    Cargo::new(["test", "--workspace"]).run(root)?;
    Ok(Done::Passed)
}

fn run_examples(root: &Path) -> Result<Done> {
    examples::run(root)?;
    Ok(Done::Passed)
}

fn loom(root: &Path) -> Result<Done> {
    if !root.join("crates/store/tests/loom.rs").exists() {
        return Ok(Done::Skipped("crates/store/tests/loom.rs is not there yet"));
    }
    // A flag for all of rustc would rebuild everything else too: hence a directory of its own.
    let target = metadata::load(root)?.target_directory.join("loom");
    Cargo::new(["test", "--package", "tollgate-store", "--release", "--test", "loom"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target.to_string_lossy())
        .run(root)?;
    Ok(Done::Passed)
}

fn docs(root: &Path) -> Result<Done> {
    Cargo::new(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run(root)?;
    Ok(Done::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSES: Step = Step { name: "passes", promise: "nothing", run: |_| Ok(Done::Passed) };
    const FAILS: Step = Step { name: "fails", promise: "nothing", run: |_| bail!("`cargo nonsense` failed") };
    const NEVER: Step = Step { name: "never", promise: "nothing", run: |_| panic!("ran past a failure") };

    #[test]
    fn the_first_failure_stops_the_run_and_names_its_command() {
        let error = run_steps(Path::new("."), &[&PASSES, &FAILS, &NEVER]).unwrap_err();
        assert_eq!(format!("{error:#}"), "step fails failed: `cargo nonsense` failed");
    }

    #[test]
    fn a_skipped_step_is_not_counted_as_passed() {
        assert_eq!(summary(5, 5), "xtask test: 5 steps passed");
        assert_eq!(summary(4, 5), "xtask test: 4 steps passed, 1 skipped");
    }

    #[test]
    fn an_unknown_step_is_misuse_that_lists_the_known_ones() {
        match run(&["--only".to_owned(), "lint".to_owned()]).unwrap() {
            Outcome::Misused(why) => assert!(why.contains("loom"), "{why}"),
            _ => panic!("accepted a step that does not exist"),
        }
    }
}

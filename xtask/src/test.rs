//! `cargo xtask test`: runs everything that must pass, until a step fails.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::Cargo;
use crate::stopwatch::Stopwatch;
use crate::{TaskOutcome, deny, emulator, examples, metadata, repo, servers, tidy, wheel};

/// One step: its name, what it checks, and its function.
struct TestStep {
    name: &'static str,
    promise: &'static str,
    run: fn(&Path) -> Result<()>,
}

/// The steps, cheap ones first.
const STEPS: [TestStep; 11] = [
    step("tidy", "the house rules hold", tidy_step),
    step("deny", "the dependencies may be used (deny.toml), if cargo-deny is installed", deny::check),
    step("servers", "Redis and Valkey are installed for the tests", servers::prepare),
    step("test", "unit, integration and documentation tests pass", tests),
    step("python", "the wheel installs, and the tests of the Python package pass", wheel::test),
    step("deploy", "CloudFormation understands the template", emulator::check_template),
    step("emulator", "the suites pass on ministack, and the Lambda writes usage", emulator::run),
    step("examples", "the examples build and run", run_examples),
    step("loom", "every interleaving of the store's locks is sound", loom),
    step("features", "crates build with few features, as their users build them", features),
    step("docs", "the documentation builds without a warning", docs),
];

const fn step(name: &'static str, promise: &'static str, run: fn(&Path) -> Result<()>) -> TestStep {
    TestStep { name, promise, run }
}

/// Steps that take long, or need what few machines have. They run only if they are named.
const LONG_STEPS: [TestStep; 1] = [step(
    "python-full",
    "the Python package passes its tests with every interpreter found",
    wheel::test_on_all,
)];

/// Runs all steps but the long ones, or the one that `--only` names.
pub(crate) fn run(arguments: &[String]) -> Result<TaskOutcome> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let chosen: Vec<&TestStep> = match words[..] {
        [] => STEPS.iter().collect(),
        ["--only", name] => STEPS.iter().chain(&LONG_STEPS).filter(|step| step.name == name).collect(),
        ["--list"] => {
            for step in STEPS.iter().chain(&LONG_STEPS) {
                println!("{:<11} {}", step.name, step.promise);
            }
            return Ok(TaskOutcome::Passed);
        }
        _ => return Ok(misused(&words)),
    };
    if chosen.is_empty() {
        return Ok(misused(&words));
    }
    run_steps(&repo::root()?, &chosen)?;
    Ok(TaskOutcome::Passed)
}

fn run_steps(root: &Path, steps: &[&TestStep]) -> Result<()> {
    for (index, step) in steps.iter().enumerate() {
        let clock = Stopwatch::start();
        let label = format!("[{}/{}] {}", index + 1, steps.len(), step.name);
        println!("{label}: {}", step.promise);
        (step.run)(root).with_context(|| format!("step {} failed", step.name))?;
        println!("{label}: passed in {clock}");
    }
    println!("xtask test: {} steps passed", steps.len());
    Ok(())
}

fn misused(words: &[&str]) -> TaskOutcome {
    let names: Vec<&str> = STEPS.iter().chain(&LONG_STEPS).map(|step| step.name).collect();
    TaskOutcome::Misused(format!(
        "test does not understand `{}`; it takes --list or --only STEP, with STEP one of {}",
        words.join(" "),
        names.join(", "),
    ))
}

fn tidy_step(root: &Path) -> Result<()> {
    match tidy::check_and_print(root)? {
        0 => Ok(()),
        count => bail!("`cargo xtask tidy` found {count} violations"),
    }
}

fn tests(root: &Path) -> Result<()> {
    Cargo::workspace("test").args(["--no-fail-fast"]).run(root)?;
    // The vocabularies would make every other test slower, so they have a run of their own.
    Cargo::new(["test", "--package", "tollgate-provider", "--features", "tiktoken", "--lib"]).run(root)
}

fn run_examples(root: &Path) -> Result<()> {
    examples::run(root)
}

fn loom(root: &Path) -> Result<()> {
    // The flag changes every crate, so a separate directory keeps the other builds.
    let target = metadata::load(root)?.target_directory.join("loom");
    Cargo::new(["test", "--package", "tollgate-store", "--release", "--test", "loom"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target.to_string_lossy())
        .run(root)
}

/// Checks builds in which no other crate of the workspace enables what is missing.
fn features(root: &Path) -> Result<()> {
    for package in ["tollgate-cli", "tollgate-dynamo", "tollgate-open", "tollgate"] {
        Cargo::new(["check", "--package", package]).run(root)?;
    }
    // The command is also built with nothing but a file store: its tests pass, and none of them is left over.
    let bare = ["--package", "tollgate-cli", "--no-default-features"];
    Cargo::new(["clippy", "--all-targets"]).args(bare).args(["--", "--deny", "warnings"]).run(root)?;
    Cargo::new(["test"]).args(bare).run(root)
}

fn docs(root: &Path) -> Result<()> {
    Cargo::new(["doc", "--workspace", "--all-features", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .run(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSES: TestStep = step("passes", "nothing", |_| Ok(()));
    const FAILS: TestStep = step("fails", "nothing", |_| bail!("`cargo nonsense` failed"));
    const NEVER: TestStep = step("never", "nothing", |_| panic!("ran past a failure"));

    #[test]
    fn the_first_failure_stops_the_run_and_names_its_command() {
        let error = run_steps(Path::new("."), &[&PASSES, &FAILS, &NEVER]).unwrap_err();
        assert_eq!(format!("{error:#}"), "step fails failed: `cargo nonsense` failed");
    }

    #[test]
    fn an_unknown_step_is_misuse_that_lists_the_known_ones() {
        match run(&["--only".to_owned(), "lint".to_owned()]).unwrap() {
            TaskOutcome::Misused(why) => assert!(why.contains("loom"), "{why}"),
            _ => panic!("accepted a step that does not exist"),
        }
    }
}

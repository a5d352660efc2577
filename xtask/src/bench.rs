//! `cargo xtask bench`: the benchmarks, in release mode.

use std::process::Command;

use anyhow::{Context, Result};

use crate::TaskOutcome;
use crate::command::Cargo;
use crate::{metadata, repo, wheel};

/// Forwards the arguments to tollgate-bench, which validates them.
pub(crate) fn run(arguments: &[String]) -> Result<TaskOutcome> {
    let root = repo::root()?;
    // Together, so that they have the same features. The rows about the command run it from the directory of the benchmarks.
    let packages = ["--package", "tollgate-cli", "--package", "tollgate-bench"];
    Cargo::new(["build", "--release", "--quiet"]).args(packages).run(&root)?;
    let program = metadata::load(&root)?.target_directory.join("release/tollgate-bench");
    let mut bench = Command::new(&program);
    bench.args(absolute_json(arguments)?).current_dir(&root);
    if measures_python(arguments) {
        bench.env("TOLLGATE_BENCH_PYTHON", wheel::bench_interpreter(&root)?);
    }
    let status = bench.status().with_context(|| format!("cannot start {}", program.display()))?;
    Ok(match status.code() {
        Some(0) => TaskOutcome::Passed,
        Some(2) => TaskOutcome::Misused("tollgate-bench did not understand its arguments".to_owned()),
        _ => TaskOutcome::Failed,
    })
}

/// Returns whether rows of the Python package are measured, which needs its wheel.
fn measures_python(arguments: &[String]) -> bool {
    let is_run =
        !arguments.iter().any(|word| ["--list", "--help", "-h", "help", "count"].contains(&word.as_str()));
    let mut words = arguments.iter().skip_while(|word| *word != "--only").skip(1);
    is_run
        && words.next().is_none_or(|only| only.starts_with("python/") || "python/".starts_with(only.as_str()))
}

/// Resolves FILE against the caller's directory, because the benchmarks run in the root.
fn absolute_json(arguments: &[String]) -> Result<Vec<String>> {
    let mut arguments = arguments.to_vec();
    for index in 1..arguments.len() {
        if arguments[index - 1] == "--json" {
            arguments[index] = std::path::absolute(&arguments[index])?.to_string_lossy().into_owned();
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_is_built_for_rows_that_need_it() {
        let needs =
            |line: &str| measures_python(&line.split_whitespace().map(String::from).collect::<Vec<_>>());
        assert!(["", "--quick", "--only py", "--quick --only python/import"].into_iter().all(needs));
        assert!(!["--only core/", "--only python-less", "--list"].into_iter().any(needs));
    }

    #[test]
    fn only_the_json_file_is_rewritten() {
        let arguments = ["--only", "core/", "--json", "out.json"].map(String::from);
        let passed_on = absolute_json(&arguments).unwrap();
        assert_eq!(passed_on[..3], arguments[..3]);
        assert!(std::path::Path::new(&passed_on[3]).is_absolute());
    }
}

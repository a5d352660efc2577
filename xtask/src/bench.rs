//! `cargo xtask bench`: the benchmarks, in release mode.

use anyhow::Result;

use crate::TaskOutcome;
use crate::command::Cargo;
use crate::repo;

/// Forwards the arguments to tollgate-bench, which validates them.
pub(crate) fn run(arguments: &[String]) -> Result<TaskOutcome> {
    // The rows about the command run it from the directory of the benchmarks.
    Cargo::new(["build", "--release", "--quiet", "--package", "tollgate-cli"]).run(&repo::root()?)?;
    let fixed = ["run", "--release", "--quiet", "--package", "tollgate-bench", "--"];
    let passed_on = absolute_json(arguments)?;
    let cargo = Cargo::new(fixed.into_iter().chain(passed_on.iter().map(String::as_str)));
    Ok(match cargo.status(&repo::root()?)?.code() {
        Some(0) => TaskOutcome::Passed,
        Some(2) => TaskOutcome::Misused("tollgate-bench did not understand its arguments".to_owned()),
        _ => TaskOutcome::Failed,
    })
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
    fn only_the_json_file_is_rewritten() {
        let arguments = ["--only", "core/", "--json", "out.json"].map(String::from);
        let passed_on = absolute_json(&arguments).unwrap();
        assert_eq!(passed_on[..3], arguments[..3]);
        assert!(std::path::Path::new(&passed_on[3]).is_absolute());
    }
}

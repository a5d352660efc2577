//! `cargo xtask lambda`: the zip that AWS Lambda takes.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::Cargo;
use crate::{TaskOutcome, metadata, repo};

/// Builds the function and zips it.
pub(crate) fn run(arguments: &[String]) -> Result<TaskOutcome> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let target = match words[..] {
        [] => None,
        ["--target", target] => Some(target),
        _ => {
            let typed = words.join(" ");
            return Ok(TaskOutcome::Misused(format!(
                "lambda does not understand `{typed}`; it takes --target TRIPLE"
            )));
        }
    };
    let root = repo::root()?;
    let build = ["build", "--release", "--package", "tollgate-lambda"];
    Cargo::new(build.into_iter().chain(target.into_iter().flat_map(|triple| ["--target", triple])))
        .run(&root)?;
    let folder = metadata::load(&root)?.target_directory;
    let built = folder.join(target.unwrap_or_default()).join("release");
    let zip = folder.join("tollgate-lambda.zip");
    // Python's module keeps the executable bit.
    let mut pack = Command::new("python3");
    pack.args(["-m", "zipfile", "-c"]).arg(&zip).arg("bootstrap").current_dir(&built);
    if !pack.status().context("python3 cannot be started; it makes the zip")?.success() {
        bail!("the zip cannot be created");
    }
    println!("{}", zip.display());
    Ok(TaskOutcome::Passed)
}

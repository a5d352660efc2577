//! Builds every example, and runs every one that ends.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{Cargo, PROGRAMS};
use crate::metadata::{self, Metadata};

/// The mark in an example's source that needs a network or never ends, so that it is built and not run.
const BUILD_ONLY: &str = "// xtask: build only";

/// Builds all examples of the workspace, then runs them one by one.
pub(crate) fn run(root: &Path) -> Result<()> {
    Cargo::workspace("build").args(PROGRAMS).args(["--quiet"]).run(root)?;
    let Metadata { target_directory, members } = metadata::load(root)?;
    let folder = target_directory.join("debug/examples");
    for member in members {
        for example in &member.examples {
            let source = std::fs::read_to_string(&example.source)
                .with_context(|| format!("cannot read {}", example.source.display()))?;
            if !runs(&source) {
                continue;
            }
            println!(
                "    TOLLGATE_EXAMPLE_QUICK=1 cargo run --package {} --example {}",
                member.name, example.name
            );
            let program = folder.join(format!("{}{}", example.name, std::env::consts::EXE_SUFFIX));
            let mut command = Command::new(&program);
            command.env("TOLLGATE_EXAMPLE_QUICK", "1").current_dir(root);
            let status = command.status().with_context(|| format!("cannot start {}", program.display()))?;
            if !status.success() {
                bail!("the example {} failed ({status})", example.name);
            }
        }
    }
    Ok(())
}

/// Returns true unless the source of an example says that it is only built.
fn runs(source: &str) -> bool {
    !source.lines().any(|line| line.trim_end() == BUILD_ONLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_runs_unless_its_source_says_build_only() {
        assert!(runs("//! Shows a set.\nfn main() {}\n"));
        assert!(!runs("//! Serves for ever.\n// xtask: build only\nfn main() {}\n"));
    }
}

//! Builds every example, and runs every one that ends.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::Cargo;
use crate::metadata::{self, Example};

/// The mark in an example's source that needs a network or never ends, so that it is built and not run.
const BUILD_ONLY: &str = "// xtask: build only";

/// Builds all examples of the workspace, then runs them one by one.
pub(crate) fn run(root: &Path) -> Result<()> {
    Cargo::new(["build", "--quiet", "--workspace", "--examples"]).run(root)?;
    for member in metadata::load(root)?.members {
        for example in &member.examples {
            let source = std::fs::read_to_string(&example.source)
                .with_context(|| format!("cannot read {}", example.source.display()))?;
            let command = command(&member.name, example, verb(&source));
            println!("    {}", command.line());
            command.run(root)?;
        }
    }
    Ok(())
}

fn verb(source: &str) -> &'static str {
    let build_only = source.lines().any(|line| line.trim_end() == BUILD_ONLY);
    if build_only { "build" } else { "run" }
}

fn command(package: &str, example: &Example, verb: &str) -> Cargo {
    let features = example.features.join(",");
    let mut arguments = vec![verb, "--quiet", "--package", package, "--example", &example.name];
    if !features.is_empty() {
        arguments.extend(["--features", &features]);
    }
    Cargo::new(arguments).env("TOLLGATE_EXAMPLE_QUICK", "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_runs_unless_its_source_says_build_only() {
        assert_eq!(verb("//! Shows a set.\nfn main() {}\n"), "run");
        assert_eq!(verb("//! Serves for ever.\n// xtask: build only\nfn main() {}\n"), "build");
    }

    #[test]
    fn required_features_are_switched_on() {
        let features = ["tower".to_owned(), "tokio".to_owned()].to_vec();
        let example = Example { name: "layer".to_owned(), source: "layer.rs".into(), features };
        let line = command("tollgate", &example, "run").line();
        assert!(line.ends_with("--example layer --features tower,tokio"), "{line}");
    }
}

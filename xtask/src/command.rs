//! Runs cargo, with errors that name the failed command.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// The features that every build of the workspace has: the command with all that its default leaves out. The builds of tests, examples
/// and programs share what they compile, because they have the same features.
const FEATURES: &str = "tollgate-cli/local";

/// Arguments that build all programs and examples. Examples are among them because only with them the features of the tests' dependencies
/// are enabled, too.
pub(crate) const PROGRAMS: [&str; 2] = ["--bins", "--examples"];

/// One call of cargo: arguments and environment, printable as a person would type it.
pub(crate) struct Cargo {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Cargo {
    pub(crate) fn new<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Self {
        let arguments = arguments.into_iter().map(String::from).collect();
        Self { arguments, environment: Vec::new() }
    }

    /// A command about all packages of the workspace.
    pub(crate) fn workspace(verb: &str) -> Self {
        Self::new([verb, "--workspace", "--features", FEATURES])
    }

    pub(crate) fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(arguments.into_iter().map(String::from));
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Runs it with the terminal's streams; a failure is an error that shows the line to repeat it.
    pub(crate) fn run(&self, root: &Path) -> Result<()> {
        let status = self.status(root)?;
        if !status.success() {
            bail!("`{}` failed ({status})", self.line());
        }
        Ok(())
    }

    /// Runs it with the terminal's streams and returns its exit status.
    pub(crate) fn status(&self, root: &Path) -> Result<ExitStatus> {
        self.command(root).status().with_context(|| format!("could not start `{}`", self.line()))
    }

    /// Runs it and returns what it wrote to standard output.
    pub(crate) fn output(&self, root: &Path) -> Result<String> {
        let output =
            self.command(root).output().with_context(|| format!("could not start `{}`", self.line()))?;
        if !output.status.success() {
            bail!("`{}` failed: {}", self.line(), String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{}` wrote no UTF-8", self.line()))
    }

    /// As [`output`](Cargo::output), with its standard error shown on the terminal.
    pub(crate) fn answer(&self, root: &Path) -> Result<String> {
        let mut command = self.command(root);
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("could not start `{}`", self.line()))?;
        if !output.status.success() {
            bail!("`{}` failed ({})", self.line(), output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{}` wrote no UTF-8", self.line()))
    }

    /// Returns the command line as typed in a shell.
    pub(crate) fn line(&self) -> String {
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={} ", quoted(value)));
        let arguments = self.arguments.iter().map(|argument| format!(" {}", quoted(argument)));
        environment.chain(["cargo".to_owned()]).chain(arguments).collect()
    }

    fn command(&self, root: &Path) -> Command {
        // Under `cargo xtask` this is the very cargo that was called, toolchain included.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(&self.arguments).current_dir(root);
        // Build scripts depend on these, so a cargo with other values would rebuild everything that depends on such a crate.
        for name in of_this_package(std::env::vars_os()) {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Returns the environment variables in which cargo describes the package of this program.
fn of_this_package(variables: std::env::VarsOs) -> impl Iterator<Item = OsString> {
    let is_told = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    variables.map(|(name, _)| name).filter(is_told)
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("{word:?}") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_can_be_pasted_into_a_shell() {
        let cargo = Cargo::new(["test", "--test", "loom"]).env("RUSTFLAGS", "--cfg loom");
        assert_eq!(cargo.line(), "RUSTFLAGS=\"--cfg loom\" cargo test --test loom");
    }

    #[test]
    fn the_variables_of_this_package_are_removed() {
        let command = Cargo::new(["build"]).command(Path::new("."));
        let is_removed =
            |wanted: &str| command.get_envs().any(|(name, value)| name == wanted && value.is_none());
        assert!(is_removed("CARGO_PKG_NAME") && is_removed("CARGO_MANIFEST_DIR"));
        assert!(!is_removed("CARGO"));
    }

    #[test]
    fn a_failure_names_the_command() {
        let error = Cargo::new(["no-such-command"]).output(Path::new(".")).unwrap_err();
        assert!(error.to_string().contains("`cargo no-such-command` failed"), "{error}");
    }
}

//! The reference of all commands, made from their help.

use std::fmt::Write;

use anyhow::Result;
use clap::{Command, CommandFactory};
use serde::Serialize;

use crate::args::{Cli, HELP_WIDTH};
use crate::output::{Answer, Output, TextPage};

const HEAD: &str = "\
# The command line

<!-- Made by `tollgate reference > docs/reference/cli.md`, from the same source as --help and the manual. -->

What every command answers with `--json` is described in [json.md](json.md).
";

/// Prints the reference.
pub(in crate::commands) fn reference() -> Result<Output> {
    let mut root = Cli::command().term_width(HELP_WIDTH).disable_help_flag(true);
    root.build();
    let mut markdown = HEAD.to_owned();
    add(&mut markdown, &root);
    Ok(Output::new(ReferenceAnswer { markdown }))
}

/// Adds a command and those below it. What every command understands is said once, for the program itself.
fn add(markdown: &mut String, command: &Command) {
    let is_root = !command.get_bin_name().unwrap_or_default().contains(' ');
    let mut shown = command.clone();
    if !is_root {
        shown = shown.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg });
    }
    let help = shown.render_long_help().to_string();
    let name = command.get_bin_name().unwrap_or("tollgate");
    // A string takes whatever is written to it.
    let _ = write!(markdown, "\n## `{name}`\n\n```text\n{}\n```\n", trimmed(&help));
    command.get_subcommands().filter(|it| !it.is_hide_set()).for_each(|it| add(markdown, it));
}

fn trimmed(help: &str) -> String {
    help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

#[derive(Serialize)]
struct ReferenceAnswer {
    markdown: String,
}

impl Answer for ReferenceAnswer {
    fn text(&self, page: &mut TextPage) {
        page.line(self.markdown.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of what follows the options, of a command and of those below it, that would be wrapped.
    fn too_wide(command: &Command, found: &mut Vec<String>) {
        let helps = [command.get_after_help(), command.get_after_long_help()].into_iter().flatten();
        for help in helps.map(ToString::to_string) {
            found.extend(help.lines().filter(|line| line.chars().count() > HELP_WIDTH).map(str::to_owned));
        }
        command.get_subcommands().for_each(|below| too_wide(below, found));
    }

    #[test]
    fn no_line_behind_the_options_is_wider_than_help() {
        let mut found = Vec::new();
        too_wide(&Cli::command(), &mut found);
        assert_eq!(found, Vec::<String>::new());
        let planted = Command::new("planted").after_help("x".repeat(HELP_WIDTH + 1));
        too_wide(&planted, &mut found);
        assert_eq!(found.len(), 1);
    }
}

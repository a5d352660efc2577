//! Groups of commands in the help of the program. clap lists all commands under one heading.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, CommandFactory, value_parser};

use super::Cli;
use crate::features;
use crate::output::style;

/// The groups with their commands, in the order in which they are shown.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Use limits", &["run", "acquire", "settle", "peek", "explain"]),
    ("Watch", &["top", "usage", "audit", "status"]),
    ("Configure limits", &["limits", "system", "resource", "entity", "namespace", "set"]),
    ("Send batches", &["batch"]),
    ("Try and test", &["demo", "simulate", "mock-provider", "local"]),
    ("Administer", &["check", "upgrade", "aggregate", "token", "config", "version", "completions", "man"]),
];

/// Returns the command line with help that lists commands by group. The commands are hidden, so that clap does not list them
/// a second time. Those that this build leaves out accept any arguments, so that the caller can report what is missing.
pub(crate) fn grouped_command() -> Command {
    let command = Cli::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{all-args}}{{after-help}}",
        listing(&command)
    );
    let command = command.override_usage("tollgate [OPTIONS] <COMMAND>").help_template(template);
    let missing = features::missing_commands().map(|(name, _)| missing_command(name));
    command.mut_subcommands(|below| below.hide(true)).subcommands(missing)
}

fn missing_command(name: &'static str) -> Command {
    let rest = Arg::new("rest").action(ArgAction::Append).num_args(0..).trailing_var_arg(true);
    let rest = rest.allow_hyphen_values(true).value_parser(value_parser!(OsString));
    Command::new(name).hide(true).disable_help_flag(true).arg(rest)
}

fn listing(command: &Command) -> String {
    let width = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or(0);
    let heading = style::OF_CLAP.get_header();
    let name = style::OF_CLAP.get_literal();
    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("{heading}{group}:{heading:#}\n"));
        for below in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name}{:<width$}{name:#}  {about}\n", below.get_name()));
        }
        text.push('\n');
    }
    let missing: Vec<&str> = features::missing_commands().map(|(name, _)| name).collect();
    if !missing.is_empty() {
        text.push_str(&format!("{heading}Not in this build:{heading:#}\n"));
        text.push_str(&format!("  {}; running one shows how to install it\n\n", missing.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::HELP_WIDTH;

    #[test]
    fn every_command_is_in_one_group_and_fits_the_width() {
        let command = Cli::command();
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let name = below.get_name();
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name)).count();
            assert_eq!(groups, 1, "{name}");
        }
        let text = anstream::adapter::strip_str(&listing(&command)).to_string();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(HELP_WIDTH), "{text}");
    }
}

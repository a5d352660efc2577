//! The help: commands in groups, where clap lists all under one heading, and global options once, where clap
//! repeats them with each.

use std::ffi::OsString;

use clap::builder::StyledStr;
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

/// Follows the options of a command.
const GLOBAL_OPTIONS: &str =
    "Global options, such as --store, --json, --dry-run and --quiet: tollgate --help";

/// Returns the command line with help that shows global options for the program only.
fn brief_command() -> Command {
    let command = Cli::command();
    let is_global = |arg: &&Arg| arg.is_global_set();
    let globals: Vec<Arg> =
        command.get_arguments().filter(is_global).map(|arg| arg.clone().hide(true)).collect();
    command.mut_subcommands(|below| brief(below, &globals))
}

/// Adds hidden global options, which clap would otherwise add with their help.
fn brief(command: Command, globals: &[Arg]) -> Command {
    let behind = |help: Option<&StyledStr>| help.map(|help| unwrapped(&help.to_string()));
    let (after, long) = (behind(command.get_after_help()), behind(command.get_after_long_help()));
    let with_globals = |help: String| format!("{GLOBAL_OPTIONS}\n\n{help}").trim_end().to_owned();
    let command = command.args(globals).after_help(with_globals(after.unwrap_or_default()));
    let command = match long {
        Some(long) => command.after_long_help(with_globals(long)),
        None => command,
    };
    command.mut_subcommands(|below| brief(below, globals))
}

/// Joins the lines of each paragraph, so that clap wraps it once, at whatever width. Lines that are indented stay.
fn unwrapped(help: &str) -> String {
    let mut text = String::with_capacity(help.len());
    let mut may_join = false;
    for line in help.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        if !text.is_empty() {
            text.push(if may_join && is_prose { ' ' } else { '\n' });
        }
        text.push_str(line);
        may_join = is_prose && !line.ends_with(':');
    }
    text
}

/// Returns the command line with help that lists commands by group, too. The commands are hidden, so that clap does not list
/// them a second time. Those that this build leaves out accept any arguments, so that the caller can report what is missing.
pub(crate) fn grouped_command() -> Command {
    let command = brief_command();
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
        // A build may leave out all commands of a group.
        let commands: Vec<&Command> = names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if commands.is_empty() {
            continue;
        }
        text.push_str(&format!("{heading}{group}:{heading:#}\n"));
        for below in commands {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name}{:<width$}{name:#}  {about}\n", below.get_name()));
        }
        text.push('\n');
    }
    let missing: Vec<&str> = features::missing_commands().map(|(name, _)| name).collect();
    if !missing.is_empty() {
        let how = "running one shows how to install it";
        text.push_str(&format!("{heading}Not in this build ({how}):{heading:#}\n"));
        text.push_str(&format!("  {}\n\n", missing.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::HELP_WIDTH;

    /// Calls `check` with the help of each command, as `-h` and `--help` show it at a width.
    fn each_help(width: usize, check: &mut dyn FnMut(&str, &str)) {
        fn visit(command: &mut Command, check: &mut dyn FnMut(&str, &str)) {
            let name = command.get_bin_name().unwrap_or("tollgate").to_owned();
            check(&name, &command.render_help().to_string());
            check(&name, &command.render_long_help().to_string());
            // A command that is left out shows an error instead of help.
            let is_built = |below: &&mut Command| {
                features::missing_commands().all(|(missing, _)| missing != below.get_name())
            };
            command.get_subcommands_mut().filter(is_built).for_each(|below| visit(below, check));
        }
        let mut root = grouped_command().term_width(width);
        root.build();
        visit(&mut root, check);
    }

    #[test]
    fn help_fits_80_columns_and_names_global_options_once() {
        let mut seen = 0;
        each_help(HELP_WIDTH, &mut |name, help| {
            seen += 1;
            let widest = help.lines().map(|line| line.trim_end().chars().count()).max();
            assert!(widest <= Some(HELP_WIDTH), "{name}:\n{help}");
            let is_program = name == "tollgate";
            assert_eq!(help.contains("--store <STORE>"), is_program, "{name}:\n{help}");
            assert_eq!(help.matches("tollgate --help").count(), usize::from(!is_program), "{name}:\n{help}");
        });
        // A build with few features has few commands.
        assert!(seen > if cfg!(feature = "batch") { 100 } else { 60 }, "{seen}");
    }

    #[test]
    fn prose_is_wrapped_once_on_a_narrow_terminal() {
        each_help(50, &mut |name, help| {
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                // A line that was wrapped twice has a short one in the middle of its sentence.
                let [line, next] = pair else { continue };
                let is_broken = line.chars().count() < 20
                    && line.starts_with(char::is_lowercase)
                    && next.starts_with(char::is_lowercase);
                assert!(!is_broken, "{name}: {line:?} before {next:?}\n{help}");
            }
        });
    }

    #[test]
    fn global_options_are_known_before_and_behind_every_command() {
        for line in ["tollgate --json peek a b", "tollgate peek a b --json", "tollgate entity --json list"] {
            let matches = grouped_command().try_get_matches_from(line.split(' ')).unwrap();
            assert!(matches.get_flag("json"), "{line}");
        }
    }

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let help = "Examples:\n  tollgate a\n  tollgate b\n\nOne line\nand another.\n\nThe log:\n  {}";
        let joined = "Examples:\n  tollgate a\n  tollgate b\n\nOne line and another.\n\nThe log:\n  {}";
        assert_eq!(unwrapped(help), joined);
    }

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
        assert!(!text.contains(":\n\n"), "a group has no commands:\n{text}");
    }
}

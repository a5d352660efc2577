//! From the command line to an exit code.

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::Result;
use clap::FromArgMatches;
use clap::error::ErrorKind;
use serde::Serialize;
use tollgate::catalog::CatalogError;
use tollgate::limiter::LimiterError;
use tollgate_open::redacted;

use crate::args::{Cli, Command, grouped_command};
use crate::asking::Cancelled;
use crate::commands;
use crate::context::Context;
use crate::exit::Exit;
use crate::features;
use crate::output::style::{self, paint};
use crate::output::{Format, Terminal, escape, escape_json, escape_lines, wrap_message};
use crate::settings::{CliSettings, Color, Environment};

/// Runs the command line, and returns its exit code.
pub(crate) fn run(words: Vec<OsString>) -> Exit {
    let words = with_help(words);
    // Help and errors of the parser are coloured before the settings are known.
    color_of(&words).unwrap_or_default().apply();
    let format = format_of(&words);
    match parsed(&words) {
        Ok(cli) => {
            let layout = JsonLayout::of(&cli.command);
            exit_of(execute(cli), format, layout)
        }
        Err(answer) => {
            // The message repeats the arguments, so their control characters must not reach a terminal.
            let answer = parsed(&shown_words(&words)).err().unwrap_or(answer);
            let exit = Exit(u8::try_from(answer.exit_code()).unwrap_or(Exit::USAGE.0));
            exit_of(show(&answer, exit, format).map(|()| exit).map_err(Into::into), format, JsonLayout::Page)
        }
    }
}

fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = grouped_command();
    let matches = command.try_get_matches_from_mut(words)?;
    match features::missing_commands().find(|(name, _)| matches.subcommand_name() == Some(name)) {
        Some((_, why)) => Err(command.error(ErrorKind::InvalidSubcommand, why)),
        None => Cli::from_arg_matches(&matches),
    }
}

/// Returns the arguments without control characters.
fn shown_words(words: &[OsString]) -> Vec<OsString> {
    words.iter().map(|word| escape(&word.to_string_lossy()).into()).collect()
}

/// Rewrites `tollgate help run` to `tollgate run --help`.
fn with_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// Prints help, which is wrapped already, or the parser's error.
fn show(answer: &clap::Error, exit: Exit, format: Format) -> io::Result<()> {
    if !answer.use_stderr() {
        return answer.print();
    }
    let message = answer.render().ansi().to_string();
    write!(anstream::stderr(), "{}", wrap_message(&redacted(&message), &Terminal::of_process()))?;
    print_json_error(&clap_message(answer), exit.kind(), exit, format, JsonLayout::Page);
    Ok(())
}

/// Returns the parser's error without the usage and the hints below it.
fn clap_message(answer: &clap::Error) -> String {
    let no_command = [ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, ErrorKind::MissingSubcommand];
    if no_command.contains(&answer.kind()) {
        return "a command is missing; --help names them".into();
    }
    let text = answer.render().to_string();
    let first = text.split("\n\n").next().unwrap_or(&text);
    let words = first.strip_prefix("error: ").unwrap_or(first).split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

fn execute(cli: Cli) -> Result<Exit> {
    let settings = CliSettings::resolve(&cli.global, &Environment::of_process())?;
    settings.color.value.apply();
    let context = Context::new(settings, Terminal::of_process(), &cli.global);
    let mut output = commands::run(&context, cli.command)?;
    if cli.global.quiet {
        output = output.quietly(context.format);
    }
    if let Some(remark) = output.write(&context.terminal, context.format)? {
        match output.exit {
            Exit::OK => context.note(remark),
            // The remark may be all that is said about it.
            _ => context.warn(remark),
        }
    }
    context.print_queued_notes();
    Ok(output.exit)
}

/// The layout of a JSON object on stdout.
#[derive(Clone, Copy)]
enum JsonLayout {
    /// Several indented lines.
    Page,
    /// One line, because it ends a stream of events in which each line is an object.
    #[cfg(feature = "batch")]
    Line,
}

impl JsonLayout {
    fn of(command: &Command) -> JsonLayout {
        match command {
            #[cfg(feature = "batch")]
            Command::Batch(_) => JsonLayout::Line,
            _ => JsonLayout::Page,
        }
    }
}

fn exit_of(result: Result<Exit>, format: Format, layout: JsonLayout) -> Exit {
    let error = match result {
        Ok(exit) => return exit,
        Err(error) => error,
    };
    let exit = Exit::of(&error);
    if exit != Exit::OK {
        let message = format!("{error:#}{}", hint(&error));
        // A question that was answered with no is not an error.
        let mark = if error.is::<Cancelled>() { String::new() } else { paint(style::BAD, "error:") + " " };
        let shown = format!("{mark}{}", escape_lines(&redacted(&message)));
        // A write error is ignored: if stderr is closed, there is no reader to report it to.
        let _ = writeln!(anstream::stderr(), "{}", wrap_message(&shown, &Terminal::of_process()));
        let kind = if error.is::<Cancelled>() { "cancelled" } else { exit.kind() };
        print_json_error(&message, kind, exit, format, layout);
    }
    exit
}

/// An error as JSON.
#[derive(Serialize)]
struct ErrorAnswer<'a> {
    error: ErrorView<'a>,
}

#[derive(Serialize)]
struct ErrorView<'a> {
    kind: &'static str,
    message: &'a str,
    exit: u8,
}

/// Prints an error to stdout as one JSON object, if JSON was asked for.
fn print_json_error(message: &str, kind: &'static str, exit: Exit, format: Format, layout: JsonLayout) {
    if format == Format::Json {
        let error = ErrorAnswer { error: ErrorView { kind, message: &redacted(message), exit: exit.0 } };
        let answer = match layout {
            JsonLayout::Page => serde_json::to_string_pretty(&error),
            #[cfg(feature = "batch")]
            JsonLayout::Line => serde_json::to_string(&error),
        };
        let answer = answer.map(escape_json).unwrap_or_default();
        // A write error is ignored: if stdout is closed, there is no reader to report it to.
        let _ = writeln!(io::stdout(), "{answer}");
    }
}

/// Returns the command to type for errors of the library that cannot name it.
fn hint(error: &anyhow::Error) -> &'static str {
    let of_call = || match error.downcast_ref() {
        Some(LimiterError::Catalog(why)) => Some(why),
        _ => None,
    };
    match error.downcast_ref().or_else(of_call) {
        Some(CatalogError::TooOld { .. }) => " (tollgate upgrade)",
        Some(CatalogError::NoLimits { .. }) => " (tollgate system set-defaults -l rpm:60)",
        _ => "",
    }
}

/// Finds the output format, which is needed even if the command line is invalid.
fn format_of(words: &[OsString]) -> Format {
    let is_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if is_json { Format::Json } else { Format::Text }
}

/// Returns the value of `--color`, if it is valid.
fn color_of(words: &[OsString]) -> Option<Color> {
    let mut words = words.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(value) => value.strip_prefix('='),
            None => None,
        };
        if let Some(value) = value {
            return Color::parse(value).ok();
        }
    }
    None
}

impl Color {
    /// Applies the choice to all output from now on.
    fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

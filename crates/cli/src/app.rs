//! From the command line to an exit code.

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use serde::Serialize;
use tollgate::catalog::CatalogError;
use tollgate::limiter::LimiterError;

use crate::args::{Cli, Command};
use crate::asking::Cancelled;
use crate::commands;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::style::{self, paint};
use crate::output::{Format, Terminal, harmless, harmless_json, harmless_lines, told};
use crate::settings::{CliSettings, Color, Environment, redacted};

/// Does what the command line says.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> Exit {
    let words = with_help(words.collect());
    // Help and errors about the command line have colours before the settings are known.
    color_of(&words).unwrap_or_default().apply();
    let format = format_of(&words);
    match parsed(&words) {
        Ok(cli) => {
            let layout = JsonLayout::of(&cli.command);
            exit_of(execute(cli), format, layout)
        }
        Err(answer) => {
            // What is wrong is said with the words that were given, so these must do nothing to a terminal.
            let answer = parsed(&shown_words(&words)).err().unwrap_or(answer);
            let exit = Exit(u8::try_from(answer.exit_code()).unwrap_or(Exit::USAGE.0));
            exit_of(show(&answer, exit, format).map(|()| exit).map_err(Into::into), format, JsonLayout::Page)
        }
    }
}

fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::command().try_get_matches_from(words).and_then(|it| Cli::from_arg_matches(&it))
}

/// The words as they can be shown.
fn shown_words(words: &[OsString]) -> Vec<OsString> {
    words.iter().map(|word| harmless(&word.to_string_lossy()).into()).collect()
}

/// `tollgate help run` is `tollgate run --help`.
fn with_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// Shows help, which fits already, or what is wrong with the command line.
fn show(answer: &clap::Error, exit: Exit, format: Format) -> io::Result<()> {
    if !answer.use_stderr() {
        return answer.print();
    }
    let message = answer.render().ansi().to_string();
    write!(anstream::stderr(), "{}", told(&redacted(&message), &Terminal::of_process()))?;
    tell_programs(&said_by_clap(answer), exit.kind(), exit, format, JsonLayout::Page);
    Ok(())
}

/// What is wrong with the command line, without what else could be read.
fn said_by_clap(answer: &clap::Error) -> String {
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
        context.note(remark);
    }
    context.say_afterwards();
    Ok(output.exit)
}

/// How an object of JSON stands on stdout.
#[derive(Clone, Copy)]
enum JsonLayout {
    /// On several lines, as people like to look at it.
    Page,
    /// On one line, since it ends a stream of events in which each line is an object.
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
        // A question that was answered with no is no error.
        let mark = if error.is::<Cancelled>() { String::new() } else { paint(style::BAD, "error:") + " " };
        let shown = format!("{mark}{}", harmless_lines(&redacted(&message)));
        // A write error is ignored: if stderr is closed, there is no reader to report it to.
        let _ = writeln!(anstream::stderr(), "{}", told(&shown, &Terminal::of_process()));
        let kind = if error.is::<Cancelled>() { "cancelled" } else { exit.kind() };
        tell_programs(&message, kind, exit, format, layout);
    }
    exit
}

/// What went wrong, for programs.
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

/// Reports to programs on stdout what went wrong, if they want JSON. They get one object, whatever happens.
fn tell_programs(message: &str, kind: &'static str, exit: Exit, format: Format, layout: JsonLayout) {
    if format == Format::Json {
        let error = ErrorAnswer { error: ErrorView { kind, message: &redacted(message), exit: exit.0 } };
        let answer = match layout {
            JsonLayout::Page => serde_json::to_string_pretty(&error),
            JsonLayout::Line => serde_json::to_string(&error),
        };
        let answer = answer.map(harmless_json).unwrap_or_default();
        // A write error is ignored: if stdout is closed, there is no reader to report it to.
        let _ = writeln!(io::stdout(), "{answer}");
    }
}

/// What to type, where the library can only say what to do.
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

/// Who reads the answer, which is to be known though something else on the command line is wrong.
fn format_of(words: &[OsString]) -> Format {
    let is_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if is_json { Format::Json } else { Format::Text }
}

/// What `--color` says, if it says something valid.
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
    /// Lets all output from now on have colours, or not.
    fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

//! From the command line to an exit code.

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches};
use tollgate::catalog::CatalogError;

use crate::args::Cli;
use crate::commands;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::style::{self, paint};
use crate::output::{Terminal, told};
use crate::settings::{Color, Environment, Settings};

/// Does what the command line says.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> Exit {
    let words: Vec<OsString> = words.collect();
    // Help and errors about the command line have colours before the settings are known.
    color_of(&words).unwrap_or_default().apply();
    let parsed = Cli::command().try_get_matches_from(words).and_then(|it| Cli::from_arg_matches(&it));
    match parsed {
        Ok(cli) => exit_of(obey(cli)),
        Err(answer) => {
            let exit = Exit(u8::try_from(answer.exit_code()).unwrap_or(Exit::USAGE.0));
            exit_of(show(&answer).map(|()| exit).map_err(Into::into))
        }
    }
}

/// Shows help, which fits already, or what is wrong with the command line.
fn show(answer: &clap::Error) -> io::Result<()> {
    if !answer.use_stderr() {
        return answer.print();
    }
    let message = answer.render().ansi().to_string();
    write!(anstream::stderr(), "{}", told(&message, &Terminal::of_process()))
}

fn obey(cli: Cli) -> Result<Exit> {
    let settings = Settings::resolve(&cli.global, &Environment::of_process())?;
    settings.color.value.apply();
    let context = Context::new(settings, Terminal::of_process(), &cli.global);
    let output = commands::run(&context, cli.command)?;
    if let Some(remark) = output.write(&context.terminal, context.format)? {
        context.note(remark);
    }
    context.say_afterwards();
    Ok(output.exit)
}

fn exit_of(result: Result<Exit>) -> Exit {
    let error = match result {
        Ok(exit) => return exit,
        Err(error) => error,
    };
    let exit = Exit::of(&error);
    if exit != Exit::OK {
        // If nobody listens there is nobody to tell.
        let message = format!("{} {error:#}{}", paint(style::BAD, "error:"), hint(&error));
        let _ = writeln!(anstream::stderr(), "{}", told(&message, &Terminal::of_process()));
    }
    exit
}

/// What to type, where the library can only say what to do.
fn hint(error: &anyhow::Error) -> &'static str {
    match error.downcast_ref() {
        Some(CatalogError::TooOld { .. }) => " (tollgate upgrade)",
        _ => "",
    }
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

//! The command `tollgate`: limits, entities, usage and audit from a shell.
//!
//! A command is a function from a [`context`] and its [`args`] to an [`output`]: one value that is written for programs
//! as JSON and for people as text. Data is written to stdout, notices, warnings and errors to stderr.

mod app;
mod args;
mod asking;
mod atomic_write;
mod commands;
mod completion;
mod context;
mod demand_text;
mod duration_text;
mod exit;
mod features;
#[cfg(all(test, feature = "batch"))]
mod fuzz;
mod limit_text;
mod limits_file;
#[cfg(feature = "mock-provider")]
mod mock_text;
mod names;
mod output;
mod percent_text;
mod reading;
mod settings;
mod store;
mod time_text;
mod units;
mod views;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if completion::answer(&words) {
        return ExitCode::SUCCESS;
    }
    app::run(words).into()
}

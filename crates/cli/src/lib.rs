//! The command `tollgate`: limits, entities, usage and audit from a shell.
//!
//! It is a library, so that another program can be the command, too: the Python package runs the same code. [`run`] is all of
//! it that is public.
//!
//! A command is a function from a `context` and its `args` to an `output`: one value that is written for programs
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

use std::ffi::OsString;
use std::io::Write;

use crate::exit::Exit;

/// Runs a command line, and returns its exit code. The first word is the name of the program. If a shell asks for a
/// completion, by an environment variable, that is answered instead.
///
/// It is for the main thread of a program that ends afterwards: it writes to the standard streams of the process, and its
/// choice of colours and its signal handlers stay. A handler of SIGINT that the program has installed before keeps Ctrl-C
/// from ending most commands, so such a program restores the default first. As in every program in Rust, SIGPIPE has to be
/// ignored, so that a closed pipe is an error.
///
/// # Examples
///
/// ```
/// assert_eq!(tollgate_cli::run(vec!["tollgate".into(), "--version".into()]), 0);
/// ```
pub fn run(words: Vec<OsString>) -> u8 {
    let exit = if completion::answer(&words) { Exit::OK } else { app::run(words) };
    // What follows the last line break is still buffered. The end of a program in Rust would flush it, that of another would
    // not. An error is ignored: if stdout is closed, there is no reader to report it to.
    let _ = std::io::stdout().flush();
    exit.0
}

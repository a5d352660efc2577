//! The command `tollgate`. All of it is in the library, which other programs can run, too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tollgate_cli::run(std::env::args_os().collect()))
}

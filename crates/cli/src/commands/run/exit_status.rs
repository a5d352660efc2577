//! The end of a command, as an exit code of shells.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitStatus;

use crate::output::escape;
use crate::output::style::{self, paint};

/// The exit code if the command exists, but cannot be run.
const CANNOT_RUN: u8 = 126;

/// The exit code if there is no such command.
const NOT_FOUND: u8 = 127;

/// Added to the number of the signal that ended a command.
const SIGNALLED: i32 = 128;

/// How a command ended.
#[derive(Debug)]
pub(super) enum ProcessEnd {
    /// It was not run, in a dry run.
    NotRun,
    /// It could not be started.
    Failed(io::Error),
    /// It ran.
    Status(ExitStatus),
}

impl ProcessEnd {
    /// Returns whether it ran.
    pub(super) fn was_run(&self) -> bool {
        matches!(self, ProcessEnd::Status(_))
    }

    /// Returns whether it ran and succeeded.
    pub(super) fn is_success(&self) -> bool {
        matches!(self, ProcessEnd::Status(status) if status.success())
    }

    /// Returns its exit code, if it had one.
    pub(super) fn code(&self) -> Option<i32> {
        match self {
            ProcessEnd::Status(status) => status.code(),
            ProcessEnd::NotRun | ProcessEnd::Failed(_) => None,
        }
    }

    /// Returns the signal that ended it, if one did.
    #[cfg(unix)]
    pub(super) fn signal(&self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        match self {
            ProcessEnd::Status(status) => status.signal(),
            ProcessEnd::NotRun | ProcessEnd::Failed(_) => None,
        }
    }

    #[cfg(not(unix))]
    pub(super) fn signal(&self) -> Option<i32> {
        None
    }

    /// Returns the exit code that a shell would return.
    pub(super) fn shell_code(&self) -> u8 {
        let code = match self {
            ProcessEnd::NotRun => 0,
            ProcessEnd::Failed(why) if why.kind() == io::ErrorKind::NotFound => NOT_FOUND.into(),
            ProcessEnd::Failed(_) => CANNOT_RUN.into(),
            ProcessEnd::Status(status) => match (status.code(), self.signal()) {
                (Some(code), _) => code,
                (None, Some(signal)) => SIGNALLED + signal,
                (None, None) => 1,
            },
        };
        u8::try_from(code & 0xff).unwrap_or(1)
    }

    /// Prints why it could not be started, if it failed to.
    pub(super) fn print_error(&self, command: &[OsString]) {
        if let (ProcessEnd::Failed(why), Some(program)) = (self, command.first()) {
            let program = program.to_string_lossy();
            let why = match why.kind() {
                io::ErrorKind::NotFound => "there is no such command; everything was refunded".into(),
                _ => format!("{why}; everything was refunded"),
            };
            // A write error is ignored: if stderr is closed, there is no reader to report it to.
            let message = escape(&format!("{program}: {why}"));
            let _ = writeln!(anstream::stderr(), "{} {message}", paint(style::BAD, "error:"));
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn codes_are_those_of_shells() {
        let exited = |code: i32| ProcessEnd::Status(ExitStatus::from_raw(code << 8)).shell_code();
        assert_eq!([0, 1, 3, 255].map(exited), [0, 1, 3, 255]);
        assert_eq!(ProcessEnd::Status(ExitStatus::from_raw(9)).shell_code(), 137);
        let failed = |kind: io::ErrorKind| ProcessEnd::Failed(kind.into()).shell_code();
        assert_eq!(failed(io::ErrorKind::NotFound), 127);
        assert_eq!(failed(io::ErrorKind::PermissionDenied), 126);
    }
}

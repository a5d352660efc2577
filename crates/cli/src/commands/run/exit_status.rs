//! How a command ended, in the exit codes of shells.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitStatus;

use crate::output::harmless;
use crate::output::style::{self, paint};

/// There is such a command, but it cannot be run.
const CANNOT_RUN: u8 = 126;

/// There is no such command.
const NOT_FOUND: u8 = 127;

/// What is added to the number of the signal that ended a command.
const SIGNALLED: i32 = 128;

/// How a command ended.
#[derive(Debug)]
pub(super) enum ProcessEnd {
    /// It was only rehearsed.
    NotRun,
    /// It could not be started.
    Failed(io::Error),
    /// It ran.
    Status(ExitStatus),
}

impl ProcessEnd {
    /// Whether it ran at all.
    pub(super) fn was_run(&self) -> bool {
        matches!(self, ProcessEnd::Status(_))
    }

    /// Whether it ran and all is well.
    pub(super) fn is_success(&self) -> bool {
        matches!(self, ProcessEnd::Status(status) if status.success())
    }

    /// Its exit code, if it had one.
    pub(super) fn code(&self) -> Option<i32> {
        match self {
            ProcessEnd::Status(status) => status.code(),
            ProcessEnd::NotRun | ProcessEnd::Failed(_) => None,
        }
    }

    /// The signal that ended it, if one did.
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

    /// What a shell would answer.
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

    /// Says why it could not be started, if it could not.
    pub(super) fn tell(&self, command: &[OsString]) {
        if let (ProcessEnd::Failed(why), Some(program)) = (self, command.first()) {
            let program = program.to_string_lossy();
            let why = match why.kind() {
                io::ErrorKind::NotFound => "there is no such command; everything was given back".into(),
                _ => format!("{why}; everything was given back"),
            };
            // A write error is ignored: if stderr is closed, there is no reader to report it to.
            let said = harmless(&format!("{program}: {why}"));
            let _ = writeln!(anstream::stderr(), "{} {said}", paint(style::BAD, "error:"));
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

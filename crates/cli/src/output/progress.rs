use std::fmt::Display;
use std::io::{self, Write};

use super::{Terminal, escape};

/// A progress line on stderr that is overwritten, if stderr is a terminal.
pub(crate) struct ProgressLine {
    is_watched: bool,
    is_begun: bool,
}

impl ProgressLine {
    /// Creates an empty progress line.
    pub(crate) fn new(terminal: &Terminal) -> ProgressLine {
        ProgressLine { is_watched: terminal.writes_over(), is_begun: false }
    }

    /// Replaces the line.
    pub(crate) fn show(&mut self, line: impl Display) {
        if self.is_watched {
            self.is_begun = true;
            // A write error is ignored: the line is overwritten soon anyway.
            let _ = write!(io::stderr(), "\r\u{1b}[2K{}", escape(&line.to_string()));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_begun {
            let _ = write!(io::stderr(), "\r\u{1b}[2K");
        }
    }
}

use std::fmt::Display;
use std::io::{self, Write};

use super::{Terminal, harmless};

/// How far something long has come: one line on stderr that is written over, if it is a terminal.
pub(crate) struct ProgressLine {
    is_watched: bool,
    is_begun: bool,
}

impl ProgressLine {
    /// Nothing to show yet.
    pub(crate) fn new(terminal: &Terminal) -> ProgressLine {
        ProgressLine { is_watched: terminal.writes_over(), is_begun: false }
    }

    /// Shows how far it has come.
    pub(crate) fn show(&mut self, line: impl Display) {
        if self.is_watched {
            self.is_begun = true;
            // An error about a line that is gone in a moment helps no user.
            let _ = write!(io::stderr(), "\r\u{1b}[2K{}", harmless(&line.to_string()));
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

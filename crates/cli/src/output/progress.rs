use std::fmt::Display;
use std::io::{self, Write};

use super::{Terminal, cut_line, escape};

/// A progress line on stderr that is overwritten, if stderr is a terminal.
pub(crate) struct ProgressLine {
    is_watched: bool,
    is_begun: bool,
    width: usize,
}

impl ProgressLine {
    /// Creates an empty progress line.
    pub(crate) fn new(terminal: &Terminal) -> ProgressLine {
        ProgressLine { is_watched: terminal.writes_over(), is_begun: false, width: terminal.width }
    }

    /// Returns whether a terminal shows the line.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Replaces the line.
    pub(crate) fn show(&mut self, line: impl Display) {
        if self.is_watched {
            self.is_begun = true;
            // A write error is ignored: the line is overwritten soon anyway.
            let line = cut_line(&escape(&line.to_string()), self.width);
            let _ = write!(io::stderr(), "\r\u{1b}[2K{line}");
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

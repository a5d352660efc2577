use std::io::{self, IsTerminal};

use terminal_size::Width;

/// The columns there are if neither the environment nor the terminal says otherwise.
const WIDTH: usize = 80;

/// A narrower terminal is no use.
const WIDTH_MIN: usize = 40;

/// What is at the other end of the three streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// How many columns there are.
    pub(crate) width: usize,
    /// Whether there is a user to ask.
    pub(crate) can_ask: bool,
    /// Whether a user watches stderr.
    pub(crate) is_watched: bool,
}

impl Terminal {
    /// Whether what was written on stderr can be written over.
    pub(crate) fn writes_over(&self) -> bool {
        self.is_watched && !is_dumb()
    }

    /// What this process has.
    pub(crate) fn of_process() -> Terminal {
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let seen = || {
            let (Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
            Some(usize::from(width))
        };
        let width = columns.or_else(seen).unwrap_or(WIDTH).max(WIDTH_MIN);
        let is_watched = io::stderr().is_terminal();
        Terminal { width, can_ask: io::stdin().is_terminal() && is_watched, is_watched }
    }
}

/// Whether the terminal says of itself that it only writes on.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

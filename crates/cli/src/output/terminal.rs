use std::io::{self, IsTerminal};

use terminal_size::Width;

/// The width if neither COLUMNS nor the terminal is known.
const WIDTH: usize = 80;

/// The minimum width.
const WIDTH_MIN: usize = 40;

/// The terminal of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// The width in columns.
    pub(crate) width: usize,
    /// Whether stdout is a terminal, or COLUMNS gives it a width, so that no line may be wider.
    pub(crate) is_bounded: bool,
    /// Whether stdin and stderr are a terminal, so that questions can be asked.
    pub(crate) can_ask: bool,
    /// Whether stderr is a terminal.
    pub(crate) is_watched: bool,
}

impl Terminal {
    /// Returns whether a line on stderr can be overwritten.
    pub(crate) fn writes_over(&self) -> bool {
        self.is_watched && !is_dumb()
    }

    /// Returns the terminal of this process.
    pub(crate) fn of_process() -> Terminal {
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let seen = || {
            let (Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
            Some(usize::from(width))
        };
        let known = columns.or_else(seen);
        let width = known.unwrap_or(WIDTH).max(WIDTH_MIN);
        let is_watched = io::stderr().is_terminal();
        let can_ask = io::stdin().is_terminal() && is_watched;
        Terminal { width, is_bounded: known.is_some(), can_ask, is_watched }
    }
}

/// Returns whether TERM is `dumb`: such a terminal cannot overwrite lines.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

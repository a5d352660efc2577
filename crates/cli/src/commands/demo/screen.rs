//! The screen of the demo: a table that is redrawn on a terminal, lines elsewhere.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;

use super::view::{DemoSize, DemoView};
use crate::context::Context;
use crate::output::{Format, ProgressLine, frame, style};

/// The lines of a terminal that does not report its size.
const LINES: usize = 24;

/// The screen of the demo.
pub(super) enum DemoScreen {
    /// Tables that are redrawn, with the height of the last frame.
    Table { size: DemoSize, height: usize },
    /// A line each second.
    Lines { last: Option<u64> },
    /// Only progress on stderr, with `--json`.
    Hidden(ProgressLine),
}

impl DemoScreen {
    /// Creates the screen for the output format and the terminal.
    pub(super) fn new(context: &Context) -> DemoScreen {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match context.format {
            Format::Json => DemoScreen::Hidden(ProgressLine::new(&context.terminal)),
            Format::Text if io::stdout().is_terminal() && !is_dumb => {
                let seen = terminal_size::terminal_size_of(io::stdout());
                let lines = seen.map_or(LINES, |(_, terminal_size::Height(lines))| lines.into());
                DemoScreen::Table { size: DemoSize { columns: context.terminal.width, lines }, height: 0 }
            }
            Format::Text => DemoScreen::Lines { last: None },
        }
    }

    /// Shows the state of the fleet.
    ///
    /// # Errors
    ///
    /// The reader of stdout is gone.
    pub(super) fn show(&mut self, view: &DemoView, done: u64, seconds: u64) -> Result<()> {
        match self {
            DemoScreen::Table { size, height } => {
                let lines = view.lines(*size, done, seconds);
                let start = if *height > 0 { format!("\r\u{1b}[{height}A") } else { String::new() };
                let shown: Vec<String> = lines.iter().map(|line| style::seen(line)).collect();
                let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
                *height = lines.len();
                let mut stdout = io::stdout().lock();
                writeln!(stdout, "{}", frame(&start, &shown))?;
                stdout.flush()?;
            }
            DemoScreen::Lines { last } if *last != Some(done) => {
                *last = Some(done);
                writeln!(anstream::stdout(), "{}", view.line(done))?;
            }
            DemoScreen::Lines { .. } => {}
            DemoScreen::Hidden(progress) => progress.show(format_args!("{done}s of {seconds}s")),
        }
        Ok(())
    }

    /// Prints an empty line below the last frame.
    ///
    /// # Errors
    ///
    /// The reader of stdout is gone.
    pub(super) fn end(self) -> Result<()> {
        match self {
            DemoScreen::Table { .. } | DemoScreen::Lines { .. } => writeln!(io::stdout())?,
            DemoScreen::Hidden(_) => {}
        }
        Ok(())
    }
}

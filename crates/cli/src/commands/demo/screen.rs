//! The screen of the demo: a table that is redrawn on a terminal, lines elsewhere.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;

use super::view::DemoView;
use crate::context::Context;
use crate::output::{Format, ProgressLine, TextPage, style};

/// The screen of the demo.
pub(super) enum DemoScreen {
    /// A table that is redrawn, with the height of the last frame.
    Table { width: usize, height: usize },
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
                DemoScreen::Table { width: context.terminal.width, height: 0 }
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
            DemoScreen::Table { width, height } => {
                let mut page = TextPage::new(*width);
                view.page(&mut page, done, seconds);
                let text = style::seen(&page.finish().0);
                let mut frame = if *height > 0 { format!("\r\u{1b}[{height}A") } else { String::new() };
                for line in text.lines() {
                    frame.push_str(line);
                    frame.push_str("\u{1b}[K\n");
                }
                *height = text.lines().count();
                let mut stdout = io::stdout().lock();
                stdout.write_all(frame.as_bytes())?;
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

//! The progress bar on a terminal and the lines below it, redrawn by indicatif.

use std::fmt::Write;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use terminal_size::{Height, Width};

use super::progress::{Snapshot, percent};
use crate::output::style::{GOOD, paint};

/// The maximum refresh rate.
const FRAMES_PER_SECOND: u8 = 20;

/// Full and empty parts, which also differ without colours.
const PARTS: &str = "█░";

/// Rows that accounts may not have: the bar, the counts in up to four lines, the last error and the cursor.
const OTHER_ROWS: usize = 7;

/// A bar with lines below it on stderr. Dropping it clears them.
pub(crate) struct BatchBar {
    bar: ProgressBar,
    /// What the next frame shows. Prefix and message of indicatif would each draw a frame of their own.
    frame: Arc<Mutex<Frame>>,
    has_colors: bool,
    /// The width if the terminal does not report one.
    width: usize,
}

#[derive(Default)]
struct Frame {
    /// The text before the bar.
    head: String,
    /// The lines below it.
    below: String,
}

impl BatchBar {
    /// Creates the view for `total` lines of the input; without a bar if that is not known.
    pub(crate) fn new(total: Option<u64>, width: usize) -> BatchBar {
        let choice = anstream::AutoStream::choice(&io::stderr());
        let has_colors = choice != anstream::ColorChoice::Never;
        let target = ProgressDrawTarget::stderr_with_hz(FRAMES_PER_SECOND);
        let frame = Arc::new(Mutex::new(Frame::default()));
        let style = style(total.is_some(), has_colors, &frame);
        let bar = ProgressBar::with_draw_target(total, target).with_style(style);
        BatchBar { bar, frame, has_colors, width }
    }

    /// Redraws the view.
    pub(crate) fn draw(&self, snapshot: &Snapshot) {
        let (width, height) = match terminal_size::terminal_size_of(io::stderr()) {
            Some((Width(width), Height(height))) => (width.into(), height.into()),
            None => (self.width, usize::MAX),
        };
        let accounts_max = usize::saturating_sub(height, OTHER_ROWS).max(1);
        let below = snapshot.lines(width, accounts_max).join("\n");
        let below = if self.has_colors { below } else { anstream::adapter::strip_str(&below).to_string() };
        let head = match snapshot.total {
            Some(total) => format!("{:>3} %  {}", percent(snapshot.finished, total), snapshot.position()),
            None => snapshot.position(),
        };
        *self.frame.lock().unwrap_or_else(PoisonError::into_inner) = Frame { head, below };
        let position = snapshot.finished.min(snapshot.total.unwrap_or(u64::MAX));
        self.bar.update(|state| state.set_pos(position));
    }

    /// Clears the bar, calls `write`, and redraws the bar below.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Leaves the last frame where it is. A key that was pressed may have moved the cursor, so that what is above it could no
    /// longer be cleared.
    pub(crate) fn leave(self) {
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
        // If stderr is gone there is nothing to leave.
        let _ = writeln!(io::stderr());
    }
}

impl Drop for BatchBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(has_bar: bool, has_colors: bool, frame: &Arc<Mutex<Frame>>) -> ProgressStyle {
    let bar = if has_colors { paint(GOOD, "{wide_bar}") } else { "{wide_bar}".into() };
    let template = if has_bar { format!("{{head}}  {bar}\n{{below}}") } else { "{head}\n{below}".into() };
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let part = |of: fn(&Frame) -> &str| {
        let frame = Arc::clone(frame);
        move |_: &ProgressState, out: &mut dyn Write| {
            // Writing to indicatif's buffer in memory cannot fail.
            let _ = out.write_str(of(&frame.lock().unwrap_or_else(PoisonError::into_inner)));
        }
    };
    style
        .with_key("head", part(|frame| &frame.head))
        .with_key("below", part(|frame| &frame.below))
        .progress_chars(PARTS)
}

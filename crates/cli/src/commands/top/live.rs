//! The live view, which is refreshed until the user quits.

use std::time::Duration;

use anyhow::Result;
use tollgate::{Catalog, Span};

use super::controls::{Pressed, TopControls, help};
use super::screen::{Pause, Size, TopScreen};
use super::snapshot::{NamespaceSnapshot, SnapshotQuery};
use super::view::{RowRoom, TopAnswer};
use crate::args::TopArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Answer, TextPage, cut_line, style};

/// The minimum refresh interval: a shorter one would only load the store.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The view of a namespace while it is open.
struct LiveView<'a> {
    context: &'a Context,
    catalog: &'a Catalog,
    args: &'a TopArgs,
    controls: TopControls,
    shown: NamespaceSnapshot,
    /// The snapshot that rates are counted from, if it is not the one that is shown.
    earlier: Option<NamespaceSnapshot>,
}

/// Watches a namespace.
///
/// # Errors
///
/// As the store, or the terminal is gone.
pub(super) fn watch(context: &Context, catalog: &Catalog, args: &TopArgs) -> Result<Exit> {
    let mut screen = TopScreen::open()?;
    let controls = TopControls::new(args.sort, &args.filter);
    let shown = NamespaceSnapshot::at(catalog, &query(args, &controls, screen.size()), None)?;
    let mut view = LiveView { context, catalog, args, controls, shown, earlier: None };
    let interval = args.interval.max(INTERVAL_MIN);
    loop {
        let size = screen.size();
        screen.show(&view.frame(size), size)?;
        let is_due = match screen.pause(interval)? {
            Pause::Over => !view.controls.is_paused,
            Pause::Signalled(signalled) => return Ok(signalled.exit()),
            Pause::Keys(keys) => match view.controls.press(&keys) {
                Pressed::Quit => return Ok(Exit::OK),
                Pressed::Refresh => true,
                Pressed::Redraw | Pressed::Nothing => false,
            },
        };
        if is_due {
            view.refresh(screen.size(), interval)?;
        }
    }
}

fn query<'a>(args: &'a TopArgs, controls: &'a TopControls, size: Size) -> SnapshotQuery<'a> {
    let most = size.lines.min(args.max.unwrap_or(usize::MAX));
    SnapshotQuery { sets_in: &args.sets.namespace, sort: controls.sort, filter: &controls.filter, most }
}

impl LiveView<'_> {
    /// Takes another snapshot.
    fn refresh(&mut self, size: Size, interval: Duration) -> Result<()> {
        // A key refreshes at any time; rates since a moment ago would say little.
        let is_recent =
            |earlier: &NamespaceSnapshot| self.shown.at.since(earlier.at) < Span::covering(interval / 2);
        let earlier = self.earlier.take().filter(is_recent);
        let query = query(self.args, &self.controls, size);
        let next =
            NamespaceSnapshot::at(self.catalog, &query, Some(earlier.as_ref().unwrap_or(&self.shown)))?;
        let shown = std::mem::replace(&mut self.shown, next);
        self.earlier = Some(earlier.unwrap_or(shown));
        Ok(())
    }

    /// Returns the lines of the screen. The last one names the keys; lines that do not fit end in a sign.
    fn frame(&mut self, size: Size) -> String {
        let mut page = TextPage::new(size.columns);
        if self.controls.shows_help {
            help(&mut page);
        } else {
            self.shown.sort(self.controls.sort);
            let room = room(size, self.args.max, &self.shown);
            let remarks = self.controls.remarks();
            TopAnswer::new(self.context, &self.shown, room).with_remarks(remarks).text(&mut page);
        }
        let text = style::seen(&page.finish().0);
        let footer = style::seen(&self.controls.footer());
        framed(&text, &footer, size)
    }
}

/// Fits a text and the footer into the size of the screen.
fn framed(text: &str, footer: &str, size: Size) -> String {
    let room = size.lines.saturating_sub(1);
    let mut lines: Vec<String> = text.lines().map(|line| cut_line(line, size.columns)).collect();
    if lines.len() > room && room > 1 {
        lines[room - 1] = "…".into();
    }
    lines.resize(room, String::new());
    lines.push(cut_line(footer, size.columns));
    lines.join("\n")
}

/// Computes how many rows fit. Waiters and limit sets get at most a third of the screen each, and no more than they need.
fn room(size: Size, max: Option<usize>, snapshot: &NamespaceSnapshot) -> RowRoom {
    rows_of(size, max, [snapshot.in_use, snapshot.waiters.len(), snapshot.sets.len()])
}

fn rows_of(size: Size, max: Option<usize>, [busy, waiting, sets]: [usize; 3]) -> RowRoom {
    // A gap, the headings, and the line about further rows.
    const AROUND: usize = 3;
    let most = (size.lines / 3).max(1);
    let waiters = waiting.min(most);
    let sets = sets.min(most);
    let taken = |rows: usize| if rows == 0 { 0 } else { rows + AROUND };
    // The headline, a gap, the headings and the footer.
    let rows = size.lines.saturating_sub(4 + taken(waiters) + taken(sets)).max(1);
    // One less for the line about further rows.
    let rows = if busy > rows { rows.saturating_sub(1).max(1) } else { rows };
    let [rows, waiters, sets] = [rows, waiters, sets].map(|count| count.min(max.unwrap_or(usize::MAX)));
    RowRoom { rows, waiters, sets, is_screen: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_fit_the_screen() {
        let size = Size { columns: 80, lines: 24 };
        let room = |rows, waiters, sets| RowRoom { rows, waiters, sets, is_screen: true };
        assert_eq!(rows_of(size, None, [20, 0, 0]), room(20, 0, 0));
        assert_eq!(rows_of(size, None, [21, 0, 0]), room(19, 0, 0));
        assert_eq!(rows_of(size, None, [9, 2, 0]), room(15, 2, 0));
        assert_eq!(rows_of(size, None, [9, 100, 0]), room(9, 8, 0));
        assert_eq!(rows_of(size, None, [9, 2, 3]), room(9, 2, 3));
        assert_eq!(rows_of(size, Some(3), [9, 100, 5]), room(1, 3, 3));
        assert_eq!(rows_of(Size { columns: 80, lines: 2 }, None, [9, 100, 0]), room(1, 1, 0));
    }

    #[test]
    fn the_footer_is_the_last_line_and_what_does_not_fit_ends_in_a_sign() {
        let size = Size { columns: 6, lines: 4 };
        assert_eq!(framed("one\ntwo", "q quit", size), "one\ntwo\n\nq quit");
        assert_eq!(framed("one\ntwo\nthree is long", "q quit it", size), "one\ntwo\nthree…\nq qui…");
        assert_eq!(framed("1\n2\n3\n4", "q", size), "1\n2\n…\nq");
        assert_eq!(framed("1\n2", "q", Size { columns: 6, lines: 2 }), "1\nq");
    }
}

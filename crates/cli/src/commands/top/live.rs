//! The live view, which is refreshed until the user quits.

use std::time::Duration;

use anyhow::Result;
use tollgate::Catalog;

use super::screen::{Pause, Size, TopScreen};
use super::snapshot::NamespaceSnapshot;
use super::view::{RowRoom, TopAnswer};
use crate::args::TopArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Answer, TextPage, style};

/// The minimum refresh interval: a shorter one would only load the store.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Watches a namespace.
///
/// # Errors
///
/// As the store, or the terminal is gone.
pub(super) fn watch(context: &Context, catalog: &Catalog, args: &TopArgs) -> Result<Exit> {
    let mut screen = TopScreen::open()?;
    let mut last: Option<NamespaceSnapshot> = None;
    loop {
        let size = screen.size();
        let most = size.lines.min(args.max.unwrap_or(usize::MAX));
        let snapshot = NamespaceSnapshot::at(catalog, &args.sets.namespace, last.as_ref(), most)?;
        let room = room(size, args.max, snapshot.waiters.len(), snapshot.sets.len());
        let answer = TopAnswer::new(context, &snapshot, room);
        let mut page = TextPage::new(size.columns);
        answer.text(&mut page);
        screen.show(&style::seen(&page.finish().0))?;
        last = Some(snapshot);
        match screen.pause(args.interval.max(INTERVAL_MIN))? {
            Pause::Over => {}
            Pause::Quit => return Ok(Exit::OK),
            Pause::Signalled(signalled) => return Ok(signalled.exit()),
        }
    }
}

/// Computes how many rows fit. Waiters and limit sets get at most a third of the screen each, and no more than they need.
fn room(size: Size, max: Option<usize>, waiting: usize, sets: usize) -> RowRoom {
    // A gap, the headings, and the line about further rows.
    const AROUND: usize = 3;
    let most = (size.lines / 3).max(1);
    let waiters = waiting.min(most);
    let sets = sets.min(most);
    let taken = |rows: usize| if rows == 0 { 0 } else { rows + AROUND };
    // The headline, a gap and the headings.
    let rows = size.lines.saturating_sub(3 + taken(waiters) + taken(sets)).max(1);
    let [rows, waiters, sets] = [rows, waiters, sets].map(|count| count.min(max.unwrap_or(usize::MAX)));
    RowRoom { rows, waiters, sets }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_fit_the_screen() {
        let size = Size { columns: 80, lines: 24 };
        assert_eq!(room(size, None, 0, 0), RowRoom { rows: 21, waiters: 0, sets: 0 });
        assert_eq!(room(size, None, 2, 0), RowRoom { rows: 16, waiters: 2, sets: 0 });
        assert_eq!(room(size, None, 100, 0), RowRoom { rows: 10, waiters: 8, sets: 0 });
        assert_eq!(room(size, None, 2, 3), RowRoom { rows: 10, waiters: 2, sets: 3 });
        assert_eq!(room(size, Some(3), 100, 5), RowRoom { rows: 2, waiters: 3, sets: 3 });
        assert_eq!(
            room(Size { columns: 80, lines: 2 }, None, 100, 0),
            RowRoom { rows: 1, waiters: 1, sets: 0 }
        );
    }
}

//! The view that is looked at again and again, until somebody has seen enough.

use std::time::Duration;

use anyhow::Result;
use tollgate::Catalog;

use super::look::Look;
use super::screen::{Pause, Screen, Size};
use super::view::{Room, TopAnswer};
use crate::args::TopArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Answer, Page, style};

/// More often is only flicker, and work for the store.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Watches a namespace.
///
/// # Errors
///
/// As the store, or the terminal is gone.
pub(super) fn watch(context: &Context, catalog: &Catalog, args: &TopArgs) -> Result<Exit> {
    let mut screen = Screen::open()?;
    let mut last: Option<Look> = None;
    loop {
        let size = screen.size();
        let look = Look::at(catalog, last.as_ref(), size.lines.min(args.max.unwrap_or(usize::MAX)))?;
        let room = room(size, args.max, look.waiters.len());
        let answer = TopAnswer::new(context, &look, room);
        let mut page = Page::new(size.columns);
        answer.text(&mut page);
        screen.show(&style::seen(&page.finish().0))?;
        last = Some(look);
        match screen.pause(args.interval.max(INTERVAL_MIN))? {
            Pause::Over => {}
            Pause::Quit => return Ok(Exit::OK),
            Pause::Signalled(signalled) => return Ok(signalled.exit()),
        }
    }
}

/// How many rows fit. Those who wait get a third of the screen at most, and no more than they need.
fn room(size: Size, max: Option<usize>, waiting: usize) -> Room {
    // The headline, a gap and the headings; the same again for those who wait, and how many more there are.
    let (above, between) = (3, if waiting == 0 { 0 } else { 4 });
    let waiters = waiting.min((size.lines / 3).max(1));
    let rows = size.lines.saturating_sub(above + between + waiters).max(1);
    Room { rows: rows.min(max.unwrap_or(usize::MAX)), waiters: waiters.min(max.unwrap_or(usize::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_fit_the_screen() {
        let size = Size { columns: 80, lines: 24 };
        assert_eq!(room(size, None, 0), Room { rows: 21, waiters: 0 });
        assert_eq!(room(size, None, 2), Room { rows: 15, waiters: 2 });
        assert_eq!(room(size, None, 100), Room { rows: 9, waiters: 8 });
        assert_eq!(room(size, Some(3), 100), Room { rows: 3, waiters: 3 });
        assert_eq!(room(Size { columns: 80, lines: 2 }, None, 100), Room { rows: 1, waiters: 1 });
    }
}

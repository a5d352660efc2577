//! The busiest entities, and what limits them.

mod keys;
mod look;
mod view;

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use tollgate::Catalog;

use crate::args::TopArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Answer, Format, Output, Page, Terminal};
use keys::Screen;
use look::Look;
use view::TopAnswer;

/// How many rows are shown where nobody says otherwise and there is no terminal.
const ROWS: usize = 20;

/// The lines of the screen that are not rows.
const LINES_AROUND: usize = 5;

/// Watches a namespace, or looks once.
pub(super) fn run(context: &Context, args: TopArgs) -> Result<Output> {
    let catalog = context.catalog()?;
    let is_live = io::stdout().is_terminal() && io::stdin().is_terminal();
    if args.once || !is_live || context.format == Format::Json {
        let look = Look::at(&catalog)?;
        return Ok(Output::new(TopAnswer::new(context, &look, None, args.max.unwrap_or(ROWS))));
    }
    watch(context, &catalog, &args)?;
    Ok(Output::silent(Exit::OK))
}

fn watch(context: &Context, catalog: &Catalog, args: &TopArgs) -> Result<()> {
    let mut screen = Screen::open()?;
    let mut last: Option<Look> = None;
    loop {
        let look = Look::at(catalog)?;
        let rows = args.max.unwrap_or_else(|| screen.lines().saturating_sub(LINES_AROUND).max(1));
        let answer = TopAnswer::new(context, &look, last.as_ref(), rows);
        let mut page = Page::new(Terminal::of_process().width);
        answer.text(&mut page);
        let mut stdout = anstream::stdout().lock();
        write!(stdout, "\u{1b}[H\u{1b}[J{}", page.finish().0)?;
        stdout.flush()?;
        drop(stdout);
        last = Some(look);
        if screen.is_quit_within(args.interval)? {
            return Ok(());
        }
    }
}

//! The busiest entities, what limits them, and who waits.

#[cfg(unix)]
mod endings;
#[cfg(unix)]
mod live;
#[cfg(unix)]
mod screen;
mod sets;
mod snapshot;
mod view;
mod waiting;

use anyhow::Result;
use tollgate::Catalog;

use crate::args::TopArgs;
use crate::context::Context;
use crate::output::{Format, Output};
use snapshot::NamespaceSnapshot;
use view::{RowRoom, TopAnswer};

/// How many rows are shown by default where there is no terminal.
const ROWS: usize = 20;

/// Watches a namespace, or looks once.
pub(super) fn run(context: &Context, args: TopArgs) -> Result<Output> {
    let catalog = context.catalog()?;
    if args.once || context.format == Format::Json || !can_watch() {
        return look_once(context, &catalog, &args);
    }
    watch(context, &catalog, &args)
}

fn look_once(context: &Context, catalog: &Catalog, args: &TopArgs) -> Result<Output> {
    let max = args.max.unwrap_or(ROWS);
    let room = RowRoom { rows: max, waiters: max, sets: max };
    Ok(Output::new(TopAnswer::new(
        context,
        &NamespaceSnapshot::at(catalog, &args.sets.namespace, None, max)?,
        room,
    )))
}

/// Whether there is a terminal that can be written over, and whose keys can be read.
#[cfg(unix)]
fn can_watch() -> bool {
    use std::io::{self, IsTerminal};
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !is_dumb && io::stdout().is_terminal() && io::stdin().is_terminal()
}

#[cfg(unix)]
fn watch(context: &Context, catalog: &Catalog, args: &TopArgs) -> Result<Output> {
    Ok(Output::silent(live::watch(context, catalog, args)?))
}

/// Keys and signals are those of Unix; elsewhere there is one look, which the user may repeat.
#[cfg(not(unix))]
fn can_watch() -> bool {
    false
}

#[cfg(not(unix))]
fn watch(context: &Context, catalog: &Catalog, args: &TopArgs) -> Result<Output> {
    look_once(context, catalog, args)
}

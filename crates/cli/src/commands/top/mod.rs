//! `tollgate top`: the busiest entities, their tightest limits, and waiters.

#[cfg(unix)]
mod controls;
#[cfg(unix)]
mod live;
#[cfg(unix)]
mod screen;
mod sets;
#[cfg(unix)]
mod signals;
mod snapshot;
mod view;
mod waiting;

use anyhow::Result;
use tollgate::Catalog;

use crate::args::TopArgs;
use crate::context::Context;
use crate::output::{Format, Output};
use snapshot::{NamespaceSnapshot, SnapshotQuery};
use view::{RowRoom, TopAnswer};

/// The default number of rows without a terminal.
const ROWS: usize = 20;

/// Watches a namespace, or prints one snapshot.
pub(super) fn run(context: &Context, args: TopArgs) -> Result<Output> {
    let catalog = context.catalog()?;
    if args.once || context.format == Format::Json || !can_watch() {
        return print_once(context, &catalog, &args);
    }
    watch(context, &catalog, &args)
}

fn print_once(context: &Context, catalog: &Catalog, args: &TopArgs) -> Result<Output> {
    let max = args.max.unwrap_or(ROWS);
    let room = RowRoom { rows: max, waiters: max, sets: max, is_screen: false };
    let sets_in = &args.sets.namespace;
    let query = SnapshotQuery { sets_in, sort: args.sort, filter: &args.filter, most: max };
    Ok(Output::new(TopAnswer::new(context, &NamespaceSnapshot::at(catalog, &query, None)?, room)))
}

/// Returns whether there is a terminal that can be redrawn, and whose keys can be read.
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

/// Keys and signals need Unix; elsewhere there is one snapshot, which the user can repeat.
#[cfg(not(unix))]
fn can_watch() -> bool {
    false
}

#[cfg(not(unix))]
fn watch(context: &Context, catalog: &Catalog, args: &TopArgs) -> Result<Output> {
    print_once(context, catalog, args)
}

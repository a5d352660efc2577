//! `tollgate set`: limit sets that programs open in a store.

mod change;
mod show;

use std::sync::Arc;

use anyhow::Result;
use tollgate::StoredSets;
use tollgate::store::Backend;

pub(super) use show::{all_sets, cooling_us, state};

use crate::args::{SetCommand, SetNamespaceArgs};
use crate::context::Context;
use crate::output::Output;

/// Runs a command for limit sets.
pub(super) fn run(context: &Context, command: SetCommand) -> Result<Output> {
    match command {
        SetCommand::List { location } => show::list(context, location),
        SetCommand::Show(args) => show::show(context, args),
        SetCommand::CoolDown { set, time } => change::cool_down(context, set, time),
        SetCommand::Resume(args) => change::resume(context, args),
        SetCommand::Replace { set, limits } => change::replace(context, set, &limits),
    }
}

/// Returns the sets of a namespace of a store.
fn sets(context: &Context, store: Arc<dyn Backend>, location: &SetNamespaceArgs) -> StoredSets {
    StoredSets::new(store).namespace(&location.namespace).store_timeout(context.settings.store_timeout.value)
}

/// Returns the error for a set that does not exist.
fn unknown(name: &str, location: &SetNamespaceArgs) -> anyhow::Error {
    let namespace = &location.namespace;
    anyhow::anyhow!("there is no limit set {name:?} in {namespace:?}; `tollgate set list` lists them")
}

//! Limit sets that programs keep in a store: seen, cooled down, resumed and replaced.

mod change;
mod look;

use std::sync::Arc;

use anyhow::Result;
use tollgate::StoredSets;
use tollgate::store::Backend;

pub(super) use look::{all_sets, cooling_us, state};

use crate::args::{SetCommand, SetPlaceArgs};
use crate::context::Context;
use crate::output::Output;

/// Does what a command about limit sets says.
pub(super) fn run(context: &Context, command: SetCommand) -> Result<Output> {
    match command {
        SetCommand::List { place } => look::list(context, place),
        SetCommand::Show(args) => look::show(context, args),
        SetCommand::CoolDown { set, time } => change::cool_down(context, set, time),
        SetCommand::Resume(args) => change::resume(context, args),
        SetCommand::Replace { set, limits } => change::replace(context, set, &limits),
    }
}

/// The sets of a namespace of a store.
fn sets(context: &Context, store: Arc<dyn Backend>, place: &SetPlaceArgs) -> StoredSets {
    StoredSets::new(store).namespace(&place.namespace).store_timeout(context.settings.store_timeout.value)
}

/// That there is no set of a name.
fn unknown(name: &str, place: &SetPlaceArgs) -> anyhow::Error {
    let namespace = &place.namespace;
    anyhow::anyhow!(
        "there is no limit set {name:?} in {namespace:?}; `tollgate set list` lists those there are"
    )
}

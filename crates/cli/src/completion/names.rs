//! The names in a store that complete a word.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use tollgate::catalog::PageRequest;
use tollgate::store::Scope;
use tollgate::{Catalog, Level, StoredSets};

use crate::args::{Cli, GlobalArgs};
use crate::context::Context;
use crate::output::Terminal;
use crate::settings::{CliSettings, Environment};

/// The most names that are read of each kind. With more the shell completes some of them.
const NAMES_MAX: usize = 1_000;

/// The most resources whose limits are read.
const RESOURCES_MAX: usize = 50;

/// How long the store may take. A user who presses a key does not wait longer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// What a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompletedKind {
    Entity,
    Resource,
    Limit,
    /// A limit and its amount.
    Amount,
    Namespace,
    /// A limit set that programs open.
    LimitSet,
    /// A set of limits that a file manages.
    ManagedSet,
}

/// Reads the names of a kind, in order, from the store that the command line names.
///
/// # Errors
///
/// As the settings, and the store.
pub(super) fn read(kind: CompletedKind, typed: &[OsString]) -> Result<BTreeSet<String>> {
    let typed = TypedWords::of(typed)?;
    // Nothing is printed: notices would be written into the command line.
    let global = GlobalArgs { quiet: true, store_timeout: Some(TIMEOUT), ..typed.global.clone() };
    let settings = CliSettings::resolve(&global, &Environment::of_process())?;
    let context = Context::new(settings, Terminal::of_process(), &global);
    let store = context.store_to_read()?;
    Ok(match kind {
        CompletedKind::Namespace => {
            context.existing_registry()?.list().wait()?.into_iter().map(|namespace| namespace.name).collect()
        }
        CompletedKind::LimitSet => {
            let sets = StoredSets::new(Arc::clone(&store));
            let sets = typed.get("in").into_iter().fold(sets, |sets, location| sets.namespace(location));
            sets.list(None, NAMES_MAX).wait()?.items.into_iter().map(|set| set.name).collect()
        }
        CompletedKind::ManagedSet => {
            let sets = context.catalog()?.managed_sets().wait()?;
            sets.iter().map(|set| set.name().to_owned()).collect()
        }
        CompletedKind::Entity => entities(&context.catalog()?)?,
        CompletedKind::Resource => resources(&context.catalog()?)?,
        CompletedKind::Limit => limits(&context.catalog()?, &typed)?,
        CompletedKind::Amount => {
            limits(&context.catalog()?, &typed)?.into_iter().map(|name| format!("{name}=")).collect()
        }
    })
}

/// Returns entities that were created, that have limits, or that have acquired something.
fn entities(catalog: &Catalog) -> Result<BTreeSet<String>> {
    let page = || PageRequest { limit: NAMES_MAX, ..PageRequest::default() };
    let mut names: BTreeSet<String> = catalog.entities(page()).wait()?.items.into_iter().collect();
    for resource in catalog.resources_with_entity_limits().wait()?.keys() {
        if names.len() >= NAMES_MAX {
            return Ok(names);
        }
        names.extend(catalog.entities_with_limits(resource, page()).wait()?.items);
    }
    names.extend(active(catalog)?.into_iter().map(|(entity, _)| entity));
    Ok(names)
}

/// Returns resources that have limits, for all entities or for some, or that were used.
fn resources(catalog: &Catalog) -> Result<BTreeSet<String>> {
    let mut names: BTreeSet<String> = catalog.resources_with_limits().wait()?.into_iter().collect();
    let of_entities = catalog.resources_with_entity_limits().wait()?.into_keys();
    // The limits of an entity for all resources are stored under a name that is not a resource.
    names.extend(of_entities.filter(|name| crate::names::resource(name).is_ok()));
    names.extend(active(catalog)?.into_iter().map(|(_, resource)| resource));
    Ok(names)
}

/// Returns the limits of the entity and the resource that were typed; if the entity is not known, those of the resource, and
/// if that has none or is not known either, those of the system and of resources.
fn limits(catalog: &Catalog, typed: &TypedWords) -> Result<BTreeSet<String>> {
    if let (Some(entity), Some(resource)) = (typed.get("entity"), typed.get("resource")) {
        let chain = catalog.chain(entity, resource).wait()?;
        let limits = chain.links.iter().flat_map(|link| link.limits.iter());
        return Ok(limits.map(|limit| limit.name().to_string()).collect());
    }
    let mut names: BTreeSet<String> = BTreeSet::new();
    let of_resource =
        typed.get("resource").map(|resource| stored(catalog, Level::Resource(resource))).transpose()?;
    match of_resource.filter(|names| !names.is_empty()) {
        Some(of_resource) => names.extend(of_resource),
        None => {
            names.extend(stored(catalog, Level::System)?);
            for resource in catalog.resources_with_limits().wait()?.into_iter().take(RESOURCES_MAX) {
                names.extend(stored(catalog, Level::Resource(&resource))?);
            }
        }
    }
    Ok(names)
}

/// Returns the limits that are stored at a level.
fn stored(catalog: &Catalog, level: Level<'_>) -> Result<Vec<String>> {
    let stored = catalog.limits(level).wait()?;
    let limits = stored.iter().flat_map(|stored| stored.limits.iter());
    Ok(limits.map(|limit| limit.name().to_string()).collect())
}

/// Returns the entities and resources of some buckets.
fn active(catalog: &Catalog) -> Result<Vec<(String, String)>> {
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = catalog.backend().activity(catalog.namespace_id(), Scope::All, after).wait()?;
        names.extend(page.items.into_iter().map(|activity| (activity.entity, activity.resource)));
        after = page.next.filter(|_| names.len() < NAMES_MAX);
        if after.is_none() {
            return Ok(names);
        }
    }
}

/// The values that stand on a command line which is not complete.
struct TypedWords {
    global: GlobalArgs,
    matches: ArgMatches,
}

impl TypedWords {
    fn of(typed: &[OsString]) -> Result<TypedWords> {
        // The last word is the one to complete, and may not be valid yet.
        let known = typed.split_last().map_or(typed, |(_, known)| known);
        let matches = Cli::command().ignore_errors(true).try_get_matches_from(known)?;
        Ok(TypedWords { global: GlobalArgs::from_arg_matches(&matches)?, matches })
    }

    /// Returns the value of an argument of the innermost command.
    fn get(&self, id: &str) -> Option<&str> {
        let mut matches = &self.matches;
        while let Some((_, below)) = matches.subcommand() {
            matches = below;
        }
        matches.try_get_one::<String>(id).ok().flatten().map(String::as_str)
    }
}

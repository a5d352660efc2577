//! Inspection of all records: records that cannot be read, and records that contradict each other.
//!
//! None of this can result from this program. It may result from manual changes, another program,
//! or a copy that was made while others wrote. Concurrent changes may make a correct record look
//! wrong; inspect again then.

use std::collections::BTreeMap;

use tollgate_store::records::{Index, Item, ItemKey, Query, Value};
use tollgate_store::{CHAIN_MAX, Reply};

use super::{Namespace, NamespaceStatus, Registry};
use crate::limits::read_config;
use crate::{Catalog, CatalogError, DEFAULT_RESOURCE, Result, keys};

/// A problem of a record.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{NewEntity, Registry};
/// use tollgate_store::Memory;
/// use tollgate_store::records::{ItemKey, Records, Write};
///
/// let registry = Registry::new(Arc::new(Memory::default()));
/// let catalog = registry.open_or_register("default").wait()?;
/// catalog.create_entity(NewEntity::new("org")).wait()?;
/// catalog.create_entity(NewEntity::new("user-1").parent("org")).wait()?;
/// // Another program deletes the record of the parent.
/// let org = ItemKey::new(format!("{}/ENTITY#org", catalog.namespace_id()), "#META");
/// catalog.backend().write(&[Write::Delete(org, Vec::new())]).wait()?;
/// let inspection = registry.inspect().wait()?;
/// assert_eq!(inspection.findings[0].problem, "its parent \"org\" does not exist");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the namespace; `None` for the registry itself.
    pub namespace: Option<String>,
    /// The subject of the record, such as `entity "user-1"`.
    pub what: String,
    /// The problem.
    pub problem: String,
}

/// The result of an inspection.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::Registry;
/// use tollgate_store::Memory;
///
/// let registry = Registry::new(Arc::new(Memory::default()));
/// registry.register("default").wait()?;
/// let inspection = registry.inspect().wait()?;
/// for finding in &inspection.findings {
///     eprintln!("{}: {}", finding.what, finding.problem);
/// }
/// assert!(inspection.records > 0 && inspection.findings.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The number of records that were inspected.
    pub records: u64,
    /// The problems.
    pub findings: Vec<Finding>,
}

/// The references between the records of a namespace.
#[derive(Default)]
struct CrossReferences {
    /// The parent of each entity, and its stored number of children.
    entities: BTreeMap<String, (Option<String>, u64)>,
    /// How many entities have limits, by resource.
    entity_limits: BTreeMap<String, u64>,
    /// The resources that have limits.
    resources: Vec<String>,
}

impl Registry {
    /// Inspects every record of the registry and of the active namespaces, and changes nothing.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except that an unused store gets its schema version.
    ///
    /// # Errors
    ///
    /// Records of another schema version, or an error of the store. An unreadable record is a
    /// finding.
    pub fn inspect(&self) -> Reply<'_, Result<Inspection>> {
        Reply::later(async move {
            self.check_version().await?;
            let mut inspection = Inspection::default();
            let by_name = self.registered(keys::NAMESPACE_PREFIX, &mut inspection).await?;
            let by_id = self.registered(keys::NSID_PREFIX, &mut inspection).await?;
            compare_registered(&by_name, &by_id, &mut inspection);
            for namespace in by_id.into_iter().filter(|it| it.status == NamespaceStatus::Active) {
                self.catalog(namespace).inspect(&mut inspection).await?;
            }
            Ok(inspection)
        })
    }

    /// Returns the namespaces whose records can be read.
    async fn registered(&self, prefix: &str, inspection: &mut Inspection) -> Result<Vec<Namespace>> {
        let mut query = Query::prefix(keys::REGISTRY, prefix);
        let mut found = Vec::new();
        loop {
            let page = self.backend().query(&query).await?;
            for item in &page.items {
                inspection.records += 1;
                let what = || format!("namespace record {:?}", item.key.sort);
                found.extend(inspection.read(None, what, Namespace::of(item)));
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(found),
            }
        }
    }
}

fn compare_registered(by_name: &[Namespace], by_id: &[Namespace], inspection: &mut Inspection) {
    let is_active = |it: &&Namespace| it.status == NamespaceStatus::Active;
    for one in by_name {
        if !by_id.iter().filter(is_active).any(|two| two.id == one.id && two.name == one.name) {
            let problem = format!("no namespace in use has its id, {:?}", one.id);
            inspection.add(None, format!("namespace {:?}", one.name), problem);
        }
    }
    for one in by_id.iter().filter(is_active) {
        if !by_name.iter().any(|two| two.id == one.id) {
            let problem = format!("it is in use, but its name {:?} does not lead to it", one.name);
            inspection.add(None, format!("namespace id {:?}", one.id), problem);
        }
    }
}

impl Catalog {
    async fn inspect(&self, inspection: &mut Inspection) -> Result<()> {
        let mut query = Query::prefix(self.namespace_id(), "");
        let mut references = CrossReferences::default();
        loop {
            let page = self.backend().find(Index::Namespace, &query).await?;
            inspection.records += page.items.len() as u64;
            let is_checked = |key: &ItemKey| keys::is_entity(key) || is_limits(key);
            let checked: Vec<ItemKey> = page.items.into_iter().filter(is_checked).collect();
            for item in self.get_all(&checked).await? {
                self.add_references(&item, &mut references, inspection);
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        self.compare_parents(&references, inspection);
        self.compare_lists(&references, inspection).await
    }

    fn add_references(&self, item: &Item, references: &mut CrossReferences, inspection: &mut Inspection) {
        if keys::is_entity(&item.key) {
            let id = keys::entity_of(&item.key).unwrap_or_default();
            let children = item.int("children").and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
            let parent = item.text("parent_id").map(str::to_owned);
            references.entities.insert(id.into(), (parent, children));
            return;
        }
        if let Some(resource) = keys::resource_of(&item.key) {
            references.resources.push(resource.into());
        }
        if let Some(resource) = item.key.sort.strip_prefix(keys::CONFIG_PREFIX) {
            *references.entity_limits.entry(resource.into()).or_default() += 1;
        }
        inspection.read(Some(self.namespace_name()), || level_of(&item.key), read_config(item));
    }

    fn compare_parents(&self, references: &CrossReferences, inspection: &mut Inspection) {
        let mut children: BTreeMap<&str, u64> = BTreeMap::new();
        for (id, (parent, _)) in &references.entities {
            let Some(parent) = parent else { continue };
            *children.entry(parent).or_default() += 1;
            if !references.entities.contains_key(parent) {
                let problem = format!("its parent {parent:?} does not exist");
                inspection.add(Some(self.namespace_name()), entity(id), problem);
            } else if references.height(id).is_none() {
                let problem = format!("it is below itself, or more than {CHAIN_MAX} entities deep");
                inspection.add(Some(self.namespace_name()), entity(id), problem);
            }
        }
        for (id, (_, stored)) in &references.entities {
            let actual = children.get(id.as_str()).copied().unwrap_or(0);
            if actual != *stored {
                let problem = format!("it says that it has {stored} children, and has {actual}");
                inspection.add(Some(self.namespace_name()), entity(id), problem);
            }
        }
    }

    async fn compare_lists(&self, references: &CrossReferences, inspection: &mut Inspection) -> Result<()> {
        let listed = self.resources_with_limits().await?;
        let name = Some(self.namespace_name());
        for resource in references.resources.iter().filter(|it| !listed.contains(it)) {
            let what = format!("resource {resource:?}");
            inspection.add(name, what, "it has limits, but is not in the list of those that do".into());
        }
        for resource in listed.iter().filter(|it| !references.resources.contains(it)) {
            let what = format!("resource {resource:?}");
            inspection.add(name, what, "it is in the list of those that have limits, but has none".into());
        }
        let item = self.get(keys::entity_config_resources(self.namespace_id())).await?;
        let counts = item.map(|item| item.fields).unwrap_or_default();
        let count = |resource: &str| match counts.get(resource) {
            Some(Value::Int(count)) => u64::try_from(*count).unwrap_or(0),
            _ => 0,
        };
        let resources =
            counts.keys().chain(references.entity_limits.keys().filter(|it| !counts.contains_key(*it)));
        for resource in resources {
            let (stored, actual) =
                (count(resource), references.entity_limits.get(resource).copied().unwrap_or(0));
            if stored != actual {
                let problem = format!("{stored} entities are said to have limits for it, and {actual} have");
                inspection.add(name, format!("resource {resource:?}"), problem);
            }
        }
        Ok(())
    }
}

fn is_limits(key: &ItemKey) -> bool {
    let is_entity = keys::entity_of(key).is_some();
    keys::is_config(key) || is_entity && key.sort.starts_with(keys::CONFIG_PREFIX)
}

fn entity(id: &str) -> String {
    format!("entity {id:?}")
}

/// Describes the subject of a record of an entity or of limits.
pub(super) fn named(key: &ItemKey) -> String {
    if keys::is_entity(key) { entity(keys::entity_of(key).unwrap_or_default()) } else { level_of(key) }
}

fn level_of(key: &ItemKey) -> String {
    let resource = key.sort.strip_prefix(keys::CONFIG_PREFIX);
    match (keys::entity_of(key), keys::resource_of(key), resource) {
        (Some(id), _, None | Some(DEFAULT_RESOURCE)) => format!("the limits of {}", entity(id)),
        (Some(id), _, Some(resource)) => format!("the limits of {}, resource {resource:?}", entity(id)),
        (None, Some(resource), _) => format!("the limits of resource {resource:?}"),
        (None, None, _) => "the limits of the system".into(),
    }
}

impl CrossReferences {
    /// Returns how many entities there are from this one to the root; `None` if there are too many,
    /// or a cycle.
    fn height(&self, id: &str) -> Option<usize> {
        let (mut height, mut next) = (0, Some(id));
        while let Some(id) = next {
            height += 1;
            next = self.entities.get(id).and_then(|(parent, _)| parent.as_deref());
            if height > CHAIN_MAX {
                return None;
            }
        }
        Some(height)
    }
}

impl Inspection {
    fn add(&mut self, namespace: Option<&str>, what: String, problem: String) {
        self.findings.push(Finding { namespace: namespace.map(str::to_owned), what, problem });
    }

    /// Returns what was read, or adds a finding if it could not be.
    fn read<T>(
        &mut self,
        namespace: Option<&str>,
        what: impl FnOnce() -> String,
        read: Result<T>,
    ) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(CatalogError::BadRecord { why, .. }) => {
                self.add(namespace, what(), format!("it cannot be read: {why}"));
                None
            }
            Err(error) => {
                self.add(namespace, what(), error.to_string());
                None
            }
        }
    }
}

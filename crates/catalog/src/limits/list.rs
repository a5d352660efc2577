//! Lists of the levels that have stored limits.

use std::collections::BTreeMap;

use tollgate_store::Reply;
use tollgate_store::records::{Index, Page, Query, Value};

use super::{StoredLimits, read_config};
use crate::name::{self, check_resource_or_default};
use crate::{Catalog, PageRequest, Result, keys};

impl Catalog {
    /// Returns the resources that have limits of their own, in the order of their names.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An error of the store.
    pub fn resources_with_limits(&self) -> Reply<'_, Result<Vec<String>>> {
        Reply::later(async move {
            let item = self.get(keys::resources(self.namespace_id())).await?;
            Ok(match item.as_ref().and_then(|item| item.fields.get("resources")) {
                Some(Value::Set(names)) => names.iter().cloned().collect(),
                _ => Vec::new(),
            })
        })
    }

    /// Returns the entities that have limits of their own for a resource, or with
    /// [`DEFAULT_RESOURCE`](crate::DEFAULT_RESOURCE) those that have limits for all resources.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn entities_with_limits<'a>(
        &'a self,
        resource: &'a str,
        page: PageRequest,
    ) -> Reply<'a, Result<Page<String>>> {
        Reply::later(async move {
            check_resource_or_default(resource)?;
            let partition = keys::entity_config_partition(self.namespace_id(), resource);
            self.find_entities(Index::Custom, page.query(partition, "")).await
        })
    }

    /// Returns the resources for which entities have limits of their own, and how many entities.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An error of the store.
    pub fn resources_with_entity_limits(&self) -> Reply<'_, Result<BTreeMap<String, u64>>> {
        Reply::later(async move {
            let item = self.get(keys::entity_config_resources(self.namespace_id())).await?;
            let fields = item.map(|item| item.fields).unwrap_or_default();
            // A resource for which the last entity's limits were deleted stays with a count of 0.
            let count = |value: &Value| match value {
                Value::Int(count) => u64::try_from(*count).ok().filter(|count| *count > 0),
                _ => None,
            };
            Ok(fields.iter().filter_map(|(name, value)| Some((name.clone(), count(value)?))).collect())
        })
    }

    /// Returns all limits of an entity: by resource, and under
    /// [`DEFAULT_RESOURCE`](crate::DEFAULT_RESOURCE) those for all others.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, an unreadable record, or an error of the store.
    pub fn limits_of_entity<'a>(
        &'a self,
        entity: &'a str,
    ) -> Reply<'a, Result<BTreeMap<String, StoredLimits>>> {
        Reply::later(async move {
            name::ENTITY.check(entity)?;
            let partition = keys::entity_partition(self.namespace_id(), entity);
            let mut query = Query::prefix(partition, keys::CONFIG_PREFIX);
            let mut all = BTreeMap::new();
            loop {
                let page = self.backend().query(&query).await?;
                for item in &page.items {
                    let resource = item.key.sort.strip_prefix(keys::CONFIG_PREFIX).unwrap_or_default();
                    all.insert(resource.to_owned(), read_config(item)?);
                }
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => return Ok(all),
                }
            }
        })
    }
}

//! Reading usage, page by page.

use tollgate_store::records::{Cursor, Index, Item, ItemKey, Page};
use tollgate_store::usage::{iso, usage_partition};
use tollgate_store::{Reply, Scope};

use super::{UsageQuery, UsageRow, Whose, time};
use crate::{Catalog, PageRequest, Result, keys, name};
use tollgate_core::Tick;

/// How many pages of records are looked through for one page of rows. With nothing found by then the page is short.
const SCANS_MAX: usize = 100;

impl Catalog {
    /// What was used, brought up to date first. By entity the rows are in the order of resource and time, by resource in
    /// that of time and entity, of everybody in that of entity, resource and time. A page may have fewer rows than asked for even if more follow.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, usage may have been brought up to date.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn usage(&self, query: UsageQuery) -> Reply<'_, Result<Page<UsageRow>>> {
        Reply::later(async move {
            query.check()?;
            if query.page.after.is_none() {
                self.backend().write_usage(self.namespace_id(), query.scope()).await?;
            }
            self.read_usage(&query, query.page.clone()).await
        })
    }

    /// Looks through records until there are as many rows as asked for.
    pub(super) async fn read_usage(
        &self,
        query: &UsageQuery,
        mut page: PageRequest,
    ) -> Result<Page<UsageRow>> {
        let wanted = page.limit.max(1);
        let mut rows = Vec::new();
        for _ in 0..SCANS_MAX {
            page.limit = wanted - rows.len();
            let (items, next) = self.scan(query, page.clone()).await?;
            let found = items.iter().filter_map(UsageRow::of);
            rows.extend(found.filter(|row| row.window == query.window && query.wants(row.start)));
            page.after = next;
            if page.after.is_none() || rows.len() >= wanted {
                break;
            }
        }
        Ok(Page { items: rows, next: page.after })
    }

    async fn scan(&self, query: &UsageQuery, page: PageRequest) -> Result<(Vec<Item>, Option<Cursor>)> {
        let ns = self.namespace_id();
        match &query.whose {
            Whose::Entity { entity, resource } => {
                let prefix = match resource {
                    Some(resource) => format!("{}{resource}#{}", keys::USAGE_PREFIX, query.prefix()),
                    None => keys::USAGE_PREFIX.to_owned(),
                };
                let query = page.query(usage_partition(ns, entity), prefix);
                let Page { items, next } = self.backend().query(&query).await?;
                Ok((items, next))
            }
            Whose::Resource(resource) => {
                let prefix = format!("USAGE#{}", query.prefix());
                let records = page.query(keys::resource_partition(ns, resource), prefix);
                let Page { items, next } = self.backend().find(Index::Resource, &records).await?;
                let wanted: Vec<ItemKey> = items.into_iter().filter(|key| query.wants_key(key)).collect();
                Ok((self.get_all(&wanted).await?, next))
            }
            Whose::Everybody => {
                let entities = page.query(ns.into(), usage_partition(ns, ""));
                let Page { items, next } = self.backend().find(Index::Namespace, &entities).await?;
                let of_window = format!("#{}#", query.window.name());
                let is_wanted = |key: &ItemKey| {
                    let usage = key.sort.strip_prefix(keys::USAGE_PREFIX);
                    usage.is_some_and(|rest| rest.contains(&of_window)) && query.wants_key(key)
                };
                let wanted: Vec<ItemKey> = items.into_iter().filter(is_wanted).collect();
                Ok((self.get_all(&wanted).await?, next))
            }
        }
    }
}

impl UsageQuery {
    pub(super) fn check(&self) -> Result<()> {
        match &self.whose {
            Whose::Entity { entity, resource } => {
                name::ENTITY.check(entity)?;
                resource.iter().try_for_each(|resource| name::RESOURCE.check(resource))?;
            }
            Whose::Resource(resource) => name::RESOURCE.check(resource)?,
            Whose::Everybody => {}
        }
        Ok(())
    }

    pub(super) fn scope(&self) -> Scope<'_> {
        match &self.whose {
            Whose::Entity { entity, resource: Some(resource) } => Scope::Bucket(entity, resource),
            Whose::Entity { entity, resource: None } => Scope::Entity(entity),
            Whose::Resource(resource) => Scope::Resource(resource),
            Whose::Everybody => Scope::All,
        }
    }

    /// What the wanted records have in common after the resource: the window, and as much of the time as the first and
    /// the last share.
    fn prefix(&self) -> String {
        let last = Tick::from_micros(self.until.as_micros().saturating_sub(1));
        let (first, last) = (iso(self.from), iso(last));
        let shared = first.bytes().zip(last.bytes()).take_while(|(one, two)| one == two).count();
        // Years of more than four digits do not sort as text.
        let shared = if first.len() == last.len() { shared } else { 0 };
        format!("{}#{}", self.window.name(), &first[..shared])
    }

    /// Whether the window that the key of a record names is wanted, as far as it can be told.
    fn wants_key(&self, key: &ItemKey) -> bool {
        let start = key.sort.rsplit_once('#').and_then(|(_, start)| time::parse(start));
        start.is_none_or(|start| self.wants(start))
    }
}

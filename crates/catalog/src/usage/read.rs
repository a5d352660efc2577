//! Reading usage, page by page: the records, and usage that is in none yet.

use std::collections::BTreeMap;
use std::ops::Bound;
use tollgate_store::records::{Cursor, GETS_MAX, Index, ItemKey, PAGE_MAX, Page};
use tollgate_store::usage::{iso, usage_key, usage_partition};
use tollgate_store::{Activity, Reply, Scope};

use super::{UsageQuery, UsageRow, UsageSubject, time};
use crate::{Catalog, PageRequest, Result, keys, name};
use tollgate_core::Tick;

/// How many pages of records are scanned for one page of rows. If they have no row, the page is
/// short.
const SCANS_MAX: usize = 100;

impl Catalog {
    /// Returns usage as of now. The rows of an entity are in the order of resource and time, those
    /// of a resource in that of time and entity, those of all entities in that of entity, resource
    /// and time. A page may be short even if more rows follow.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn usage(&self, query: UsageQuery) -> Reply<'_, Result<Page<UsageRow>>> {
        Reply::later(async move {
            query.check()?;
            let mut walk = UsageWalk::from_cursor(query.page.after.as_ref())?;
            // One more than fits on the page, so that the walk sees that it is cut.
            let most = query.page.limit.max(1).saturating_add(1);
            let unwritten = self.unwritten(&query, &walk, most).await?;
            let items = self.walk(&query, &mut walk, &unwritten, query.page.limit).await?;
            Ok(Page { items, next: walk.cursor() })
        })
    }

    /// Passes every row of a query to `seen`, whatever its page.
    pub(super) async fn each_usage(&self, query: &UsageQuery, mut seen: impl FnMut(UsageRow)) -> Result<()> {
        let mut walk = UsageWalk::default();
        let unwritten = self.unwritten(query, &walk, usize::MAX).await?;
        while !walk.is_over {
            self.walk(query, &mut walk, &unwritten, PAGE_MAX).await?.into_iter().for_each(&mut seen);
        }
        Ok(())
    }

    /// Returns the records that would be created or changed if all usage were written: the first
    /// `most` that are ahead of the walk.
    async fn unwritten(&self, query: &UsageQuery, walk: &UsageWalk, most: usize) -> Result<Keys> {
        let (mut keys, mut after) = (Keys::new(), None);
        loop {
            let page = self.backend().activity(self.namespace_id(), query.scope(), after).await?;
            let starts = |active| Activity::hours(active).map(move |hour| (active, query.window.start(hour)));
            let starts = page.items.iter().flat_map(starts);
            for (active, start) in starts.filter(|(_, start)| query.wants(*start)) {
                let (ns, entity, resource) = (self.namespace_id(), &active.entity, &active.resource);
                let key = usage_key(ns, entity, resource, query.window, &iso(start));
                let position = query.position(&key);
                if walk.is_ahead(query, &position) {
                    keys.insert(position, key);
                }
                if keys.len() > most {
                    let farthest = if query.page.newest_first { Keys::pop_first } else { Keys::pop_last };
                    farthest(&mut keys);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(keys);
            }
        }
    }

    /// Walks through the keys of records and those of pending usage, in one order, until there are
    /// as many rows as wanted.
    async fn walk(
        &self,
        query: &UsageQuery,
        walk: &mut UsageWalk,
        unwritten: &Keys,
        wanted: usize,
    ) -> Result<Vec<UsageRow>> {
        let (mut room, mut rows) = (wanted.max(1), Vec::new());
        for _ in 0..SCANS_MAX {
            let (found, next) = self.scan(query, walk.after.clone(), room).await?;
            let keys = walk.advance(query, found, next, unwritten, room);
            room -= keys.len();
            for keys in keys.chunks(GETS_MAX) {
                let items = self.backend().usage_at(keys).await?;
                let found = items.iter().flatten().filter_map(UsageRow::of);
                rows.extend(found.filter(|row| row.window == query.window && query.wants(row.start)));
            }
            if walk.is_over || room == 0 {
                break;
            }
        }
        Ok(rows)
    }

    /// Returns some keys of records after a cursor, among them all records of usage that are
    /// wanted.
    async fn scan(
        &self,
        query: &UsageQuery,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<ItemKey>, Option<Cursor>)> {
        let ns = self.namespace_id();
        let page = PageRequest { after, limit, ..query.page.clone() };
        let Page { items, next } = match &query.whose {
            UsageSubject::Entity { entity, resource } => {
                let prefix = match resource {
                    Some(resource) => format!("{}{resource}#{}", keys::USAGE_PREFIX, query.prefix()),
                    None => keys::USAGE_PREFIX.to_owned(),
                };
                let query = page.query(usage_partition(ns, entity), prefix);
                let Page { items, next } = self.backend().query(&query).await?;
                Page { items: items.into_iter().map(|item| item.key).collect(), next }
            }
            UsageSubject::Resource(resource) => {
                let prefix = format!("USAGE#{}", query.prefix());
                let records = page.query(keys::resource_partition(ns, resource), prefix);
                self.backend().find(Index::Resource, &records).await?
            }
            UsageSubject::All => {
                let entities = page.query(ns.into(), usage_partition(ns, ""));
                self.backend().find(Index::Namespace, &entities).await?
            }
        };
        Ok((items, next))
    }
}

/// The position of a record in the order of a query.
type UsagePosition = (String, String);

/// Keys of records by their positions.
type Keys = BTreeMap<UsagePosition, ItemKey>;

/// The progress of a query.
#[derive(Default)]
struct UsageWalk {
    /// The cursor of the records.
    after: Option<Cursor>,
    /// The last position that was returned or skipped.
    last: Option<UsagePosition>,
    is_over: bool,
}

impl UsageWalk {
    fn from_cursor(cursor: Option<&Cursor>) -> Result<UsageWalk> {
        let Some(cursor) = cursor else { return Ok(UsageWalk::default()) };
        let [has_after, after, has_last, one, two] = cursor.parts::<5>()?;
        Ok(UsageWalk {
            after: (has_after == "+").then(|| Cursor(after.into())),
            last: (has_last == "+").then(|| (one.into(), two.into())),
            is_over: false,
        })
    }

    fn cursor(&self) -> Option<Cursor> {
        let sign = |is_there: bool| if is_there { "+" } else { "-" };
        let after = self.after.as_ref().map_or("", |Cursor(after)| after);
        let (one, two) = self.last.as_ref().map_or(("", ""), |(one, two)| (one, two));
        let parts = [sign(self.after.is_some()), after, sign(self.last.is_some()), one, two];
        (!self.is_over).then(|| Cursor::of(&parts))
    }

    /// Advances by the records that were found. Returns the wanted keys among them and among the
    /// pending ones up to there, at most `room`.
    fn advance(
        &mut self,
        query: &UsageQuery,
        found: Vec<ItemKey>,
        next: Option<Cursor>,
        unwritten: &Keys,
        room: usize,
    ) -> Vec<ItemKey> {
        let last = found.last().map(|key| query.position(key));
        // Records that did not all fit are read again, so the last one may have been returned
        // already.
        let end = last.filter(|last| self.is_ahead(query, last)).or_else(|| self.last.clone());
        let found =
            found.into_iter().filter(|key| query.wants_key(key)).map(|key| (query.position(&key), key));
        let mut page: Keys = found.filter(|(position, _)| self.is_ahead(query, position)).collect();
        let end_of_range = next.is_some().then_some(end.as_ref());
        let between = query.between(unwritten, self.last.as_ref(), end_of_range);
        page.extend(between.take(room + 1).map(|(position, key)| (position.clone(), key.clone())));
        let is_cut = page.len() > room;
        let page: Vec<(UsagePosition, ItemKey)> = match query.page.newest_first {
            true => page.into_iter().rev().take(room).collect(),
            false => page.into_iter().take(room).collect(),
        };
        if is_cut {
            self.last = page.last().map(|(position, _)| position.clone());
        } else {
            self.is_over = next.is_none();
            (self.after, self.last) = (next, end);
        }
        page.into_iter().map(|(_, key)| key).collect()
    }

    /// Returns true if a position is ahead of the walk.
    fn is_ahead(&self, query: &UsageQuery, position: &UsagePosition) -> bool {
        self.last.as_ref().is_none_or(|last| query.is_further(position, last))
    }
}

impl UsageQuery {
    pub(super) fn check(&self) -> Result<()> {
        match &self.whose {
            UsageSubject::Entity { entity, resource } => {
                name::ENTITY.check(entity)?;
                resource.iter().try_for_each(|resource| name::RESOURCE.check(resource))?;
            }
            UsageSubject::Resource(resource) => name::RESOURCE.check(resource)?,
            UsageSubject::All => {}
        }
        Ok(())
    }

    pub(super) fn scope(&self) -> Scope<'_> {
        match &self.whose {
            UsageSubject::Entity { entity, resource: Some(resource) } => Scope::Bucket(entity, resource),
            UsageSubject::Entity { entity, resource: None } => Scope::Entity(entity),
            UsageSubject::Resource(resource) => Scope::Resource(resource),
            UsageSubject::All => Scope::All,
        }
    }

    /// Returns the common prefix of the wanted records after the resource: the window, and the part
    /// of the time that the first and the last share.
    fn prefix(&self) -> String {
        let last = Tick::from_micros(self.until.as_micros().saturating_sub(1));
        let (first, last) = (iso(self.from), iso(last));
        let shared = first.bytes().zip(last.bytes()).take_while(|(one, two)| one == two).count();
        // Years of more than four digits do not sort as text.
        let shared = if first.len() == last.len() { shared } else { 0 };
        format!("{}#{}", self.window.name(), &first[..shared])
    }

    /// Returns true if a key is that of a wanted record of usage.
    fn wants_key(&self, key: &ItemKey) -> bool {
        let named = key.sort.strip_prefix(keys::USAGE_PREFIX).and_then(|rest| rest.rsplit_once('#'));
        let Some((rest, start)) = named else { return false };
        let is_of_window = rest.rsplit_once('#').is_some_and(|(_, window)| window == self.window.name());
        is_of_window && time::parse(start).is_none_or(|start| self.wants(start))
    }

    /// Returns the position of a record in the order of the result, which is the order of the
    /// store.
    fn position(&self, key: &ItemKey) -> UsagePosition {
        match &self.whose {
            UsageSubject::Entity { .. } => (String::new(), key.sort.clone()),
            UsageSubject::Resource(_) => {
                let start = key.sort.rsplit_once('#').map_or("", |(_, start)| start);
                (format!("{start}#{}", keys::usage_of(key).unwrap_or_default()), String::new())
            }
            UsageSubject::All => (key.partition.clone(), key.sort.clone()),
        }
    }

    /// Returns the keys after one position up to another, in the order of the result: to the end
    /// without an `end`, and none if there is no position to go up to.
    fn between<'k>(
        &self,
        keys: &'k Keys,
        after: Option<&UsagePosition>,
        end: Option<Option<&UsagePosition>>,
    ) -> Box<dyn Iterator<Item = (&'k UsagePosition, &'k ItemKey)> + Send + 'k> {
        let is_empty = match (end, after) {
            (Some(None), _) => true,
            (Some(Some(end)), Some(after)) => !self.is_further(end, after),
            _ => false,
        };
        if is_empty {
            return Box::new(std::iter::empty());
        }
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let end = end.flatten().map_or(Bound::Unbounded, Bound::Included);
        match self.page.newest_first {
            true => Box::new(keys.range::<UsagePosition, _>((end, after)).rev()),
            false => Box::new(keys.range::<UsagePosition, _>((after, end))),
        }
    }

    /// Returns true if a position comes after another one.
    fn is_further(&self, position: &UsagePosition, than: &UsagePosition) -> bool {
        if self.page.newest_first { position < than } else { position > than }
    }
}

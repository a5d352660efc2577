//! Records of waiters, which are gone as soon as their process stops renewing them.
//!
//! A waiter queues in its own process, and only that process knows of it. A record lets other processes see the waiter,
//! and nothing else: no decision depends on it, so it may be late, and a process that dies need not clean up. There is
//! a fixed number of places for such records, each of which is taken again when the one before is gone, so that they
//! cannot pile up.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::{LIMITS_MAX, Span, Tick};
use tollgate_store::Reply;
use tollgate_store::records::{Change, Fields, Item, ItemKey, Page, Query, Test, Value, Write};

use crate::transaction::Commit;
use crate::{Catalog, CatalogError, Result, keys, name, random, ulid};

/// How many can be seen to wait in one namespace. Any others wait unseen.
pub const WAITERS_SEEN_MAX: usize = 128;

/// How many resources a waiter names besides the one of its call.
const ALSO_MAX: usize = 8;

/// How many bytes the name of a host has at most.
const HOST_MAX: usize = 255;

/// How often a place is looked for, when others take the one that was found.
const ATTEMPTS_MAX: usize = 8;

/// What is asked of the limits of a resource, by their names.
type WaitedAmounts = BTreeMap<String, u64>;

/// A waiter: what it waits for, since when and in which process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaiterRecord {
    /// Who wants to be admitted.
    pub entity: String,
    /// For which resource.
    pub resource: String,
    /// How much of which limit.
    pub demand: WaitedAmounts,
    /// What is wanted of other resources with it.
    pub also: BTreeMap<String, WaitedAmounts>,
    /// When the wait began.
    pub since: Tick,
    /// The process that waits.
    pub pid: u32,
    /// The host that the process is on.
    pub host: String,
}

/// A waiter that others see, until it is [withdrawn](Catalog::withdraw_waiter) or not renewed in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenWaiter {
    key: ItemKey,
    id: String,
}

impl WaiterRecord {
    /// One who waits in a process of this host since an instant, and has said nothing of how much it wants.
    pub fn new(entity: &str, resource: &str, since: Tick, pid: u32, host: &str) -> WaiterRecord {
        WaiterRecord {
            entity: entity.into(),
            resource: resource.into(),
            demand: WaitedAmounts::new(),
            also: BTreeMap::new(),
            since,
            pid,
            host: host.into(),
        }
    }
}

impl Catalog {
    /// Shows a waiter to other processes, for `seen_for`. `None` if so many are seen that there is no place.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, the waiter may be seen for a while.
    ///
    /// # Errors
    ///
    /// A name that is not valid, more amounts than there can be, a namespace that is gone, or the store's.
    pub fn show_waiter<'a>(
        &'a self,
        waiter: &'a WaiterRecord,
        seen_for: Span,
    ) -> Reply<'a, Result<Option<SeenWaiter>>> {
        Reply::later(async move {
            waiter.check()?;
            let id = ulid::text(self.shared().ulids.next(self.now())?);
            for _ in 0..ATTEMPTS_MAX {
                let Some(key) = self.free_place().await? else { return Ok(None) };
                let mut item = waiter.item(key.clone()).with("id", id.as_str());
                item.expires = Some(self.now() + seen_for);
                let put = Write::Put(item, vec![Test::Absent]);
                if self.write_unheard(put).await? == Commit::Done {
                    return Ok(Some(SeenWaiter { key, id }));
                }
            }
            Ok(None)
        })
    }

    /// Shows a waiter for `seen_for` from now on, because it still waits. `false` if that comes too late, and it has to be shown again.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, it is renewed or not.
    ///
    /// # Errors
    ///
    /// A namespace that is gone, or the store's.
    pub fn renew_waiter<'a>(&'a self, seen: &'a SeenWaiter, seen_for: Span) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            let until = Change::Expire(Some(self.now() + seen_for));
            let renewal = Write::Change(seen.key.clone(), vec![until], vec![seen.is_there()]);
            Ok(self.write_unheard(renewal).await? == Commit::Done)
        })
    }

    /// Removes the record of a waiter that waits no more.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, the waiter may be seen until its time is over.
    ///
    /// # Errors
    ///
    /// A namespace that is gone, or the store's.
    pub fn withdraw_waiter<'a>(&'a self, seen: &'a SeenWaiter) -> Reply<'a, Result<()>> {
        Reply::later(async move {
            // Should the test fail, its time was over before.
            let removal = Write::Delete(seen.key.clone(), vec![seen.is_there()]);
            self.write_unheard(removal).await.map(drop)
        })
    }

    /// Those who are seen to wait, in any process: who waits longest comes first.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn waiters(&self) -> Reply<'_, Result<Vec<WaiterRecord>>> {
        Reply::later(async move {
            let items = self.waiter_items().await?;
            // A record of another version that cannot be understood is no reason to hide the other waiters.
            let mut waiters: Vec<WaiterRecord> = items.iter().filter_map(WaiterRecord::of).collect();
            waiters.sort_by(|one, two| (one.since, &one.entity).cmp(&(two.since, &two.entity)));
            Ok(waiters)
        })
    }

    async fn waiter_items(&self) -> Result<Vec<Item>> {
        let mut query = Query::all(keys::waiting_partition(self.namespace_id()));
        let mut found = Vec::new();
        loop {
            let Page { items, next } = self.backend().query(&query).await?;
            found.extend(items);
            match next {
                Some(next) => query.after = Some(next),
                None => return Ok(found),
            }
        }
    }

    /// Returns a place that no waiter has. Not the first one, which all waiters that come at the same time would find.
    async fn free_place(&self) -> Result<Option<ItemKey>> {
        let taken: BTreeSet<String> =
            self.waiter_items().await?.into_iter().map(|item| item.key.sort).collect();
        let start = usize::from(u16::from_be_bytes(random::bytes()?));
        let places = (0..WAITERS_SEEN_MAX).map(|step| (start + step) % WAITERS_SEEN_MAX);
        let mut places = places.map(|place| keys::waiting(self.namespace_id(), place));
        Ok(places.find(|key| !taken.contains(&key.sort)))
    }

    /// Makes one write if the namespace is there. Unlike a change it notifies no waiters: they need not look again
    /// because others wait as well.
    pub(crate) async fn write_unheard(&self, write: Write) -> Result<Commit> {
        let mut tx = self.transaction();
        tx.push(write);
        let written = self.backend().write(tx.writes()).await;
        tx.outcome(written)
    }
}

impl SeenWaiter {
    /// Tests that its time is not over, and that no other waiter has taken its place since.
    fn is_there(&self) -> Test {
        Test::Is("id".into(), self.id.as_str().into())
    }
}

impl WaiterRecord {
    fn check(&self) -> Result<()> {
        name::ENTITY.check(&self.entity)?;
        name::RESOURCE.check(&self.resource)?;
        self.also.keys().try_for_each(|resource| name::RESOURCE.check(resource))?;
        at_most("the number of other resources", self.also.len(), ALSO_MAX)?;
        at_most("the length of the host's name", self.host.len(), HOST_MAX)?;
        for amounts in self.also.values().chain([&self.demand]) {
            at_most("the number of amounts", amounts.len(), LIMITS_MAX)?;
            amounts.keys().try_for_each(|limit| name::LIMIT.check(limit))?;
        }
        Ok(())
    }

    fn item(&self, key: ItemKey) -> Item {
        let also = self.also.iter().map(|(resource, amounts)| (resource.clone(), fields_of(amounts).into()));
        Item::new(key)
            .with("entity_id", self.entity.as_str())
            .with("resource", self.resource.as_str())
            .with("demand", fields_of(&self.demand))
            .with("also", also.collect::<Fields>())
            .with("since", saturated(self.since.as_micros()))
            .with("pid", i64::from(self.pid))
            .with("host", self.host.as_str())
    }

    fn of(item: &Item) -> Option<WaiterRecord> {
        let also = match item.fields.get("also")? {
            Value::Map(also) => also.iter().map(|(name, it)| Some((name.clone(), amounts_of(it)?))).collect(),
            _ => None,
        };
        Some(WaiterRecord {
            entity: item.text("entity_id")?.into(),
            resource: item.text("resource")?.into(),
            demand: amounts_of(item.fields.get("demand")?)?,
            also: also?,
            since: Tick::from_micros(u64::try_from(item.int("since")?).ok()?),
            pid: u32::try_from(item.int("pid")?).ok()?,
            host: item.text("host")?.into(),
        })
    }
}

fn at_most(what: &'static str, count: usize, max: usize) -> Result<()> {
    match count <= max {
        true => Ok(()),
        false => {
            let (value, valid) = (count.to_string(), format!("at most {max}"));
            Err(CatalogError::Invalid { what, value, valid })
        }
    }
}

fn fields_of(amounts: &WaitedAmounts) -> Fields {
    amounts.iter().map(|(limit, amount)| (limit.clone(), saturated(*amount).into())).collect()
}

fn amounts_of(value: &Value) -> Option<WaitedAmounts> {
    let Value::Map(fields) = value else { return None };
    let amount = |value: &Value| match value {
        Value::Int(amount) => u64::try_from(*amount).ok(),
        _ => None,
    };
    fields.iter().map(|(limit, value)| Some((limit.clone(), amount(value)?))).collect()
}

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

//! Records of waiters, which expire when their process stops renewing them.
//!
//! A waiter queues in its own process, and only that process knows of it. A record lets other
//! processes see the waiter, and nothing else: no decision depends on it, so it may be late, and a
//! process that dies need not clean up. There is a fixed number of slots for such records, each of
//! which is reused once its record is gone, so that records cannot pile up.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::{LIMITS_MAX, Span, Tick};
use tollgate_store::Reply;
use tollgate_store::records::{Change, Fields, Item, ItemKey, Page, Query, Test, Value, Write};

use crate::transaction::Commit;
use crate::{Catalog, CatalogError, Result, keys, name, random, ulid};

/// The most waiters that can be seen in one namespace. Any others wait unseen.
pub const WAITERS_SEEN_MAX: usize = 128;

/// How many resources a waiter names besides the one of its call.
const ALSO_MAX: usize = 8;

/// The longest host name, in bytes.
const HOST_MAX: usize = 255;

/// How often a free slot is searched for, when other waiters take the one that was found.
const ATTEMPTS_MAX: usize = 8;

/// Demanded amounts of the limits of a resource, by their names.
type WaitedAmounts = BTreeMap<String, u64>;

/// The record of a waiter: what it waits for, since when and in which process.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Registry, WaiterRecord};
/// use tollgate_core::Span;
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let now = catalog.backend().clock().now();
/// let waiter = WaiterRecord::new("user-1", "gpt-4", now, std::process::id(), "host-a");
/// let seen = catalog.show_waiter(&waiter, Span::from_secs(10)).wait()?.expect("a free slot");
/// assert_eq!(catalog.waiters().wait()?, [waiter]);
/// catalog.withdraw_waiter(&seen).wait()?;
/// assert!(catalog.waiters().wait()?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaiterRecord {
    /// The entity that waits for admission.
    pub entity: String,
    /// The resource of its call.
    pub resource: String,
    /// The amounts of each limit that it waits for.
    pub demand: WaitedAmounts,
    /// The amounts of other resources in the same call.
    pub also: BTreeMap<String, WaitedAmounts>,
    /// When the wait began.
    pub since: Tick,
    /// The process that waits.
    pub pid: u32,
    /// The host of the process.
    pub host: String,
}

/// A waiter that other processes see, until it is [withdrawn](Catalog::withdraw_waiter) or not
/// renewed in time.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Registry, WaiterRecord};
/// use tollgate_core::{Span, Tick};
/// use tollgate_store::{ManualClock, Memory};
///
/// let manual = ManualClock::at(Tick::from_secs(1_000_000));
/// let store = Memory::builder().clock(manual.clock()).build();
/// let catalog = Registry::new(Arc::new(store)).open_or_register("default").wait()?;
/// let waiter = WaiterRecord::new("user-1", "gpt-4", manual.now(), std::process::id(), "host-a");
/// let seen = catalog.show_waiter(&waiter, Span::from_secs(10)).wait()?.expect("a free slot");
/// manual.advance(Span::from_secs(5));
/// assert!(catalog.renew_waiter(&seen, Span::from_secs(10)).wait()?);
/// manual.advance(Span::from_secs(11));
/// assert!(!catalog.renew_waiter(&seen, Span::from_secs(10)).wait()?, "it was not renewed in time");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenWaiter {
    key: ItemKey,
    id: String,
}

impl WaiterRecord {
    /// Returns the record of a waiter without amounts, in a process of a host since an instant.
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
    /// Shows a waiter to other processes, for `seen_for`. Returns `None` if there is no free slot.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the waiter may be seen for a while.
    ///
    /// # Errors
    ///
    /// An invalid name, too many amounts, a deleted namespace, or an error of the store.
    pub fn show_waiter<'a>(
        &'a self,
        waiter: &'a WaiterRecord,
        seen_for: Span,
    ) -> Reply<'a, Result<Option<SeenWaiter>>> {
        Reply::later(async move {
            waiter.check()?;
            let id = ulid::text(self.shared().ulids.next(self.now())?);
            for _ in 0..ATTEMPTS_MAX {
                let Some(key) = self.free_slot().await? else { return Ok(None) };
                let mut item = waiter.item(key.clone()).with("id", id.as_str());
                item.expires = Some(self.now() + seen_for);
                let put = Write::Put(item, vec![Test::Absent]);
                if self.write_without_notification(put).await? == Commit::Done {
                    return Ok(Some(SeenWaiter { key, id }));
                }
            }
            Ok(None)
        })
    }

    /// Renews the record of a waiter for `seen_for` from now on. Returns `false` if the record has
    /// expired, so that the waiter must be shown again.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the record may be renewed or not.
    ///
    /// # Errors
    ///
    /// A deleted namespace, or an error of the store.
    pub fn renew_waiter<'a>(&'a self, seen: &'a SeenWaiter, seen_for: Span) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            let until = Change::Expire(Some(self.now() + seen_for));
            let renewal = Write::Change(seen.key.clone(), vec![until], vec![seen.is_current()]);
            Ok(self.write_without_notification(renewal).await? == Commit::Done)
        })
    }

    /// Removes the record of a waiter that waits no more.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the waiter may be seen until its record expires.
    ///
    /// # Errors
    ///
    /// A deleted namespace, or an error of the store.
    pub fn withdraw_waiter<'a>(&'a self, seen: &'a SeenWaiter) -> Reply<'a, Result<()>> {
        Reply::later(async move {
            // If the test fails, the record had expired.
            let removal = Write::Delete(seen.key.clone(), vec![seen.is_current()]);
            self.write_without_notification(removal).await.map(drop)
        })
    }

    /// Returns the waiters of all processes that have records, the longest waiting first.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An error of the store.
    pub fn waiters(&self) -> Reply<'_, Result<Vec<WaiterRecord>>> {
        Reply::later(async move {
            let items = self.waiter_items().await?;
            // A record of another version that cannot be decoded is no reason to hide the other
            // waiters.
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

    /// Returns a free slot: not the first one, which all waiters that come at the same time would
    /// choose.
    async fn free_slot(&self) -> Result<Option<ItemKey>> {
        let taken: BTreeSet<String> =
            self.waiter_items().await?.into_iter().map(|item| item.key.sort).collect();
        let start = usize::from(u16::from_be_bytes(random::bytes()?));
        let slots = (0..WAITERS_SEEN_MAX).map(|step| (start + step) % WAITERS_SEEN_MAX);
        let mut slots = slots.map(|slot| keys::waiting(self.namespace_id(), slot));
        Ok(slots.find(|key| !taken.contains(&key.sort)))
    }

    /// Makes one write if the namespace is active. Unlike a change it notifies no waiters: the
    /// record of one waiter does not concern the others.
    pub(crate) async fn write_without_notification(&self, write: Write) -> Result<Commit> {
        let mut tx = self.transaction();
        tx.push(write);
        let written = self.backend().write(tx.writes()).await;
        tx.outcome(written)
    }
}

impl SeenWaiter {
    /// Returns the test that the record has not expired, and that no other waiter has taken its
    /// slot since.
    fn is_current(&self) -> Test {
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

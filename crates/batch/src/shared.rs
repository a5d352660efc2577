//! Shared cooldowns: processes and hosts cool down together through a store.
//!
//! One record for each scope holds the time before which no call starts. A process that meets a 429
//! writes the record on condition that it has not changed since the process read it, and every
//! other process that polls the record sees it. No process holds a lock, so none can die holding
//! one. Times are those of the hosts' clocks: hosts whose clocks are a second apart cool down a
//! second apart.

use std::sync::Arc;
use std::time::Duration;

use tollgate::store::records::{Item, ItemKey, Records, RecordsError, Test, Write};
use tollgate::{Clock, Span, Tick};

/// The default interval at which a batch polls the shared cooldowns.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often a conditional write is attempted when other processes write first.
const ATTEMPTS_MAX: u32 = 16;

/// How long a record is stored after the end of its cooldown.
const RETENTION: Span = Span::from_secs(3_600);

const UNTIL: &str = "until";
const GENERATION: &str = "generation";
const REVISION: &str = "revision";

/// The cooldowns in a store, shared by all batches that use the same records and namespace.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::Memory;
/// use tollgate_batch::{Batch, SharedCooldown};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let shared = SharedCooldown::new(Arc::new(Memory::builder().build()), "prod");
/// let batch = Batch::new().share(shared.clone());
/// let cooling = shared.cool_down("openai", Duration::from_secs(30)).await.unwrap();
/// assert_eq!(cooling.generation, 1);
/// let left = shared.remaining(&["openai".into(), "other".into()]).await.unwrap();
/// assert!(left[0].is_some() && left[1].is_none());
/// # drop(batch);
/// # });
/// ```
#[derive(Clone)]
pub struct SharedCooldown {
    records: Arc<dyn Records>,
    partition: String,
    clock: Clock,
    interval: Duration,
}

/// A cooldown as the store has it; [`SharedCooldown::cool_down`] returns it.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::Memory;
/// use tollgate_batch::SharedCooldown;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let shared = SharedCooldown::new(Arc::new(Memory::builder().build()), "prod");
/// let long = shared.cool_down("openai", Duration::from_secs(60)).await?;
/// // A shorter one joins the cooldown in force.
/// let joined = shared.cool_down("openai", Duration::from_secs(1)).await?;
/// assert_eq!((joined.generation, joined.until), (long.generation, long.until));
/// # Ok::<(), tollgate::store::records::RecordsError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooling {
    /// The number of the cooldown, of all that were shared in its scope.
    pub generation: u64,
    /// When the cooldown ends.
    pub until: Tick,
}

/// A cooldown in the store, with the revision that a conditional write compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoredCooldown {
    cooling: Cooling,
    revision: i64,
}

impl SharedCooldown {
    /// Returns the cooldowns in these records, below a namespace.
    pub fn new(records: Arc<dyn Records>, namespace: &str) -> SharedCooldown {
        let partition = format!("{namespace}/cooldown");
        SharedCooldown { records, partition, clock: Clock::system(), interval: POLL_INTERVAL }
    }

    /// Sets the clock. All processes that share cooldowns must use clocks of the same time.
    #[must_use]
    pub fn clock(self, clock: Clock) -> SharedCooldown {
        SharedCooldown { clock, ..self }
    }

    /// Sets the interval at which a batch polls the shared cooldowns.
    #[must_use]
    pub fn poll_interval(self, interval: Duration) -> SharedCooldown {
        SharedCooldown { interval: interval.max(Duration::from_millis(1)), ..self }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    fn key(&self, scope: &str) -> ItemKey {
        ItemKey::new(self.partition.clone(), scope)
    }

    /// Begins a cooldown: no process that shares the scope starts a call for `left`. Returns the
    /// cooldown in force, which may last longer.
    ///
    /// # Cancel safety
    ///
    /// A call that is dropped may have begun the cooldown or not.
    ///
    /// # Errors
    ///
    /// [`RecordsError`] if the store does not answer, or if other processes wrote first on every
    /// attempt.
    pub async fn cool_down(&self, scope: &str, left: Duration) -> Result<Cooling, RecordsError> {
        let keys = [self.key(scope)];
        let mut failed = RecordsError::Failed(0);
        for _ in 0..ATTEMPTS_MAX {
            let stored = read(self.records.get_many(&keys).await?.pop().flatten());
            let now = self.clock.now();
            let (cooling, is_new) =
                merged(stored.map(|stored| stored.cooling), now, now + Span::covering(left));
            if !is_new {
                return Ok(cooling);
            }
            let write = written(keys[0].clone(), stored, cooling);
            match self.records.write(&[write]).await {
                Ok(()) => return Ok(cooling),
                Err(RecordsError::Failed(test)) => failed = RecordsError::Failed(test),
                Err(other) => return Err(other),
            }
        }
        Err(failed)
    }

    /// Returns how long each of these scopes still cools down, in their order.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing: it only reads.
    ///
    /// # Errors
    ///
    /// [`RecordsError`] if the store does not answer.
    pub async fn remaining(&self, scopes: &[Arc<str>]) -> Result<Vec<Option<Duration>>, RecordsError> {
        let keys: Vec<ItemKey> = scopes.iter().map(|scope| self.key(scope)).collect();
        let items = self.records.get_many(&keys).await?;
        let now = self.clock.now();
        let left = |item| {
            let until = read(item)?.cooling.until;
            (until > now).then(|| until.since(now).to_duration())
        };
        Ok(items.into_iter().map(left).collect())
    }
}

impl std::fmt::Debug for SharedCooldown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedCooldown").field("partition", &self.partition).finish_non_exhaustive()
    }
}

/// Returns the cooldown after a process has asked for one until `until`, and true if it differs
/// from the one in the store.
fn merged(stored: Option<Cooling>, now: Tick, until: Tick) -> (Cooling, bool) {
    match stored {
        Some(stored) if stored.until > now => {
            let longer = stored.until.max(until);
            (Cooling { until: longer, ..stored }, longer > stored.until)
        }
        _ => {
            let generation = stored.map_or(0, |stored| stored.generation) + 1;
            (Cooling { generation, until }, until > now)
        }
    }
}

fn read(item: Option<Item>) -> Option<StoredCooldown> {
    let item = item?;
    let number = |field| item.int(field).and_then(|number| u64::try_from(number).ok());
    let cooling = Cooling { generation: number(GENERATION)?, until: Tick::from_micros(number(UNTIL)?) };
    Some(StoredCooldown { cooling, revision: item.int(REVISION)? })
}

/// Returns the write of a cooldown on condition that no process has written since `stored` was
/// read.
fn written(key: ItemKey, stored: Option<StoredCooldown>, cooling: Cooling) -> Write {
    let revision = stored.map_or(0, |stored| stored.revision).wrapping_add(1);
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut item = Item::new(key)
        .with(GENERATION, number(cooling.generation))
        .with(UNTIL, number(cooling.until.as_micros()))
        .with(REVISION, revision);
    item.expires = Some(cooling.until + RETENTION);
    let test = match stored {
        Some(stored) => Test::Is(REVISION.into(), stored.revision.into()),
        None => Test::Absent,
    };
    Write::Put(item, vec![test])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_of_two_cooldowns_holds_and_one_that_is_over_counts_on() {
        let at = Tick::from_secs;
        let stored = Cooling { generation: 3, until: at(30) };
        assert_eq!(merged(Some(stored), at(10), at(20)), (stored, false));
        assert_eq!(merged(Some(stored), at(10), at(40)), (Cooling { until: at(40), ..stored }, true));
        assert_eq!(merged(Some(stored), at(30), at(40)), (Cooling { generation: 4, until: at(40) }, true));
        assert_eq!(merged(None, at(30), at(40)), (Cooling { generation: 1, until: at(40) }, true));
    }
}

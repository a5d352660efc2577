//! A cooldown that processes and hosts share through a store.
//!
//! One record for each scope says until when no call starts. A process that meets a 429 writes it, on condition that it
//! is what it read; all processes that look see it. No process holds anything, so none can die holding it. Times are
//! those of the hosts' clocks: hosts that are a second apart cool down a second apart.

use std::sync::Arc;
use std::time::Duration;

use tollgate::store::records::{Item, ItemKey, Records, RecordsError, Test, Write};
use tollgate::{Clock, Span, Tick};

/// How often to look for the cooldowns of others, unless it is set.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How often a write is tried that others come before.
const ATTEMPTS_MAX: u32 = 16;

/// How long a record stays after its cooldown.
const KEPT_FOR: Span = Span::from_secs(3_600);

const UNTIL: &str = "until";
const GENERATION: &str = "generation";
const REVISION: &str = "revision";

/// Cooldowns in a store.
#[derive(Clone)]
pub struct SharedCooldown {
    records: Arc<dyn Records>,
    partition: String,
    clock: Clock,
    every: Duration,
}

/// A cooldown as the store has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooling {
    /// Which cooldown it is, of all that were shared.
    pub generation: u64,
    /// Until when.
    pub until: Tick,
}

/// What is there, and which version of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct There {
    cooling: Cooling,
    revision: i64,
}

impl SharedCooldown {
    /// Cooldowns in these records, below a namespace.
    pub fn new(records: Arc<dyn Records>, namespace: &str) -> SharedCooldown {
        let partition = format!("{namespace}/cooldown");
        SharedCooldown { records, partition, clock: Clock::system(), every: LOOK_EVERY }
    }

    /// The same by another clock. All who share must go by the same time.
    #[must_use]
    pub fn clock(self, clock: Clock) -> SharedCooldown {
        SharedCooldown { clock, ..self }
    }

    /// The same, looking this often.
    #[must_use]
    pub fn look_every(self, every: Duration) -> SharedCooldown {
        SharedCooldown { every: every.max(Duration::from_millis(1)), ..self }
    }

    pub(crate) fn every(&self) -> Duration {
        self.every
    }

    fn key(&self, scope: &str) -> ItemKey {
        ItemKey::new(self.partition.clone(), scope)
    }

    /// Begins a cooldown: no process that shares the scope starts a call for `left`. Returns the cooldown that is on
    /// then, which may last longer.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way it has happened or not.
    ///
    /// # Errors
    ///
    /// [`RecordsError`] if the store does not answer, or others were faster all the time.
    pub async fn cool_down(&self, scope: &str, left: Duration) -> Result<Cooling, RecordsError> {
        let keys = [self.key(scope)];
        let mut failed = RecordsError::Failed(0);
        for _ in 0..ATTEMPTS_MAX {
            let there = read(self.records.get_many(&keys).await?.pop().flatten());
            let now = self.clock.now();
            let (cooling, is_new) = merged(there.map(|there| there.cooling), now, now + Span::covering(left));
            if !is_new {
                return Ok(cooling);
            }
            let write = written(keys[0].clone(), there, cooling);
            match self.records.write(&[write]).await {
                Ok(()) => return Ok(cooling),
                Err(RecordsError::Failed(test)) => failed = RecordsError::Failed(test),
                Err(other) => return Err(other),
            }
        }
        Err(failed)
    }

    /// How long each of these scopes still cools down, in their order.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Errors
    ///
    /// [`RecordsError`] if the store does not answer.
    pub async fn look(&self, scopes: &[Arc<str>]) -> Result<Vec<Option<Duration>>, RecordsError> {
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

/// Returns the cooldown after a process asked for one until `until`, and whether that is another one than there was.
fn merged(there: Option<Cooling>, now: Tick, until: Tick) -> (Cooling, bool) {
    match there {
        Some(there) if there.until > now => {
            let longer = there.until.max(until);
            (Cooling { until: longer, ..there }, longer > there.until)
        }
        _ => {
            let generation = there.map_or(0, |there| there.generation) + 1;
            (Cooling { generation, until }, until > now)
        }
    }
}

fn read(item: Option<Item>) -> Option<There> {
    let item = item?;
    let number = |field| item.int(field).and_then(|number| u64::try_from(number).ok());
    let cooling = Cooling { generation: number(GENERATION)?, until: Tick::from_micros(number(UNTIL)?) };
    Some(There { cooling, revision: item.int(REVISION)? })
}

/// Returns the write of a cooldown on condition that no process has written since.
fn written(key: ItemKey, there: Option<There>, cooling: Cooling) -> Write {
    let revision = there.map_or(0, |there| there.revision).wrapping_add(1);
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut item = Item::new(key)
        .with(GENERATION, number(cooling.generation))
        .with(UNTIL, number(cooling.until.as_micros()))
        .with(REVISION, revision);
    item.expires = Some(cooling.until + KEPT_FOR);
    let test = match there {
        Some(there) => Test::Is(REVISION.into(), there.revision.into()),
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
        let there = Cooling { generation: 3, until: at(30) };
        assert_eq!(merged(Some(there), at(10), at(20)), (there, false));
        assert_eq!(merged(Some(there), at(10), at(40)), (Cooling { until: at(40), ..there }, true));
        assert_eq!(merged(Some(there), at(30), at(40)), (Cooling { generation: 4, until: at(40) }, true));
        assert_eq!(merged(None, at(30), at(40)), (Cooling { generation: 1, until: at(40) }, true));
    }
}

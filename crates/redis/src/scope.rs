//! Listing, forgetting and sweeping the buckets of a namespace.

use tollgate_core::{Limits, Tick};
use tollgate_store::records::{Cursor, Item, ItemKey, PAGE_MAX, Page, RecordsError};
use tollgate_store::usage::{Sums, bucket_of_usage};
use tollgate_store::workers::{CallTimer, unique_id};
use tollgate_store::{Activity, BucketRef, BucketStatus, FORGET_MAX, Freed, Key, Scope, StoreError};

use crate::ServerError;
use crate::apply::{BRIEFLY, ScriptReply};
use crate::codec::RedisRow;
use crate::commit::Changes;
use crate::draft::{CommitPlan, ValueSnapshot};
use crate::inner::{RedisInner, without_tests};
use crate::records::{SetRange, item_of};
use crate::service::{TimedError, bulks};

/// How many buckets are listed at once to read or write down their usage.
const LISTED: usize = 500;

/// How often the usage of a bucket is worked out anew because other clients were quicker.
const CONFLICTS_MAX: usize = 100;

/// The hours whose usage is written down: all, or only those that are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hours {
    All,
    Over,
}

impl RedisInner {
    fn range(&self, namespace: &str, scope: Scope<'_>, after: Option<Key>, limit: usize) -> SetRange {
        let layout = &self.service.layout;
        let (list, prefix) = match scope {
            Scope::Entity(entity) => (layout.all_buckets(namespace), Key::new(&[entity])),
            Scope::Resource(resource) => {
                (layout.resource_buckets(namespace, resource), Key::new::<&str>(&[]))
            }
            Scope::Bucket(entity, resource) => (layout.all_buckets(namespace), Key::new(&[entity, resource])),
            Scope::All => (layout.all_buckets(namespace), Key::new::<&str>(&[])),
        };
        SetRange {
            list,
            prefix: prefix.as_bytes().to_vec(),
            after: after.map(|key| key.as_bytes().to_vec()),
            limit,
            newest_first: false,
            values: layout.buckets(namespace),
            is_index: false,
        }
    }

    pub(crate) async fn buckets(
        &self,
        namespace: &str,
        scope: Scope<'_>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<BucketStatus>, StoreError> {
        let limit = limit.clamp(1, PAGE_MAX);
        let mut after = after.as_ref().map(Cursor::parts::<2>).transpose()?.map(|parts| Key::new(&parts));
        let mut items: Vec<BucketStatus> = Vec::new();
        loop {
            let range = self.range(namespace, scope, after.clone(), limit + 1);
            let (seen, pairs) = self.list(&range).await?;
            let is_last = pairs.len() <= limit;
            for (member, bytes) in pairs {
                let key = Key::from_bytes(&member);
                after = Some(key.clone());
                // The key has expired. The sweep removes it from the list: listing writes nothing.
                if bytes.is_empty() {
                    continue;
                }
                // Keys that are no pair are not of an entity, and are skipped.
                let Some((entity, resource)) = key.pair().filter(|(one, two)| scope.has(one, two)) else {
                    continue;
                };
                let row =
                    RedisRow::from_bytes(&bytes, None).map_err(|why| why.into_error(Default::default()))?;
                let limits = row.kept.bucket.peek(&row.kept.limits, seen.now);
                items.push(BucketStatus { entity: entity.into(), resource: resource.into(), limits });
            }
            if is_last || items.len() > limit {
                break;
            }
        }
        let is_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| is_more).map(|last| Cursor::of(&[&last.entity, &last.resource]));
        Ok(Page { items, next })
    }

    /// Returns the activity of some buckets of a scope after a key: what is in use, and what was used that is in no record
    /// yet; and the last key that was read if there may be more.
    ///
    /// Reads only, except that this process gives back what it holds ahead, and counts what it used of that.
    pub(crate) async fn activity(
        &self,
        namespace: &str,
        scope: Scope<'_>,
        after: Option<Key>,
    ) -> Result<(Vec<Activity>, Option<Key>), StoreError> {
        if after.is_none() {
            self.prefetcher.return_scope(namespace, scope).await;
        }
        let (seen, pairs) = self.list(&self.range(namespace, scope, after, LISTED)).await?;
        let last = pairs.last().map(|(member, _)| Key::from_bytes(member)).filter(|_| pairs.len() == LISTED);
        let mut activities = Vec::new();
        for (member, bytes) in pairs.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            let key = Key::from_bytes(member);
            let Some((entity, resource)) = key.pair().filter(|(one, two)| scope.has(one, two)) else {
                continue;
            };
            let row = RedisRow::from_bytes(bytes, None).map_err(|why| why.into_error(Default::default()))?;
            activities.push(Activity {
                entity: entity.into(),
                resource: resource.into(),
                hour: row.usage.map(|sums| (sums.starts(), sums.events().into())),
                others: Vec::new(),
                in_use: Activity::in_use(&row.kept.bucket.peek(&row.kept.limits, seen.now)),
            });
        }
        Ok((activities, last))
    }

    /// Returns the records of usage at these keys, each with what its bucket has counted since.
    pub(crate) async fn usage_at(&self, keys: &[ItemKey]) -> Result<Vec<Option<Item>>, RecordsError> {
        let layout = &self.service.layout;
        // A record of something else has no bucket to add to it, and is read twice instead.
        let bucket = |key: &ItemKey| match bucket_of_usage(key) {
            Some((namespace, entity, resource)) => layout.bucket(namespace, &Key::new(&[entity, resource])),
            None => layout.record(key),
        };
        let names: Vec<Vec<u8>> =
            keys.iter().map(|key| layout.record(key)).chain(keys.iter().map(bucket)).collect();
        let ScriptReply::Seen((_, seen)) = self.read_values(CallTimer::start(), unique_id(), &names).await?
        else {
            return Err(ServerError::Garbage("nothing was seen".into())
                .into_error(Default::default())
                .into());
        };
        let (records, buckets) = seen.values.split_at(keys.len().min(seen.values.len()));
        let mut items = Vec::new();
        for ((key, record), bucket) in keys.iter().zip(records).zip(buckets) {
            let there = match record.is_empty() {
                true => None,
                false => Some(item_of(key, record)?).filter(|item| !item.has_expired(seen.now)),
            };
            let is_counted = bucket_of_usage(key).is_some() && !bucket.is_empty();
            let row = is_counted.then(|| RedisRow::from_bytes(bucket, None)).transpose();
            let row = row.map_err(|why| why.into_error(Default::default()))?;
            items.push(match row.and_then(|row| row.usage) {
                Some(sums) => sums.added_to(key, there, &self.usage_retention),
                None => there,
            });
        }
        Ok(items)
    }

    /// Removes buckets that are gone from the lists, unless they were made again.
    async fn unlist(&self, namespace: &str, gone: &[Key]) -> Result<(), StoreError> {
        for keys in gone.chunks(100) {
            let (mut changes, mut view) = (Changes::default(), ValueSnapshot::default());
            for key in keys {
                let name = self.service.layout.bucket(namespace, key);
                changes.check(&name);
                view.assume_absent(name);
                changes.drop_bucket(&self.service.layout, namespace, key);
            }
            self.commit(CallTimer::start(), (unique_id(), BRIEFLY), &view, &changes, b"-").await?;
        }
        Ok(())
    }

    pub(crate) async fn forget(&self, namespace: &str, scope: Scope<'_>) -> Result<usize, StoreError> {
        let mut forgotten = 0;
        loop {
            let range = self.range(namespace, scope, None, FORGET_MAX);
            let (_, pairs) = self.list(&range).await?;
            let is_last = pairs.len() < FORGET_MAX;
            let in_scope = |key: &Key| match (scope, key.pair()) {
                (Scope::All, _) => true,
                (_, Some((entity, resource))) => scope.has(entity, resource),
                (_, None) => false,
            };
            let found: Vec<(Key, bool)> = pairs
                .into_iter()
                .map(|(member, bytes)| (Key::from_bytes(&member), !bytes.is_empty()))
                .filter(|(key, _)| in_scope(key))
                .collect();
            for some in found.chunks(100) {
                let mut changes = Changes::default();
                some.iter().for_each(|(key, _)| changes.drop_bucket(&self.service.layout, namespace, key));
                self.commit(
                    CallTimer::start(),
                    (unique_id(), BRIEFLY),
                    &ValueSnapshot::default(),
                    &changes,
                    b"-",
                )
                .await?;
            }
            for (key, is_there) in &found {
                forgotten += usize::from(*is_there);
                // Waiters for a bucket that is gone have to ask again.
                self.wait_queues.notify(&Freed::all(namespace, key));
            }
            // Buckets that were gone and only listed do not count, so there may be more.
            if forgotten > 0 || is_last || found.is_empty() {
                self.prefetcher.drop_scope(namespace, scope).await;
                return Ok(forgotten);
            }
        }
    }

    pub(crate) async fn close(&self, namespace: &str) -> Result<(), StoreError> {
        let mut close = redis::cmd("SET");
        close.arg(self.service.layout.closed(namespace)).arg("1");
        self.service
            .with_retries(CallTimer::start(), &close, None)
            .await
            .map(drop)
            .map_err(TimedError::into_error)
    }

    pub(crate) async fn write_usage(&self, namespace: &str, scope: Scope<'_>) -> Result<(), StoreError> {
        self.prefetcher.return_scope(namespace, scope).await;
        let mut after = None;
        loop {
            let (_, pairs) = self.list(&self.range(namespace, scope, after, LISTED)).await?;
            let is_last = pairs.len() < LISTED;
            after = pairs.last().map(|(member, _)| Key::from_bytes(member));
            for (member, bytes) in &pairs {
                let key = Key::from_bytes(member);
                let is_wanted = key.pair().is_some_and(|(entity, resource)| scope.has(entity, resource));
                if is_wanted && !bytes.is_empty() && usage_in(bytes).is_some() {
                    self.write_usage_of(namespace, &key, Hours::All).await?;
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Writes down what was used of one bucket.
    pub(crate) async fn write_usage_of(
        &self,
        namespace: &str,
        key: &Key,
        hours: Hours,
    ) -> Result<(), StoreError> {
        let (timer, id) = (CallTimer::start(), unique_id());
        // The limits of the bucket are in its stored value.
        let limits = Limits::new::<[tollgate_core::Limit; 0]>([]).expect("no limits are valid limits");
        let place = BucketRef { namespace, key, limits: &limits };
        let mut looked = self.read_values(timer, id, &[self.service.layout.bucket(namespace, key)]).await?;
        for _ in 0..CONFLICTS_MAX {
            let view = match looked {
                ScriptReply::Done(_) => return Ok(()),
                ScriptReply::Seen((keys, seen)) => ValueSnapshot::of(&keys, seen),
            };
            let plan = self.draft(&view).write_usage(&place, hours == Hours::All).map_err(without_tests)?;
            looked = match plan {
                None | Some(CommitPlan::Answer(_) | CommitPlan::Guess) => return Ok(()),
                Some(CommitPlan::Look(more)) => self.read_again(timer, id, &view, more).await?,
                Some(CommitPlan::Commit(_, changes)) => {
                    self.commit(timer, (id, BRIEFLY), &view, &changes, b"-").await?
                }
            };
        }
        Err(ServerError::Conflict(CONFLICTS_MAX).into_error(timer.elapsed()))
    }

    /// Sweeps a few random buckets of a namespace: removes those that are gone from the lists, and writes down what was
    /// used in an hour that was over at `now`, so that these keys may expire too.
    pub(crate) async fn sweep_buckets(
        &self,
        namespace: &str,
        most: usize,
        now: Tick,
    ) -> Result<(), StoreError> {
        let mut some = redis::cmd("ZRANDMEMBER");
        some.arg(self.service.layout.all_buckets(namespace)).arg(most);
        let members = bulks(
            self.service
                .with_retries(CallTimer::start(), &some, None)
                .await
                .map_err(TimedError::into_error)?,
        )?;
        let keys: Vec<Key> = members.iter().map(|member| Key::from_bytes(member)).collect();
        let names: Vec<Vec<u8>> = keys.iter().map(|key| self.service.layout.bucket(namespace, key)).collect();
        let ScriptReply::Seen((_, seen)) = self.read_values(CallTimer::start(), unique_id(), &names).await?
        else {
            return Ok(());
        };
        let mut gone = Vec::new();
        for (key, bytes) in keys.into_iter().zip(&seen.values) {
            if bytes.is_empty() {
                gone.push(key);
            } else if usage_in(bytes).is_some_and(|sums| !sums.is_of_hour(now)) {
                self.write_usage_of(namespace, &key, Hours::Over).await?;
            }
        }
        self.unlist(namespace, &gone).await
    }
}

/// Returns the usage that is counted in a bucket. A value that cannot be read is skipped: a call on it gets the error.
fn usage_in(bytes: &[u8]) -> Option<Sums> {
    RedisRow::from_bytes(bytes, None).ok()?.usage
}

//! `Records` and `Backend` for a store in shared memory.

use std::sync::atomic::Ordering;

use tollgate_store::records::{
    Cursor, Index, Item, ItemKey, Page, Query, Records, RecordsError, Write, check_keys,
};
use tollgate_store::{
    Activity, Backend, BucketStatus, Freed, Key, Reply, Scope, Store, StoreError, Transaction, TxnOutcome,
    WaitQueues,
};

use crate::apply;
use crate::error::without_tests;
use crate::layout::REVISION;
use crate::scope;
use crate::store::ShmStore;

impl Records for ShmStore {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        if let Err(why) = check_keys(keys) {
            return Reply::ready(Err(why.into()));
        }
        Reply::ready(self.work(|tx, _| {
            let now = self.clock().now();
            keys.iter().map(|key| tx.record(key, now)).collect()
        }))
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        let call = Transaction { id: None, steps: &[], metered: false };
        Reply::ready(self.apply_now(&call, writes).map(drop))
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        Reply::ready(self.work(|tx, _| tx.query(query, self.clock().now())))
    }

    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        Reply::ready(self.work(|tx, _| tx.find_records(index, query, self.clock().now())))
    }

    fn revision(&self) -> Option<u64> {
        Some(self.0.arena.word(REVISION).load(Ordering::Acquire))
    }
}

impl Backend for ShmStore {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        Reply::ready(self.apply_now(call, writes))
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        let page = self.work(|tx, known| {
            scope::buckets(tx, known, (namespace, scope), after.as_ref(), limit, self.clock().now())
        });
        Reply::ready(page.map_err(without_tests))
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        let (whose, now) = ((namespace, scope), self.clock().now());
        let both = self.work(|tx, known| {
            scope::mark_forgotten(tx, whose, now)?;
            scope::forget(tx, known, whose)
        });
        // If there is no room for the mark, the forgotten buckets make some. A store that is full even so does without
        // it.
        let forgotten = both.or_else(|_| {
            let forgotten = self.work(|tx, known| scope::forget(tx, known, whose));
            drop(self.work(|tx, _| scope::mark_forgotten(tx, whose, now)));
            forgotten
        });
        // A waiter for a forgotten bucket has to be notified.
        forgotten.iter().flatten().for_each(|key| self.wait_queues().notify(&Freed::all(namespace, key)));
        Reply::ready(forgotten.map(|keys| keys.len()).map_err(without_tests))
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        Reply::ready(self.work(|tx, _| apply::close(tx, namespace)).map_err(without_tests))
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        let page = || -> Result<_, StoreError> {
            let after = after.as_ref().map(Key::of_cursor).transpose()?;
            let found = self.work(|tx, known| {
                scope::activity(tx, known, (namespace, scope), after.as_ref(), self.clock().now())
            });
            let (items, last) = found.map_err(without_tests)?;
            Ok(Page { items, next: last.map(|key| key.cursor()) })
        };
        Reply::ready(page())
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        if let Err(why) = check_keys(keys) {
            return Reply::ready(Err(why.into()));
        }
        Reply::ready(self.work(|tx, known| {
            let now = self.clock().now();
            keys.iter().map(|key| scope::usage_at(tx, known, key, now)).collect()
        }))
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        let mut done = None;
        loop {
            let written = self.work(|tx, known| {
                scope::write_usage(tx, known, (namespace, scope), done.as_ref(), self.clock().now())
            });
            match written {
                Ok(Some(last)) => done = Some(last),
                Ok(None) => return Reply::ready(Ok(())),
                Err(why) => return Reply::ready(Err(without_tests(why))),
            }
        }
    }

    fn wait_queues(&self) -> &WaitQueues {
        self.wait_queues()
    }
}

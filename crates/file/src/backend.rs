//! `Records` and `Backend` for a store on a file.

use tollgate_store::records::{
    Cursor, Index, Item, ItemKey, Page, Query, Records, RecordsError, Write, check_keys,
};
use tollgate_store::{
    Activity, Backend, BucketStatus, Key, OwnedTransaction, Reply, Scope, StoreError, Transaction,
    TxnOutcome, WaitQueues,
};

use crate::error::without_tests;
use crate::records;
use crate::rows;
use crate::scope::{self, OwnedScope};
use crate::store::FileStore;
use crate::txn::WriteTxn;

impl Records for FileStore {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        if let Err(why) = check_keys(keys) {
            return Reply::ready(Err(why.into()));
        }
        let keys = keys.to_vec();
        self.read(move |view| {
            let now = view.clock.now();
            keys.iter().map(|key| records::get(view.connection, key, now)).collect()
        })
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        let reply = self.apply_owned(OwnedTransaction::empty(), writes.to_vec());
        Reply::later(async move { reply.await.map(drop) })
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        let query = query.clone();
        self.read(move |view| records::query(view.connection, &query, view.clock.now()))
    }

    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        let query = query.clone();
        self.read(move |view| records::find(view.connection, index, &query, view.clock.now()))
    }
}

impl Backend for FileStore {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        self.apply_owned(OwnedTransaction::new(call), writes.to_vec())
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        let (namespace, scope) = (namespace.to_owned(), OwnedScope::new(scope));
        let reply = self.read(move |view| scope::buckets(view, &namespace, &scope, after.as_ref(), limit));
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        let (namespace, scope) = (namespace.to_owned(), OwnedScope::new(scope));
        let reply = self.write(move |txn| scope::forget(txn, &namespace, &scope));
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        let namespace = namespace.to_owned();
        let reply = self.write(move |txn| Ok(rows::close(txn.connection, &namespace)?));
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        let after = match after.as_ref().map(Key::of_cursor).transpose() {
            Ok(after) => after,
            Err(why) => return Reply::ready(Err(why)),
        };
        let (namespace, scope) = (namespace.to_owned(), OwnedScope::new(scope));
        let reply = self.read(move |view| scope::activity(view, &namespace, &scope, after.as_ref()));
        Reply::later(async move {
            let (items, last) = reply.await.map_err(without_tests)?;
            Ok(Page { items, next: last.map(|key| key.cursor()) })
        })
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        if let Err(why) = check_keys(keys) {
            return Reply::ready(Err(why.into()));
        }
        let keys = keys.to_vec();
        self.read(move |view| keys.iter().map(|key| scope::usage_at(view, key)).collect())
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        Reply::later(async move {
            let mut after = None;
            loop {
                let (namespace, scope) = (namespace.to_owned(), OwnedScope::new(scope));
                let write =
                    move |txn: &mut WriteTxn<'_>| scope::write_usage(txn, &namespace, &scope, after.as_ref());
                after = self.write(write).await.map_err(without_tests)?;
                if after.is_none() {
                    return Ok(());
                }
            }
        })
    }

    fn wait_queues(&self) -> &WaitQueues {
        self.wait_queues()
    }
}

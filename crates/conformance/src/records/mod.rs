//! The suite for [`Records`]: single records, pages, indexes, threads, and random traces compared with a map.

mod laws;
mod model;
mod pages;
mod threads;
mod trace;

use tollgate_store::records::{Index, Item, ItemKey, Page, Query, Records, RecordsError, Write};
use tollgate_store::{Clock, StoreError};

use crate::fixture;
use crate::random::each_seed;

/// Runs every law and `traces` random traces on stores made by `open`, which must go by the clock it is given. `TOLLGATE_SEED`
/// replays a trace that failed.
///
/// # Panics
///
/// On the first difference, with the seed of the trace and the step that differs.
pub fn run<R: Records>(traces: u64, open: impl Fn(Clock) -> R) {
    laws::run(&open);
    pages::run(&open);
    threads::run(&open);
    each_seed(traces, |seed| trace::run(seed, &open));
}

fn key(partition: &str, sort: &str) -> ItemKey {
    ItemKey::new(partition, sort)
}

fn put(item: Item) -> Write {
    Write::Put(item, Vec::new())
}

fn write<R: Records>(store: &R, writes: &[Write]) {
    store.write(writes).wait().expect("a write that tests nothing is made");
}

fn get<R: Records>(store: &R, key: &ItemKey) -> Option<Item> {
    let found = store.get_many(std::slice::from_ref(key)).wait().expect("the store answers");
    assert_eq!(found.len(), 1, "one answer for each key");
    found.into_iter().next().flatten().map(sorted)
}

/// Sorts the index entries of a record, which have no order.
fn sorted(mut item: Item) -> Item {
    item.indexed.sort();
    item
}

fn is_bad_call<T>(result: &Result<T, RecordsError>) -> bool {
    matches!(result, Err(RecordsError::Store(StoreError::BadCall(_))))
}

/// Reads all pages of a query.
pub(crate) fn query_all<R: Records>(store: &R, query: &Query) -> Vec<Item> {
    all_pages(query, |query| store.query(query).wait()).into_iter().map(sorted).collect()
}

/// Reads all pages of an index.
pub(crate) fn find_all<R: Records>(store: &R, index: Index, query: &Query) -> Vec<ItemKey> {
    all_pages(query, |query| store.find(index, query).wait())
}

fn all_pages<T>(query: &Query, mut ask: impl FnMut(&Query) -> Result<Page<T>, RecordsError>) -> Vec<T> {
    fixture::all_pages(|after| {
        let page = ask(&Query { after, ..query.clone() }).expect("the store answers");
        assert!(page.items.len() <= query.limit, "a page of {} has {}", query.limit, page.items.len());
        page
    })
}

//! Faults of a store of records.

use std::thread;

use tollgate_store::Reply;
use tollgate_store::records::{
    Change, GETS_MAX, Index, Item, ItemKey, Page, Query, Records, RecordsError, Test, Value, WRITES_MAX,
    Write,
};

use crate::faulty::{Fault, Faulty};

impl Faulty {
    pub(crate) fn write_faulty(&self, writes: &[Write]) -> Result<(), RecordsError> {
        let writes: Vec<Write> = writes.iter().map(|write| self.spoilt(write.clone())).collect();
        if self.has(Fault::WritesOneByOne) {
            for (index, write) in writes.iter().enumerate() {
                let written = self.memory.write(std::slice::from_ref(write)).wait();
                written.map_err(|error| at_index(error, index))?;
            }
            return Ok(());
        }
        if self.has(Fault::AcceptsAnyNumber) {
            return writes.chunks(WRITES_MAX).try_for_each(|writes| self.memory.write(writes).wait());
        }
        if self.has(Fault::ReadsThenWrites) {
            return self.read_then_write(&writes);
        }
        self.memory.write(&writes).wait()
    }

    /// The write as a faulty store would make it.
    fn spoilt(&self, mut write: Write) -> Write {
        let (Write::Put(_, tests)
        | Write::Change(_, _, tests)
        | Write::Delete(_, tests)
        | Write::Check(_, tests)) = &mut write
        else {
            return write;
        };
        if self.has(Fault::IgnoresTests) {
            tests.clear();
        }
        if self.has(Fault::TestsForNull) {
            // A field that is not there is taken for one that is nothing.
            tests.retain(|test| !matches!(test, Test::Is(_, Value::Null)));
        }
        match &mut write {
            Write::Put(item, _) => {
                if self.has(Fault::LosesPlaces) {
                    item.indexed.clear();
                }
                if self.has(Fault::KeepsWhatHasExpired) {
                    item.expires = None;
                }
            }
            Write::Change(_, changes, tests) => {
                if self.has(Fault::ChangesOnlyWhatIsThere) {
                    tests.push(Test::Exists);
                }
                if self.has(Fault::KeepsOldPlaces) {
                    changes.retain(|change| !matches!(change, Change::Displace(_)));
                }
                if self.has(Fault::KeepsWhatHasExpired) {
                    changes.retain(|change| !matches!(change, Change::Expire(_)));
                }
            }
            _ => {}
        }
        write
    }

    /// Works out what each record becomes from what it was a moment ago.
    fn read_then_write(&self, writes: &[Write]) -> Result<(), RecordsError> {
        let keys: Vec<ItemKey> = writes.iter().map(|write| write.key().clone()).collect();
        let there = self.memory.get_many(&keys).wait()?;
        if let Some(index) = (0..writes.len()).find(|index| !writes[*index].passes(there[*index].as_ref())) {
            return Err(RecordsError::Failed(index));
        }
        pause();
        let made = |(write, there): (&Write, Option<Item>)| match write.applied(there) {
            Some(item) => Write::Put(item, vec![]),
            None => Write::Delete(write.key().clone(), vec![]),
        };
        let puts: Vec<Write> = writes.iter().zip(there).map(made).collect();
        self.memory.write(&puts).wait()
    }

    fn get_faulty(&self, keys: &[ItemKey]) -> Result<Vec<Option<Item>>, RecordsError> {
        let one = |key: &ItemKey| {
            pause();
            let found = self.memory.get_many(std::slice::from_ref(key)).wait()?;
            Ok(found.into_iter().next().flatten())
        };
        match self.fault {
            Fault::ReadsOneByOne => {
                tollgate_store::records::check_keys(keys)?;
                keys.iter().map(one).collect()
            }
            Fault::AcceptsAnyNumber => {
                let chunks = keys.chunks(GETS_MAX).map(|keys| self.memory.get_many(keys).wait());
                Ok(chunks.collect::<Result<Vec<_>, _>>()?.concat())
            }
            _ => self.memory.get_many(keys).wait(),
        }
    }

    /// The query as a faulty store would understand it.
    fn mistaken(&self, query: &Query) -> Query {
        let mut query = query.clone();
        if self.has(Fault::MistakesThePrefix) {
            query.prefix = query.prefix.replace('%', "");
        }
        if self.has(Fault::IgnoresDirection) {
            query.newest_first = false;
        }
        query
    }

    fn skipped<T>(&self, mut page: Page<T>) -> Page<T> {
        if self.has(Fault::SkipsBetweenPages) && page.next.is_some() {
            page.items.pop();
        }
        page
    }
}

/// Long enough for others to come in between, also where there are few processors.
fn pause() {
    (0..20).for_each(|_| thread::yield_now());
}

fn at_index(error: RecordsError, index: usize) -> RecordsError {
    if matches!(error, RecordsError::Failed(_)) { RecordsError::Failed(index) } else { error }
}

impl Records for Faulty {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        Reply::ready(self.get_faulty(keys))
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        Reply::ready(self.write_faulty(writes))
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        let mut page = self.memory.query(&self.mistaken(query)).wait().map(|page| self.skipped(page));
        if let (true, Ok(page)) = (self.has(Fault::ReadsWithoutCase), &mut page) {
            page.items.sort_by_key(|item| item.key.sort.to_lowercase());
        }
        Reply::ready(page)
    }

    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        if self.has(Fault::ListsOtherNamespaces) && index == Index::Namespace {
            let others = self.memory.find(index, &Query::all(format!("{}2", query.partition))).wait();
            let here = self.memory.find(index, query).wait();
            let both = here.and_then(|here| {
                let items = here.items.into_iter().chain(others?.items).take(query.limit).collect();
                Ok(Page { items, next: here.next })
            });
            return Reply::ready(both);
        }
        Reply::ready(self.memory.find(index, &self.mistaken(query)).wait().map(|page| self.skipped(page)))
    }

    fn revision(&self) -> Option<u64> {
        let revision = self.memory.revision();
        revision.map(|revision| if self.has(Fault::StandsStill) { revision / 2 } else { revision })
    }
}

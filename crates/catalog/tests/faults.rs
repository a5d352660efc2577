//! The suite catches stores that are wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tollgate_conformance::catalog;
use tollgate_core::{Denial, Status};
use tollgate_store::records::{
    Change, Cursor, Index, Item, ItemKey, Page, Query, Records, RecordsError, Test, Write,
};
use tollgate_store::{
    Activity, Backend, BucketRef, BucketStatus, Clock, Memory, Reach, Reply, Scope, Step, Store, StoreError,
    Transaction, TxnOutcome, WaitQueues,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    IgnoresTests,
    IgnoresChecks,
    IgnoresThatSomethingIsAbsent,
    LosesTheLastWrite,
    LosesSums,
    LosesPlaces,
    NeverMovesPlaces,
    KeepsItsRevision,
    KeepsWhatExpires,
    MixesNamespaces,
    EndsAfterAPage,
    ForgetsNothing,
    NeverCloses,
    AppliesWithoutWriting,
    WritesWithoutApplying,
    CountsNoUsage,
}

const FAULTS: [Fault; 16] = [
    Fault::IgnoresTests,
    Fault::IgnoresChecks,
    Fault::IgnoresThatSomethingIsAbsent,
    Fault::LosesTheLastWrite,
    Fault::LosesSums,
    Fault::LosesPlaces,
    Fault::NeverMovesPlaces,
    Fault::KeepsItsRevision,
    Fault::KeepsWhatExpires,
    Fault::MixesNamespaces,
    Fault::EndsAfterAPage,
    Fault::ForgetsNothing,
    Fault::NeverCloses,
    Fault::AppliesWithoutWriting,
    Fault::WritesWithoutApplying,
    Fault::CountsNoUsage,
];

/// A memory store with a fault.
struct Faulty {
    memory: Memory,
    fault: Fault,
}

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// The writes as this store would make them.
    fn broken(&self, writes: &[Write]) -> Vec<Write> {
        let kept = writes.len() - usize::from(self.is(Fault::LosesTheLastWrite) && writes.len() > 1);
        writes[..kept].iter().map(|write| self.broken_write(write.clone())).collect()
    }

    fn broken_write(&self, write: Write) -> Write {
        match write {
            Write::Put(mut item, tests) => {
                if self.is(Fault::LosesPlaces) {
                    item.indexed.clear();
                }
                if self.is(Fault::KeepsWhatExpires) {
                    item.expires = None;
                }
                Write::Put(item, self.broken_tests(tests))
            }
            Write::Change(key, mut changes, tests) => {
                changes.retain(|change| match change {
                    Change::Add(..) => !self.is(Fault::LosesSums),
                    Change::Place(..) | Change::Displace(_) => !self.is(Fault::NeverMovesPlaces),
                    _ => true,
                });
                Write::Change(key, changes, self.broken_tests(tests))
            }
            Write::Delete(key, tests) => Write::Delete(key, self.broken_tests(tests)),
            Write::Check(key, _) if self.is(Fault::IgnoresChecks) => Write::Check(key, Vec::new()),
            Write::Check(key, tests) => Write::Check(key, self.broken_tests(tests)),
            other => other,
        }
    }

    fn broken_tests(&self, mut tests: Vec<Test>) -> Vec<Test> {
        tests.retain(|test| match test {
            Test::Absent => !self.is(Fault::IgnoresTests) && !self.is(Fault::IgnoresThatSomethingIsAbsent),
            _ => !self.is(Fault::IgnoresTests),
        });
        tests
    }

    fn ended<T>(&self, mut page: Page<T>) -> Page<T> {
        if self.is(Fault::EndsAfterAPage) {
            page.next = None;
        }
        page
    }
}

impl Store for Faulty {
    fn reach(&self) -> Reach {
        self.memory.reach()
    }

    fn clock(&self) -> &Clock {
        self.memory.clock()
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        self.memory.apply(call)
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        self.memory.evaluate(steps)
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        self.memory.peek(place)
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        self.memory.apply_detached(call);
    }

    fn new_holder_id(&self) -> u128 {
        self.memory.new_holder_id()
    }
}

impl Records for Faulty {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        self.memory.get_many(keys)
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        Reply::ready(self.memory.write(&self.broken(writes)).wait())
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        Reply::ready(self.memory.query(query).wait().map(|page| self.ended(page)))
    }

    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        let all = Query::all("_");
        let mixed = self.is(Fault::MixesNamespaces) && index == Index::Namespace;
        let found = self.memory.find(index, if mixed { &all } else { query }).wait();
        Reply::ready(found.map(|page| self.ended(page)))
    }

    fn revision(&self) -> Option<u64> {
        if self.is(Fault::KeepsItsRevision) { Some(1) } else { self.memory.revision() }
    }
}

impl Backend for Faulty {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        match self.fault {
            Fault::AppliesWithoutWriting => self.memory.apply_with(call, &[]),
            Fault::WritesWithoutApplying => {
                let written = self.memory.write(writes).wait();
                Reply::ready(written.map(|()| TxnOutcome::Done(Vec::new())))
            }
            _ => Reply::ready(self.memory.apply_with(call, &self.broken(writes)).wait()),
        }
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        self.memory.buckets(namespace, scope, after, limit)
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        if self.is(Fault::ForgetsNothing) {
            Reply::ready(Ok(0))
        } else {
            self.memory.forget(namespace, scope)
        }
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        if self.is(Fault::NeverCloses) { Reply::ready(Ok(())) } else { self.memory.close(namespace) }
    }

    fn wait_queues(&self) -> &WaitQueues {
        self.memory.wait_queues()
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        self.memory.activity(namespace, scope, after)
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        if self.is(Fault::CountsNoUsage) {
            return Reply::ready(Ok(vec![None; keys.len()]));
        }
        self.memory.usage_at(keys)
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        if self.is(Fault::CountsNoUsage) {
            return Reply::ready(Ok(()));
        }
        self.memory.write_usage(namespace, scope)
    }
}

#[test]
fn the_suite_catches_every_planted_fault() {
    for fault in FAULTS {
        let open = |clock: Clock| -> Arc<dyn Backend> {
            Arc::new(Faulty { memory: Memory::builder().clock(clock).build(), fault })
        };
        let run = AssertUnwindSafe(|| catalog::run(&open));
        assert!(catch_unwind(run).is_err(), "{fault:?} was not noticed");
    }
}

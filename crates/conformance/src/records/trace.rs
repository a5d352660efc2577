//! Random traces of writes and reads on a store of records and on its model.

use tollgate_core::{Span, Tick};
use tollgate_store::records::{
    Change, Index, Item, ItemKey, Query, Records, RecordsError, Test, Value, Write,
};
use tollgate_store::{Clock, ManualClock, SplitMix64};

use super::model::RecordsModel;
use super::{find_all, query_all, sorted};
use crate::fixture::{START, open_at};
use crate::random::seeded;

const STEPS: u64 = 80;
const PARTITIONS: [&str; 4] = ["one/A", "one/B", "one/AB", "two/A"];
const SORTS: [&str; 6] = ["a", "ab", "b", "#b", "b#1", "ü"];
const PLACES: [&str; 2] = ["one/P", "one/Q"];
const INDEXES: [Index; 3] = [Index::Children, Index::Resource, Index::Custom];

struct RecordsTrace<R> {
    seed: u64,
    step: u64,
    random: SplitMix64,
    clock: ManualClock,
    store: R,
    model: RecordsModel,
}

pub(super) fn run<R: Records>(seed: u64, open: &impl Fn(Clock) -> R) {
    let (clock, store) = open_at(START, open);
    let mut trace =
        RecordsTrace { seed, step: 0, random: seeded(seed), clock, store, model: RecordsModel::default() };
    for step in 0..STEPS {
        trace.step = step;
        trace.step();
    }
}

impl<R: Records> RecordsTrace<R> {
    fn step(&mut self) {
        if self.random.one_in(3) {
            self.clock.advance(Span::from_secs(self.random.below(4)));
        }
        self.write();
        self.compare_records();
        self.compare_queries();
        self.compare_indexes();
    }

    fn context(&self) -> String {
        format!("TOLLGATE_SEED={}, step {}, at {:?}", self.seed, self.step, self.clock.now())
    }

    fn write(&mut self) {
        let mut writes: Vec<Write> = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let key = ItemKey::new(self.random.pick(&PARTITIONS), self.random.pick(&SORTS));
            if writes.iter().all(|write| *write.key() != key) {
                writes.push(self.random_write(key));
            }
        }
        let failing = self.model.write(&writes, self.clock.now());
        let context = self.context();
        match self.store.write(&writes).wait() {
            Ok(()) => assert_eq!(failing, [0; 0], "{context}: tests failed, but it wrote {writes:?}"),
            Err(RecordsError::Failed(index)) => {
                assert!(
                    failing.contains(&index),
                    "{context}: {index} is not among {failing:?} of {writes:?}"
                );
            }
            Err(error) => panic!("{context}: {error}"),
        }
    }

    fn random_write(&mut self, key: ItemKey) -> Write {
        let tests = if self.random.one_in(3) { vec![self.random_test()] } else { vec![] };
        match self.random.below(8) {
            0 | 1 => Write::Put(self.random_item(key), tests),
            2 => Write::Delete(key, tests),
            3 => Write::Check(key, tests),
            _ => {
                let changes = self.random_changes();
                Write::Change(key, changes, tests)
            }
        }
    }

    fn random_test(&mut self) -> Test {
        match self.random.below(4) {
            0 => Test::Exists,
            1 => Test::Absent,
            2 => Test::Is("n".into(), Value::Int(self.random.below(4) as i64)),
            _ => Test::AtMost("n".into(), self.random.below(6) as i64 - 1),
        }
    }

    fn random_item(&mut self, key: ItemKey) -> Item {
        let mut item =
            Item::new(key).with("text", self.random.pick(&SORTS)).with("yes", self.random.one_in(2));
        if self.random.one_in(2) {
            item = item.with("n", self.random.below(4) as i64);
        }
        if self.random.one_in(2) {
            item =
                item.indexed(self.random.pick(&INDEXES), self.random.pick(&PLACES), self.random.pick(&SORTS));
        }
        item.expires = self.random_expiry();
        item
    }

    fn random_expiry(&mut self) -> Option<Tick> {
        self.random.one_in(3).then(|| self.clock.now() + Span::from_secs(self.random.below(12)))
    }

    /// Returns changes to different fields: two changes to one field have no defined meaning.
    fn random_changes(&mut self) -> Vec<Change> {
        let (member, index) = (self.random.pick(&SORTS).to_string(), self.random.pick(&INDEXES));
        let (includes, places) = (self.random.one_in(2), self.random.one_in(2));
        let place = ItemKey::new(self.random.pick(&PLACES), self.random.pick(&SORTS));
        let all = [
            Change::Set("text".into(), self.random.pick(&SORTS).into()),
            Change::Remove("yes".into()),
            Change::Add("n".into(), self.random.below(5) as i64 - 2),
            if includes {
                Change::Include("set".into(), member)
            } else {
                Change::Exclude("set".into(), member)
            },
            if places { Change::Place(index, place) } else { Change::Displace(index) },
            Change::Expire(self.random_expiry()),
        ];
        all.into_iter().filter(|_| self.random.one_in(3)).collect()
    }

    fn compare_records(&mut self) {
        let keys: Vec<ItemKey> = PARTITIONS
            .iter()
            .flat_map(|partition| SORTS.map(|sort| ItemKey::new(*partition, sort)))
            .collect();
        let now = self.clock.now();
        let expected: Vec<_> = keys.iter().map(|key| self.model.get(key, now).cloned().map(sorted)).collect();
        let found = self.store.get_many(&keys).wait().expect("the store answers");
        let found: Vec<_> = found.into_iter().map(|item| item.map(sorted)).collect();
        assert_eq!(found, expected, "{}", self.context());
    }

    fn random_query(&mut self, partition: &str) -> Query {
        let prefix = if self.random.one_in(2) { "" } else { self.random.pick(&SORTS) };
        let (limit, newest_first) = (1 + self.random.below(5) as usize, self.random.one_in(2));
        Query { limit, newest_first, ..Query::prefix(partition, prefix) }
    }

    fn compare_queries(&mut self) {
        let partition = self.random.pick(&PARTITIONS);
        let query = self.random_query(partition);
        let expected = self.model.query(&query, self.clock.now());
        let expected: Vec<Item> = expected.into_iter().map(sorted).collect();
        assert_eq!(query_all(&self.store, &query), expected, "{}: {query:?}", self.context());
    }

    /// Compares an index. Records with equal sort keys may come in any order, and no others.
    fn compare_indexes(&mut self) {
        let index = self.random.pick(&[Index::Children, Index::Resource, Index::Custom, Index::Namespace]);
        let query = match index {
            Index::Namespace => {
                let prefix = self.random.pick(&["", "one/", "one/A", "two/A"]);
                Query { prefix: prefix.into(), ..self.random_query("one") }
            }
            _ => {
                let partition = self.random.pick(&PLACES);
                self.random_query(partition)
            }
        };
        let expected = self.model.find(index, &query, self.clock.now());
        let found = find_all(&self.store, index, &query);
        let sort_of = |key: &ItemKey| expected.iter().find(|(_, other)| other == key).map(|(sort, _)| sort);
        let sorts: Vec<_> = found.iter().map(sort_of).collect();
        let expected_sorts: Vec<_> = expected.iter().map(|(sort, _)| Some(sort)).collect();
        assert_eq!(sorts, expected_sorts, "{}: {index:?}, {query:?}, found {found:?}", self.context());
        let mut distinct = found.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), found.len(), "{}: {index:?}, {query:?} found one twice", self.context());
    }
}

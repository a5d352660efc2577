//! Reading usage and activity: exact, whatever is written down meanwhile. That nothing is written is proved with the policies.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Limit, Limits, Span, Tick, demand};
use tollgate_dynamo::DynamoStore;
use tollgate_dynamo_local::Engine;
use tollgate_store::records::Records;
use tollgate_store::usage::{Window, iso, usage_key};
use tollgate_store::{
    Activity, Backend, BucketRef, Key, ManualClock, Op, Scope, Step, Store, Transaction, TxnOutcome,
};

const START: Tick = Tick::from_secs(1_800_000_000);

struct Table {
    hands: ManualClock,
    engine: Engine,
    limits: Limits,
}

impl Table {
    fn open() -> Table {
        let hands = ManualClock::at(START);
        let engine = common::engine(&hands.clock());
        let limits = Limits::new([Limit::per_day("rpm", 1_000_000)]).expect("it is valid");
        Table { hands, engine, limits }
    }

    fn client(&self, shards: u32) -> DynamoStore {
        let store = common::builder(self.hands.clock()).http_client(self.engine.http_client());
        store.shards(shards, 32).build().wait().expect("the engine has what it takes")
    }

    fn take(&self, store: &DynamoStore, amount: u64) {
        let key = Key::new(&["user", "api"]);
        let costs = self.limits.costs(&demand! { rpm: amount }).expect("it can fit");
        let place = BucketRef { namespace: "ns", key: &key, limits: &self.limits };
        let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
        let applied = store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait();
        assert!(matches!(applied, Ok(TxnOutcome::Done(_))), "{applied:?}");
    }
}

/// How much was used in a window, and by how many calls.
fn used(store: &DynamoStore, window: Window, at: Tick) -> Option<(i64, i64)> {
    let key = usage_key("ns", "user", "api", window, &iso(window.start(at)));
    let found = store.usage_at(&[key.clone(), key]).wait().expect("it answers");
    assert_eq!(found[0], found[1], "a key that is asked for twice is answered twice");
    found
        .into_iter()
        .next()
        .flatten()
        .map(|item| (item.int("rpm").unwrap_or_default(), item.int("total_events").unwrap_or_default()))
}

fn activity(store: &DynamoStore) -> Activity {
    let page = store.activity("ns", Scope::All, None).wait().expect("it answers");
    assert_eq!((page.items.len(), page.next), (1, None));
    page.items.into_iter().next().expect("it is there")
}

#[test]
fn usage_of_several_hours_and_items_is_read_exactly() {
    for shards in [1, 4] {
        let table = Table::open();
        let (writer, reader) = (table.client(shards), table.client(shards));
        for hour in 0..3 {
            for _ in 0..8 {
                table.take(&writer, 10 + hour);
            }
            table.hands.advance(Span::from_secs(3_600));
        }
        // Some of it is written down, and more is used then.
        let now = table.hands.now();
        table.take(&writer, 1);
        writer.write_usage("ns", Scope::All).wait().expect("it answers");
        (0..5).for_each(|_| table.take(&writer, 1));
        assert_eq!(used(&reader, Window::Hour, START), Some((80, 8)));
        assert_eq!(used(&reader, Window::Hour, START + Span::from_secs(3_600)), Some((88, 8)));
        assert_eq!(used(&reader, Window::Hour, now), Some((6, 6)));
        assert_eq!(used(&reader, Window::Month, START), Some((80 + 88 + 96 + 6, 30)));
        let seen = activity(&reader);
        assert_eq!(seen.hour, Some((Window::Hour.start(now), 6)), "what is written down counts as well");
        assert_eq!(seen.others, Vec::<Tick>::new());
    }
}

/// Whether there is a record of the hour that began at `start`.
fn has_record(store: &DynamoStore, start: Tick) -> bool {
    let key = usage_key("ns", "user", "api", Window::Hour, &iso(start));
    store.get_many(&[key]).wait().expect("it answers").into_iter().any(|item| item.is_some())
}

#[test]
fn hours_that_are_in_no_record_are_told() {
    let table = Table::open();
    let store = table.client(1);
    let hours = [0, 1, 2].map(|hour| START + Span::from_secs(hour * 3_600));
    for hour in hours {
        table.hands.set(hour);
        table.take(&store, 1);
    }
    // Hours that are over are written down in the background, and this may have happened before the look or after it.
    let seen = activity(&store);
    assert_eq!(seen.hour, Some((hours[2], 1)));
    let is_found = |hour: &Tick| seen.others.contains(hour) || has_record(&store, *hour);
    assert!(
        hours[..2].iter().all(is_found) && seen.others.iter().all(|hour| hours[..2].contains(hour)),
        "{seen:?}"
    );
    table.hands.advance(Span::from_secs(3_600));
    let seen = activity(&store);
    assert_eq!(seen.hour, None, "nothing was used in this hour");
    assert!(seen.others.contains(&hours[2]) || has_record(&store, hours[2]), "{seen:?}");
}

#[test]
fn usage_that_is_written_down_meanwhile_is_read_exactly() {
    const TAKES: u64 = 150;
    let table = Table::open();
    let (writer, other, reader) = (table.client(1), table.client(1), table.client(1));
    let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..TAKES {
                begun.fetch_add(1, Ordering::SeqCst);
                table.take(&writer, 1);
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            while done.load(Ordering::SeqCst) < TAKES {
                other.write_usage("ns", Scope::All).wait().expect("it answers");
            }
        });
        let mut is_over = false;
        while !is_over {
            is_over = done.load(Ordering::SeqCst) == TAKES;
            let least = done.load(Ordering::SeqCst);
            let (amount, calls) = used(&reader, Window::Day, START).unwrap_or_default();
            let most = begun.load(Ordering::SeqCst);
            assert_eq!(amount, calls, "a record and its bucket are seen as of one instant");
            assert!(
                (least..=most).contains(&(calls as u64)),
                "{least} to {most} were made, and {calls} are told"
            );
        }
    });
}

//! Buckets in several items: together they are one.

#![allow(clippy::disallowed_methods, reason = "what others do in the background is waited for")]

mod common;

use std::time::Duration;

use tollgate_core::{Limit, Limits, Span, Status, Tick, Usage, demand};
use tollgate_dynamo::DynamoStore;
use tollgate_store::{
    Backend, BucketRef, Key, ManualClock, Op, Reply, Scope, Step, StepOutcome, Store, Taken, Transaction,
    TxnOutcome,
};

const START: Tick = Tick::from_secs(1_800_000_000);

struct Desk {
    hands: ManualClock,
    store: DynamoStore,
    limits: Limits,
    key: Key,
}

impl Desk {
    fn open(shards: u32, limits: Limits) -> Desk {
        let hands = ManualClock::at(START);
        let clock = hands.clock();
        let engine = common::engine(&clock);
        let store = common::builder(clock).http_client(engine.http_client()).shards(shards, 32);
        let store = store.build().wait().expect("the engine has what it takes");
        Desk { hands, store, limits, key: Key::new(&["user", "gpt-4"]) }
    }

    fn rpm(shards: u32, capacity: u64) -> Desk {
        Desk::open(shards, Limits::new([Limit::per_minute("rpm", capacity)]).expect("it is valid"))
    }

    fn place(&self) -> BucketRef<'_> {
        BucketRef { namespace: "ns", key: &self.key, limits: &self.limits }
    }

    fn apply(&self, op: Op<'_>) -> TxnOutcome {
        let steps = [Step { place: self.place(), op }];
        let call = Transaction { id: None, steps: &steps, metered: true };
        self.store.apply(&call).wait().expect("a store that is there answers")
    }

    fn take(&self, amount: u64) -> Option<Taken> {
        let costs = self.limits.costs(&demand! { rpm: amount }).expect("it can fit");
        match self.apply(Op::Take { costs: &costs, term: None }) {
            TxnOutcome::Done(done) => match done[0] {
                StepOutcome::Taken(taken) => Some(taken),
                other => panic!("{other:?}"),
            },
            TxnOutcome::Denied(_) => None,
            other => panic!("{other:?}"),
        }
    }

    fn settle(&self, taken: Taken, reserved: u64, used: u64) {
        let costs = self.limits.costs(&demand! { rpm: reserved }).expect("it can fit");
        let usage = Usage { at: taken.at, reserved: &costs, used: &[used], holder: None };
        self.apply(Op::SettleExisting(usage));
    }

    fn left(&self) -> i64 {
        wait(self.store.peek(&self.place())).iter().map(Status::available).next().expect("there is one")
    }
}

fn wait<T>(reply: Reply<'_, Result<T, tollgate_store::StoreError>>) -> T {
    reply.wait().expect("a store that is there answers")
}

#[test]
fn a_thousand_on_four_items_is_a_thousand() {
    let desk = Desk::rpm(4, 1_000);
    assert_eq!(desk.left(), 1_000);
    let admitted = (0..1_100).filter(|_| desk.take(1).is_some()).count();
    assert_eq!(admitted, 1_000);
    assert_eq!(desk.left(), 0);
    desk.hands.advance(Span::from_secs(6));
    assert_eq!(desk.left(), 100);
    assert_eq!((0..200).filter(|_| desk.take(1).is_some()).count(), 100);
}

#[test]
fn a_demand_may_be_larger_than_a_share() {
    let desk = Desk::rpm(4, 1_000);
    assert!(desk.take(600).is_some());
    assert_eq!(desk.left(), 400);
    assert!(desk.take(401).is_none(), "a refusal");
    assert_eq!(desk.left(), 400, "changes nothing");
    assert!(desk.take(400).is_some());
    assert_eq!(desk.left(), 0);
}

#[test]
fn what_is_given_back_is_there_again_and_never_more() {
    let desk = Desk::rpm(4, 1_000);
    let taken: Vec<Taken> = (0..100).map(|_| desk.take(10).expect("there is room")).collect();
    assert_eq!(desk.left(), 0);
    for taken in taken {
        desk.settle(taken, 10, 5);
    }
    assert_eq!(desk.left(), 500);
    let taken = desk.take(200).expect("there is room");
    desk.hands.advance(Span::from_secs(60));
    desk.settle(taken, 200, 0);
    assert_eq!(desk.left(), 1_000);
    let taken = desk.take(1).expect("there is room");
    desk.settle(taken, 1, 1_501);
    assert_eq!(desk.left(), -501, "debt is owed by the whole");
    assert!(desk.take(1).is_none());
}

#[test]
fn usage_is_counted_once_whatever_item_it_was_taken_from() {
    let desk = Desk::rpm(8, 1_000);
    for _ in 0..50 {
        let taken = desk.take(3).expect("there is room");
        desk.settle(taken, 3, 2);
    }
    desk.take(600).expect("there is room");
    wait(desk.store.write_usage("ns", Scope::All));
    wait(desk.store.write_usage("ns", Scope::All));
    let query = tollgate_store::records::Query::prefix("ns/USAGE#user", "#USAGE#gpt-4#daily#");
    let records =
        tollgate_store::records::Records::query(&desk.store, &query).wait().expect("it answers").items;
    let told: Vec<_> = records.iter().map(|item| (item.int("rpm"), item.int("total_events"))).collect();
    assert_eq!(told, [(Some(700), Some(51))]);
}

#[test]
fn limits_that_cannot_be_shared_out_are_in_one_item_and_become_it() {
    let mut desk = Desk::rpm(4, 1_000);
    assert!(desk.take(300).is_some());
    let slots = [Limit::per_minute("rpm", 1_000), Limit::resource("slots", 2)];
    desk.limits = Limits::new(slots).expect("they are valid");
    assert!(desk.take(100).is_some());
    assert_eq!(desk.left(), 600);
    desk.limits = Limits::new([Limit::per_minute("rpm", 10)]).expect("it is valid");
    assert!(desk.take(10).is_some(), "lowered to 10");
    assert_eq!(desk.left(), 0);
}

#[test]
fn a_reset_and_a_top_up_are_about_the_whole() {
    let desk = Desk::rpm(4, 1_000);
    assert!(desk.take(900).is_some());
    let credit = desk.limits.costs(&demand! { rpm: 450 }).expect("it fits");
    desk.apply(Op::TopUp(&credit));
    assert_eq!(desk.left(), 550);
    desk.apply(Op::Reset);
    assert_eq!(desk.left(), 1_000);
    assert_eq!(wait(desk.store.buckets("ns", Scope::All, None, 100)).items.len(), 1);
    assert_eq!(wait(desk.store.forget("ns", Scope::All)), 4);
    assert_eq!(desk.left(), 1_000);
    assert!(desk.take(1_000).is_some());
}

/// A thousand writes in no time are more than an item bears, so it becomes two, and so on.
#[test]
fn a_hot_bucket_is_split_and_nothing_is_minted() {
    let desk = Desk::rpm(1, 1_000_000);
    let mut admitted: i64 = 0;
    for _ in 0..2_400 {
        admitted += i64::from(desk.take(1).is_some());
    }
    let deadline = std::time::Duration::from_secs(20);
    let started = tollgate_store::Clock::system().now();
    let count = |desk: &Desk| {
        wait(desk.store.write_usage("ns", Scope::All));
        desk.store.shards_of("ns", "user", "gpt-4").wait().expect("it answers")
    };
    while count(&desk) == 1 {
        assert!(
            tollgate_store::Clock::system().now().since(started).to_duration() < deadline,
            "it was never split"
        );
        admitted += i64::from(desk.take(1).is_some());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(desk.left(), 1_000_000 - admitted);
}

//! What every path costs: calls and units, counted where they reach the service.

mod common;

use std::sync::Arc;

use tollgate::catalog::{Level, NewEntity};
use tollgate::{Limit, Limiter, Limits, demand};
use tollgate_core::{Span, Tick};
use tollgate_dynamo_local::{Calls, Engine};
use tollgate_store::ManualClock;

const START: Tick = Tick::from_secs(1_800_000_000);

struct Till {
    hands: ManualClock,
    engine: Engine,
    limiter: Limiter,
}

impl Till {
    fn open() -> Till {
        let hands = ManualClock::at(START);
        let engine = common::engine(&hands.clock());
        engine.count_units(true);
        let limiter = Till::client(&hands, &engine);
        let limits = [Limit::per_minute("rpm", 1_000), Limit::per_minute("tpm", 100_000)];
        let limits = Limits::new(limits).expect("they are valid");
        let catalog = limiter.catalog();
        catalog.set_limits(Level::Resource("gpt-4"), &limits).wait().expect("it answers");
        catalog.create_entity(NewEntity::new("team")).wait().expect("it answers");
        let member = NewEntity::new("member").parent("team").cascades(true);
        catalog.create_entity(member).wait().expect("it answers");
        Till { hands, engine, limiter }
    }

    fn client(hands: &ManualClock, engine: &Engine) -> Limiter {
        let store = common::builder(hands.clock()).http_client(engine.http_client()).build().wait();
        let store = Arc::new(store.expect("the engine has what it takes"));
        Limiter::open(store, "default").wait().expect("it answers")
    }

    /// What `act` costs.
    fn cost(&self, act: impl FnOnce(&Limiter)) -> Calls {
        let before = self.engine.calls();
        act(&self.limiter);
        self.engine.calls() - before
    }

    fn advance(&self, span: Span) {
        self.hands.advance(span);
    }
}

fn take(limiter: &Limiter, entity: &str, tokens: u64) {
    let lease =
        limiter.acquire(entity, "gpt-4", demand! { rpm: 1, tpm: tokens }).wait().expect("there is room");
    lease.commit().wait().expect("it answers");
}

fn writes_reads(calls: &Calls) -> (u64, u64) {
    (calls.writes(), calls.reads())
}

#[test]
fn the_first_acquire_ever_is_at_most_three_calls() {
    let till = Till::open();
    let calls = till.cost(|limiter| take(limiter, "user", 10));
    assert!(calls.all() <= 3, "{calls:?}");
    assert_eq!(calls.writes(), 1, "{calls:?}");
}

#[test]
fn a_warm_acquire_is_one_write_of_one_unit_and_no_read() {
    let till = Till::open();
    take(&till.limiter, "user", 10);
    for _ in 0..20 {
        let calls = till.cost(|limiter| take(limiter, "user", 10));
        assert_eq!(writes_reads(&calls), (1, 0), "{calls:?}");
        assert_eq!((calls.write_units, calls.index_units), (1.0, 0.0), "{calls:?}");
    }
}

#[test]
fn a_warm_cascade_is_two_writes_and_no_read() {
    let till = Till::open();
    take(&till.limiter, "member", 10);
    for _ in 0..20 {
        let calls = till.cost(|limiter| take(limiter, "member", 10));
        assert_eq!(writes_reads(&calls), (2, 0), "{calls:?}");
        assert_eq!((calls.write_units, calls.index_units), (2.0, 0.0), "{calls:?}");
    }
}

#[test]
fn after_idle_time_it_is_still_one_write_for_whoever_wrote_last() {
    let till = Till::open();
    take(&till.limiter, "user", 10);
    for idle in [Span::from_millis(3), Span::from_secs(1), Span::from_secs(20), Span::from_secs(30)] {
        till.advance(idle);
        let calls = till.cost(|limiter| take(limiter, "user", 20_000));
        assert_eq!(writes_reads(&calls), (1, 0), "after {idle:?}: {calls:?}");
    }
}

#[test]
fn after_another_client_has_written_it_is_at_most_two() {
    let till = Till::open();
    let other = Till::client(&till.hands, &till.engine);
    take(&till.limiter, "user", 10);
    take(&other, "user", 10);
    for _ in 0..5 {
        till.advance(Span::from_secs(8));
        take(&other, "user", 10);
        let calls = till.cost(|limiter| take(limiter, "user", 10));
        assert!(calls.writes() <= 2 && calls.reads() == 0, "{calls:?}");
    }
    // Where none of them is full in between, the clients do not get in each other's way.
    till.advance(Span::from_millis(1));
    take(&other, "user", 90_000);
    take(&till.limiter, "user", 10);
    for _ in 0..5 {
        till.advance(Span::from_millis(1));
        take(&other, "user", 10);
        let calls = till.cost(|limiter| take(limiter, "user", 10));
        assert_eq!(writes_reads(&calls), (1, 0), "{calls:?}");
    }
}

#[test]
fn a_refusal_that_is_repeated_within_a_second_costs_nothing() {
    let till = Till::open();
    let refuse = |limiter: &Limiter, entity: &str| {
        let denied = limiter.try_acquire(entity, "gpt-4", demand! { rpm: 1, tpm: 90_000 }).wait();
        assert!(!denied.expect("it answers").is_admitted());
    };
    for entity in ["user", "member"] {
        take(&till.limiter, entity, 20_000);
        refuse(&till.limiter, entity);
        for _ in 0..10 {
            till.advance(Span::from_millis(50));
            let calls = till.cost(|limiter| refuse(limiter, entity));
            assert_eq!(calls.all(), 0, "{calls:?}");
        }
        till.advance(Span::from_secs(1));
        let calls = till.cost(|limiter| refuse(limiter, entity));
        assert_eq!(writes_reads(&calls), (0, 1), "then it looks again: {calls:?}");
    }
}

#[test]
fn a_settlement_is_a_write_if_there_is_something_to_settle() {
    let till = Till::open();
    take(&till.limiter, "user", 10);
    for (used, writes) in [(100, 0), (60, 1), (130, 1)] {
        let lease = till
            .limiter
            .acquire("user", "gpt-4", demand! { rpm: 1, tpm: 100 })
            .wait()
            .expect("there is room");
        let calls = till.cost(|_| lease.settle(demand! { tpm: used }).wait().expect("it answers"));
        assert_eq!(writes_reads(&calls), (writes, 0), "{used} of 100: {calls:?}");
    }
}

#[test]
fn another_process_pays_one_read_to_know_a_bucket() {
    let till = Till::open();
    take(&till.limiter, "user", 10);
    let other = Till::client(&till.hands, &till.engine);
    // What the catalog reads is kept for a minute and told apart here.
    let before = till.engine.calls();
    take(&other, "user", 10);
    let calls = till.engine.calls() - before;
    assert!(calls.all() <= 4 && calls.writes() == 1, "{calls:?}");
    assert_eq!(calls.of("GetItem"), 1, "{calls:?}");
}

/// When an item may be forgotten, as the table says.
fn ttl_of(engine: &Engine, partition: &str) -> Option<u64> {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
        .region(aws_sdk_dynamodb::config::Region::new("us-east-1"))
        .credentials_provider(aws_sdk_dynamodb::config::Credentials::new(
            "local", "local", None, None, "test",
        ))
        .http_client(engine.http_client());
    let client = aws_sdk_dynamodb::Client::from_conf(config.build());
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.into());
    let get = client.get_item().table_name("limits").key("PK", text(partition)).key("SK", text("#STATE"));
    let runtime = tokio::runtime::Runtime::new().expect("there are threads");
    let item = runtime.block_on(get.send()).expect("it answers").item.expect("there is one");
    item.get("ttl").map(|ttl| ttl.as_n().expect("a number").parse().expect("a whole one"))
}

/// Defaults may be forgotten, limits of one's own may not.
#[test]
fn a_bucket_of_defaults_lasts_seven_times_as_long_as_it_takes_to_fill() {
    let till = Till::open();
    let catalog = till.limiter.catalog();
    let rpm = |amount: u64, capacity: u64| {
        Limits::new([Limit::per_minute("rpm", amount).burst(capacity)]).expect("it is valid")
    };
    catalog.set_limits(Level::Resource("a"), &rpm(100, 100)).wait().expect("it answers");
    catalog.set_limits(Level::Resource("b"), &rpm(10, 1_000)).wait().expect("it answers");
    catalog.set_limits(Level::EntityResource("user", "c"), &rpm(100, 100)).wait().expect("it answers");
    let now = till.hands.now().as_micros() / 1_000_000;
    for (resource, lasts) in [("a", Some(420)), ("b", Some(42_000)), ("c", None)] {
        let lease = till.limiter.acquire("user", resource, demand! { rpm: 1 }).wait().expect("there is room");
        lease.commit().wait().expect("it answers");
        let key = format!("{}/BUCKET#user#{resource}#0", catalog.namespace_id());
        assert_eq!(ttl_of(&till.engine, &key), lasts.map(|lasts| now + lasts), "{resource}");
    }
    till.advance(Span::from_secs(421));
    let standing = till.limiter.available("user", "a").wait().expect("it answers");
    assert_eq!(standing.available("rpm"), Some(100), "one that has expired is full");
}

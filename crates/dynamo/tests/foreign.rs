//! Clients of the original write to the same buckets: together with ours they admit what there is.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::raw::{self, Meanwhile, number, text};
use tollgate::catalog::{Level, NewEntity};
use tollgate::{Limit, Limiter, Limits, demand};
use tollgate_core::Tick;
use tollgate_dynamo_local::Engine;
use tollgate_store::ManualClock;

const START: Tick = Tick::from_secs(1_800_000_000);
const CAPACITY: i64 = 200;

fn limits() -> Limits {
    Limits::new([Limit::per_day("rpm", CAPACITY as u64)]).expect("it is valid")
}

fn limiter(engine: &Engine, hands: &ManualClock) -> Limiter {
    let store = common::builder(hands.clock()).http_client(engine.http_client()).build().wait();
    Limiter::open(Arc::new(store.expect("the engine has what it takes")), "default")
        .wait()
        .expect("it answers")
}

/// A limiter on the same table, on the way to which the original takes 3 before each of the first `times` writes.
fn interrupted(
    engine: &Engine,
    hands: &ManualClock,
    operation: &'static str,
    partition: String,
    times: u64,
) -> (Limiter, Arc<AtomicU64>) {
    let (client, taken) = (raw::client(engine), Arc::new(AtomicU64::new(0)));
    let (left, counted) = (AtomicU64::new(times), Arc::clone(&taken));
    let other = move |asked: &str| {
        let is_next = asked == operation
            && left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok();
        let (client, partition, counted) = (client.clone(), partition.clone(), Arc::clone(&counted));
        is_next.then_some(async move {
            if raw::take_fast(&client, &partition, "rpm", 3).await {
                counted.fetch_add(3, Ordering::AcqRel);
            }
        })
    };
    let client = Meanwhile::new(engine.http_client(), other);
    let store = common::builder(hands.clock()).http_client(client).build().wait();
    let store = Arc::new(store.expect("the engine has what it takes"));
    (Limiter::open(store, "default").wait().expect("it answers"), taken)
}

/// A full bucket as the original makes it.
fn bucket(engine: &Engine, namespace: &str, entity: &str) -> String {
    let partition = format!("{namespace}/BUCKET#{entity}#api#0");
    let millis = number(CAPACITY * 1_000);
    raw::put(
        engine,
        vec![
            ("PK", text(&partition)),
            ("SK", text("#STATE")),
            ("entity_id", text(entity)),
            ("resource", text("api")),
            ("shard_count", number(1)),
            ("rf", number(START.as_micros() as i64 / 1_000)),
            ("b_rpm_tk", millis.clone()),
            ("b_rpm_cp", millis.clone()),
            ("b_rpm_ra", millis),
            ("b_rpm_rp", number(86_400_000)),
            ("b_rpm_tc", number(0)),
            ("b_wcu_tk", number(1_000_000)),
            ("b_wcu_cp", number(1_000_000)),
            ("b_wcu_ra", number(1_000_000)),
            ("b_wcu_rp", number(1_000)),
            ("b_wcu_tc", number(0)),
            ("GSI2PK", text(&format!("{namespace}/RESOURCE#api"))),
            ("GSI2SK", text(&format!("BUCKET#{entity}#0"))),
            ("GSI3PK", text(&format!("{namespace}/ENTITY#{entity}"))),
            ("GSI3SK", text("BUCKET#api#0")),
            ("GSI4PK", text(namespace)),
            ("GSI4SK", text(&format!("BUCKET#{entity}#api#0"))),
        ],
    );
    partition
}

fn standing(engine: &Engine, partition: &str) -> (i64, i64) {
    let item = raw::get(engine, partition, "#STATE").expect("it is there");
    (raw::number_of(&item, "b_rpm_tk"), raw::number_of(&item, "b_rpm_tc"))
}

#[test]
fn a_take_of_the_original_between_our_look_and_our_write_is_not_forgotten() {
    // The first of ours is an exact write; in a chain, a part of a transaction.
    for (operation, entity) in [("UpdateItem", "team"), ("TransactWriteItems", "user")] {
        let hands = ManualClock::at(START);
        let engine = common::engine(&hands.clock());
        let first = limiter(&engine, &hands);
        let catalog = first.catalog();
        catalog.set_limits(Level::System, &limits()).wait().expect("it answers");
        catalog.create_entity(NewEntity::new("team")).wait().expect("it answers");
        catalog
            .create_entity(NewEntity::new("user").parent("team").cascades(true))
            .wait()
            .expect("it answers");
        let partition = bucket(&engine, catalog.namespace_id(), "team");
        bucket(&engine, catalog.namespace_id(), "user");
        let (ours, taken) = interrupted(&engine, &hands, operation, partition.clone(), 2);
        for _ in 0..4 {
            let lease = ours.acquire(entity, "api", demand! { rpm: 5 }).wait().expect("there is enough");
            lease.commit().wait().expect("it answers");
        }
        assert_eq!(taken.load(Ordering::Acquire), 6, "{operation}");
        assert_eq!(standing(&engine, &partition), ((CAPACITY - 26) * 1_000, 26_000), "{operation}");
    }
}

#[test]
fn credit_that_the_core_rounds_off_is_no_reason_to_refuse_a_write() {
    let hands = ManualClock::at(START);
    let engine = common::engine(&hands.clock());
    let limiter = limiter(&engine, &hands);
    // A million a second is counted in whole tokens, and 60 is less than there is: neither is what the item says.
    let second = Limits::new([Limit::per_second("rpm", 1_000_000), Limit::per_second("tpm", 60)]);
    let catalog = limiter.catalog();
    catalog.set_limits(Level::System, &second.expect("they are valid")).wait().expect("it answers");
    let partition = bucket(&engine, catalog.namespace_id(), "user");
    let mut item = raw::get(&engine, &partition, "#STATE").expect("it is there");
    let decimal = |text: &str| aws_sdk_dynamodb::types::AttributeValue::N(text.into());
    let millis = |tokens: i64| number(tokens * 1_000);
    for (name, value) in [
        ("b_rpm_cp", millis(1_000_000)),
        ("b_rpm_ra", millis(1_000_000)),
        ("b_rpm_rp", number(1_000)),
        ("b_rpm_tk", decimal("40500.25")),
        ("b_tpm_cp", millis(60)),
        ("b_tpm_ra", millis(60)),
        ("b_tpm_rp", number(1_000)),
        ("b_tpm_tk", millis(90)),
    ] {
        item.insert(name.into(), value);
    }
    raw::put(&engine, item.iter().map(|(name, value)| (name.as_str(), value.clone())).collect());
    let lease = limiter.acquire("user", "api", demand! { rpm: 40, tpm: 60 }).wait().expect("there is enough");
    lease.commit().wait().expect("it answers");
    let denied = limiter.try_acquire("user", "api", demand! { rpm: 1, tpm: 1 }).wait();
    assert!(!denied.expect("it answers").is_admitted(), "nothing is left");
}

#[test]
fn the_original_and_ours_together_admit_what_there_is() {
    for _ in 0..6 {
        let hands = ManualClock::at(START);
        let engine = common::engine(&hands.clock());
        let catalog = limiter(&engine, &hands).catalog().clone();
        catalog.set_limits(Level::System, &limits()).wait().expect("it answers");
        let partition = bucket(&engine, catalog.namespace_id(), "user");
        let original = || {
            let client = raw::client(&engine);
            let partition = partition.clone();
            raw::wait(async move {
                let mut admitted = 0;
                for _ in 0..50 {
                    admitted += u64::from(raw::take_fast(&client, &partition, "rpm", 1).await);
                }
                admitted
            })
        };
        let ours = || {
            let limiter = limiter(&engine, &hands);
            let tries = (0..50).map(|_| limiter.try_acquire("user", "api", demand! { rpm: 1 }).wait());
            let admitted = tries.filter_map(|attempt| attempt.expect("it answers").admitted());
            admitted.map(|lease| lease.commit().wait().expect("it answers")).count() as u64
        };
        let admitted: u64 = std::thread::scope(|scope| {
            let originals: Vec<_> = (0..3).map(|_| scope.spawn(original)).collect();
            let all: Vec<_> = originals.into_iter().chain((0..3).map(|_| scope.spawn(ours))).collect();
            all.into_iter().map(|thread| thread.join().expect("it ends")).sum()
        });
        assert_eq!(admitted, CAPACITY as u64);
        assert_eq!(standing(&engine, &partition), (0, CAPACITY * 1_000));
    }
}

//! What is rare: demands of nothing, namespaces that are gone, items that say what they cannot be.

mod common;

use std::sync::Arc;

use common::raw::{self, number};
use tollgate::catalog::{Level, Registry};
use tollgate::{Limit, Limiter, Limits, demand};
use tollgate_core::{Span, Tick};
use tollgate_dynamo_local::Engine;
use tollgate_store::ManualClock;

const START: Tick = Tick::from_secs(1_800_000_000);

fn limiter(engine: &Engine, hands: &ManualClock) -> Limiter {
    let store = common::builder(hands.clock()).http_client(engine.http_client());
    let store = Arc::new(store.build().wait().expect("the engine has what it takes"));
    Limiter::open(store, "default").wait().expect("it answers")
}

fn set(limiter: &Limiter, limits: Vec<tollgate_core::LimitBuilder>) {
    let limits = Limits::new(limits).expect("they are valid");
    limiter.catalog().set_limits(Level::System, &limits).wait().expect("it answers");
}

#[test]
fn nothing_in_the_table_names_a_namespace_that_was_purged_once_no_client_can_know_it() {
    let hands = ManualClock::at(START);
    let engine = common::engine(&hands.clock());
    let limiter = limiter(&engine, &hands);
    set(&limiter, vec![Limit::per_minute("rpm", 10)]);
    limiter
        .acquire("user", "api", demand! { rpm: 1 })
        .wait()
        .expect("there is room")
        .commit()
        .wait()
        .expect("it answers");
    let id = limiter.catalog().namespace_id().to_owned();
    let registry = Registry::new(Arc::clone(limiter.catalog().backend()));
    registry.delete("default").wait().expect("it answers");
    registry.purge(&id, |_| ()).wait().expect("it answers");
    let named = || {
        let scan = raw::wait(raw::client(&engine).scan().table_name("limits").send()).expect("it answers");
        let items = scan.items.unwrap_or_default();
        items.iter().filter(|item| item["PK"].as_s().is_ok_and(|key| key.contains(&id))).count()
    };
    assert_eq!(named(), 1, "that it is closed is remembered for a while");
    hands.advance(Span::from_secs(8 * 86_400));
    engine.delete_expired().expect("the tables can be read");
    assert_eq!(named(), 0);
}

#[test]
fn a_quota_whose_item_says_that_there_are_four_is_read_and_written_as_one() {
    let hands = ManualClock::at(START);
    let engine = common::engine(&hands.clock());
    let first = limiter(&engine, &hands);
    set(
        &first,
        vec![
            Limit::per_minute("rpm", 10),
            Limit::quota("spend", 100, std::time::Duration::from_secs(86_400)),
        ],
    );
    let spend = |limiter: &Limiter, spend: u64| {
        let attempt = limiter.try_acquire("user", "api", demand! { rpm: 1, spend: spend }).wait();
        attempt.expect("it answers").into_result().map(|lease| lease.commit().wait())
    };
    spend(&first, 30).expect("there is room").expect("it answers");
    let partition = format!("{}/BUCKET#user#api#0", first.catalog().namespace_id());
    let mut item = raw::get(&engine, &partition, "#STATE").expect("it is there");
    item.insert("shard_count".into(), number(4));
    raw::put(&engine, item.iter().map(|(name, value)| (name.as_str(), value.clone())).collect());
    for limiter in [&first, &limiter(&engine, &hands)] {
        let standing = limiter.available("user", "api").wait().expect("it can be read");
        assert_eq!(standing.available("spend"), Some(70));
    }
    let second = limiter(&engine, &hands);
    spend(&second, 50).expect("there is room").expect("it answers");
    let lease = second.acquire("user", "api", demand! { rpm: 1 }).wait().expect("there is room");
    lease.commit().wait().expect("it answers");
    assert!(spend(&second, 21).is_err(), "20 are left");
    let item = raw::get(&engine, &partition, "#STATE").expect("it is there");
    assert_eq!(raw::number_of(&item, "shard_count"), 1);
}

#[test]
fn a_demand_of_nothing_makes_the_bucket_that_its_settlement_is_charged_to() {
    let hands = ManualClock::at(START);
    let engine = common::engine(&hands.clock());
    let limiter = limiter(&engine, &hands);
    set(&limiter, vec![Limit::per_minute("tpm", 100)]);
    let partition = format!("{}/BUCKET#user#api#0", limiter.catalog().namespace_id());
    let lease = limiter.acquire("user", "api", demand! { tpm: 0 }).wait().expect("nothing fits");
    let item = raw::get(&engine, &partition, "#STATE").expect("it is written for the settlement");
    assert_eq!(raw::number_of(&item, "b_tpm_tk"), 100_000);
    lease.settle(demand! { tpm: 30 }).wait().expect("it answers");
    let left = || limiter.available("user", "api").wait().expect("it answers").available("tpm");
    assert_eq!(left(), Some(70));
    // A settlement makes no bucket: what was deleted meanwhile stays so, and is full.
    let lease = limiter.acquire("user", "api", demand! { tpm: 0 }).wait().expect("nothing fits");
    let client = raw::client(&engine);
    let delete = client.delete_item().table_name("limits").key("PK", raw::text(&partition));
    raw::wait(delete.key("SK", raw::text("#STATE")).send()).expect("it answers");
    lease.settle(demand! { tpm: 30 }).wait().expect("it answers");
    assert_eq!(raw::get(&engine, &partition, "#STATE"), None);
}

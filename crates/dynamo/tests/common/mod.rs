//! Stores in tables of the embedded engine.

#![allow(dead_code, reason = "every test uses some of it")]

pub(crate) mod elsewhere;
pub(crate) mod raw;

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tollgate_dynamo::{DynamoStore, DynamoStoreBuilder};
use tollgate_dynamo_local::{Engine, FaultRates, Faults};
use tollgate_store::Clock;

/// An engine that tells time by this clock.
pub(crate) fn engine(clock: &Clock) -> Engine {
    let engine = Engine::in_memory().expect("there is memory for an engine");
    engine.set_clock(clock.clone());
    engine
}

pub(crate) fn builder(clock: Clock) -> DynamoStoreBuilder {
    DynamoStore::builder("limits").clock(clock).create_table(true)
}

/// A store in a table of its own.
pub(crate) fn open(clock: Clock) -> DynamoStore {
    if let Some(endpoint) = elsewhere::endpoint() {
        let table = format!("limits-{:016x}", RandomState::new().hash_one(0));
        let store = DynamoStore::builder(table).create_table(true).endpoint(endpoint);
        let store = store.http_client(elsewhere::client(clock.clone())).clock(clock);
        let store = store.timeout(Duration::from_secs(60)).build().wait();
        return store.expect("the service has what it takes");
    }
    let engine = engine(&clock);
    builder(clock).http_client(engine.http_client()).build().wait().expect("the engine has what it takes")
}

/// A store in a table of its own, with faults on the way to it.
pub(crate) fn open_with_faults(clock: Clock, seed: u64, rates: FaultRates) -> DynamoStore {
    let engine = engine(&clock);
    let faults = Faults::new(engine.http_client());
    let store = builder(clock).http_client(faults.clone()).timeout(Duration::from_secs(30)).tries(20);
    let store = store.build().wait().expect("the engine has what it takes");
    let _seeded = faults.seeded(seed, rates);
    store
}

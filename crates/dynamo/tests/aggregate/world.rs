//! A table with a limiter on it, on a manual clock, and its stream.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate::store::records::{Index, Item, Query, Records, Value};
use tollgate::{Level, Limit, Limiter, Limits, ManualClock, Span, Tick, demand};
use tollgate_dynamo::DynamoStore;
use tollgate_dynamo::aggregate::{Aggregator, BatchOutcome, StreamReader, StreamRecord, StreamStart};
use tollgate_dynamo_local::Engine;

use crate::common;

/// 2026-11-15T00:05:00Z: the first hour of a day, whose record must not be taken for that of the day.
const BEGIN: Tick = Tick::from_secs(1_794_701_100);

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) hands: ManualClock,
    pub(crate) store: DynamoStore,
    pub(crate) limiter: Limiter,
    /// The store of another process, as that of an aggregator is.
    pub(crate) other: DynamoStore,
}

impl World {
    pub(crate) fn new() -> World {
        let hands = ManualClock::at(BEGIN);
        let engine = common::engine(&hands.clock());
        let open = || {
            let store = common::builder(hands.clock()).http_client(engine.http_client());
            store.build().wait().expect("the engine has what it takes")
        };
        let (store, other) = (open(), open());
        let limiter = Limiter::open(Arc::new(store.clone()), "default").wait().expect("it can be opened");
        let limits = Limits::new([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 10_000)]);
        limiter.catalog().set_limits(Level::System, &limits.expect("they are valid")).wait().expect("stored");
        World { engine, hands, store, limiter, other }
    }

    /// An aggregator in another process.
    pub(crate) fn aggregator(&self) -> Aggregator {
        Aggregator::new(self.other.clone())
    }

    /// Takes a request and some tokens.
    pub(crate) fn take(&self, entity: &str, tokens: u64) {
        let lease = self.limiter.acquire(entity, "gpt-4", demand! { rpm: 1, tpm: tokens }).wait();
        lease.expect("it is admitted").commit().wait().expect("it is written");
    }

    pub(crate) fn wait(&self, secs: u64) {
        self.hands.advance(Span::from_secs(secs));
    }

    /// All that the stream has.
    pub(crate) fn stream(&self) -> Vec<StreamRecord> {
        let mut reader =
            StreamReader::open(&self.other, StreamStart::Oldest).wait().expect("there is a stream");
        let mut records = Vec::new();
        while let Some(batch) = reader.next_batch().wait().expect("it can be read") {
            reader.pass(&batch);
            records.extend(batch.records);
        }
        records
    }

    /// What was used by an entity, as it is written down: by window, the requests, the tokens and the takes.
    pub(crate) fn usage(&self, entity: &str) -> BTreeMap<String, [i64; 3]> {
        let partition = format!("{}/USAGE#{entity}", self.limiter.catalog().namespace_id());
        let page = self.store.query(&Query::prefix(partition, "#USAGE#gpt-4#")).wait();
        let number = |value: Option<&Value>| match value {
            Some(Value::Int(number)) => *number,
            _ => 0,
        };
        let entry = |item: &Item| {
            let window = item.key.sort.trim_start_matches("#USAGE#gpt-4#").to_owned();
            (window, ["rpm", "tpm", "total_events"].map(|name| number(item.fields.get(name))))
        };
        page.expect("it can be read").items.iter().map(entry).collect()
    }

    /// Handles everything, and nothing fails.
    pub(crate) fn handle(&self, records: &[StreamRecord]) -> BatchOutcome {
        let outcome = self.aggregator().handle(records).wait();
        assert_eq!((&outcome.failed, &outcome.unreadable), (&vec![], &vec![]));
        outcome
    }

    /// The keys of all items of a namespace.
    pub(crate) fn items_of(&self, namespace: &str) -> Vec<String> {
        let found = self.store.find(Index::Namespace, &Query::prefix(namespace, "")).wait();
        let keys = found.expect("it can be read").items.into_iter();
        keys.map(|key| format!("{} {}", key.partition, key.sort)).collect()
    }
}

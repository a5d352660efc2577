//! A DynamoDB table, in the embedded engine: calls, units and processor time.

#![allow(clippy::disallowed_methods, reason = "a constant rate of calls is made by sleeping")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use aws_sdk_dynamodb::{Client, Config};
use tollgate::{Level, Limit, Limiter, Limits, NewEntity, demand};
use tollgate_dynamo::{DynamoStore, DynamoStoreBuilder};
use tollgate_dynamo_local::{Calls, Engine};

use crate::options::Effort;
use crate::single::SoloValue;
use crate::subject::{BenchOperation, each};

/// What the peer of the acquire is called.
pub(crate) const SDK: &str = "bare SDK";

const PLENTY: u64 = 1_000_000_000;
const ACQUIRES: u64 = 500;

/// The rate of acquires with prefetching, and the duration.
const PER_SECOND: u64 = 1_000;
const SECONDS: u64 = 3;

const SHARDS: u32 = 16;

struct DynamoChain {
    engine: Engine,
    limiter: Limiter,
}

fn open(choose: impl FnOnce(DynamoStoreBuilder) -> DynamoStoreBuilder) -> Result<DynamoChain> {
    let engine = Engine::in_memory()?;
    let builder = DynamoStore::builder("limits").http_client(engine.http_client()).create_table(true);
    let store = choose(builder).build().wait()?;
    let limiter = Limiter::open(Arc::new(store), "default").wait()?;
    let limits = Limits::new([Limit::per_minute("rpm", PLENTY), Limit::per_minute("tpm", PLENTY)])?;
    let catalog = limiter.catalog();
    catalog.set_limits(Level::System, &limits).wait()?;
    catalog.create_entity(NewEntity::new("team")).wait()?;
    catalog.create_entity(NewEntity::new("member").parent("team").cascades(true)).wait()?;
    Ok(DynamoChain { engine, limiter })
}

impl DynamoChain {
    /// The SDK by itself, on the same engine.
    fn client(&self) -> Client {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "bench"))
            .http_client(self.engine.http_client());
        Client::from_conf(config.build())
    }

    fn take(&self, entity: &str) -> bool {
        let attempt = self.limiter.try_acquire(entity, "gpt-4", demand! { rpm: 1, tpm: 100 }).wait();
        attempt.is_ok_and(|attempt| attempt.admitted().is_some_and(|lease| lease.commit().wait().is_ok()))
    }

    fn calls_of(&self, act: impl FnOnce() -> Result<()>) -> Result<Calls> {
        let before = self.engine.calls();
        act()?;
        Ok(self.engine.calls() - before)
    }
}

/// An acquire of two limits with a commit.
pub(crate) fn acquire() -> Result<BenchOperation> {
    let till = open(|builder| builder)?;
    ensure!(till.take("user"), "the first acquire was denied");
    Ok(each(move || till.take("user")))
}

/// The peer: the conditional update of a bucket of the same size, sent by the SDK.
pub(crate) fn bare_update() -> Result<BenchOperation> {
    let till = open(|builder| builder)?;
    ensure!(till.take("user"), "the first acquire was denied");
    let client = till.client();
    let partition = format!("{}/BUCKET#user#gpt-4#0", till.limiter.catalog().namespace_id());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let number = |number: i64| AttributeValue::N(number.to_string());
    Ok(each(move || {
        let update = client
            .update_item()
            .table_name("limits")
            .key("PK", AttributeValue::S(partition.clone()))
            .key("SK", AttributeValue::S("#STATE".into()))
            .update_expression("ADD #rt :r, #tt :t, #rc :rc, #tc :tc, #wt :w, #wc :wc SET #rf = :rf")
            .condition_expression("#rt >= :rn AND #tt >= :tn AND attribute_exists(PK)")
            .expression_attribute_names("#rt", "b_rpm_tk")
            .expression_attribute_names("#tt", "b_tpm_tk")
            .expression_attribute_names("#rc", "b_rpm_tc")
            .expression_attribute_names("#tc", "b_tpm_tc")
            .expression_attribute_names("#wt", "b_wcu_tk")
            .expression_attribute_names("#wc", "b_wcu_tc")
            .expression_attribute_names("#rf", "rf")
            .expression_attribute_values(":r", number(-1_000))
            .expression_attribute_values(":t", number(-100_000))
            .expression_attribute_values(":rc", number(1_000))
            .expression_attribute_values(":tc", number(100_000))
            .expression_attribute_values(":w", number(-1_000))
            .expression_attribute_values(":wc", number(1_000))
            .expression_attribute_values(":rn", number(1_000))
            .expression_attribute_values(":tn", number(100_000))
            .expression_attribute_values(":rf", number(1_800_000_000_000))
            .return_values(ReturnValue::AllNew);
        runtime.block_on(update.send()).is_ok()
    }))
}

/// Calls for a warm acquire: one write.
pub(crate) fn calls_of_acquire(_: &Effort) -> Result<SoloValue> {
    calls_of("user")
}

/// Calls for a warm acquire that cascades: two writes.
pub(crate) fn calls_of_cascade(_: &Effort) -> Result<SoloValue> {
    calls_of("member")
}

fn calls_of(entity: &str) -> Result<SoloValue> {
    let till = open(|builder| builder)?;
    till.engine.count_units(true);
    ensure!(till.take(entity), "the first acquire was denied");
    let calls = till.calls_of(|| {
        ensure!((0..ACQUIRES).all(|_| till.take(entity)), "an acquire was denied");
        Ok(())
    })?;
    let per = |count: f64| count / ACQUIRES as f64;
    let reads = calls.reads();
    let units = per(calls.write_units);
    let index = per(calls.index_units);
    let detail = format!("{reads} reads, {units:.2} write units each, {index:.2} in indexes");
    Ok(SoloValue { value: per(calls.all() as f64), detail })
}

/// Measures the calls a second while 1,000 acquires a second are served from prefetched credit.
pub(crate) fn calls_ahead(_: &Effort) -> Result<SoloValue> {
    let till = open(|builder| builder.prefetch(5, Duration::from_secs(1)))?;
    ensure!(till.take("user"), "the first acquire was denied");
    let calls = till.calls_of(|| {
        let clock = tollgate::Clock::system();
        let pause = Duration::from_micros(1_000_000 / PER_SECOND);
        let start = clock.now();
        for number in 0..PER_SECOND * SECONDS {
            ensure!(till.take("user"), "an acquire was denied");
            let due = pause.saturating_mul(u32::try_from(number)?);
            let passed = clock.now().since(start).to_duration();
            std::thread::sleep(due.saturating_sub(passed));
        }
        Ok(())
    })?;
    let detail = format!("{PER_SECOND} acquires/s for {SECONDS} s, at most 5% of the capacity ahead");
    Ok(SoloValue { value: calls.all() as f64 / SECONDS as f64, detail })
}

/// How uneven the load of one hot entity is over 16 items: the busiest over the mean, less one, in percent.
pub(crate) fn unevenness(_: &Effort) -> Result<SoloValue> {
    let till = Arc::new(open(|builder| builder.shards(SHARDS, SHARDS))?);
    ensure!(till.take("user"), "the first acquire was denied");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let till = Arc::clone(&till);
            std::thread::spawn(move || (0..ACQUIRES).filter(|_| till.take("user")).count() as u64)
        })
        .collect();
    let admitted: Result<u64, _> =
        threads.into_iter().map(std::thread::JoinHandle::join).sum::<std::thread::Result<u64>>();
    let admitted = admitted.map_err(|_| anyhow::anyhow!("a thread panicked"))?;
    ensure!(admitted == 4 * ACQUIRES, "{admitted} of {} were admitted", 4 * ACQUIRES);
    let writes = writes_of_items(&till)?;
    let mean = writes.iter().sum::<f64>() / writes.len() as f64;
    let most = writes.iter().copied().fold(0.0, f64::max);
    let detail = format!("{} items, {admitted} acquires of 4 threads, none refused", writes.len());
    Ok(SoloValue { value: (most / mean - 1.0) * 100.0, detail })
}

/// How often each item of the bucket was written.
fn writes_of_items(till: &DynamoChain) -> Result<Vec<f64>> {
    let client = till.client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let namespace = till.limiter.catalog().namespace_id();
    (0..SHARDS)
        .map(|shard| {
            let partition = AttributeValue::S(format!("{namespace}/BUCKET#user#gpt-4#{shard}"));
            let get = client.get_item().table_name("limits").key("PK", partition);
            let item = runtime.block_on(get.key("SK", AttributeValue::S("#STATE".into())).send())?.item;
            let item = item.with_context(|| format!("item {shard} does not exist"))?;
            let count = item.get("rv").and_then(|count| count.as_n().ok()).context("it is not counted")?;
            Ok(count.parse()?)
        })
        .collect()
}

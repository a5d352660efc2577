//! Tables that fit and tables that do not, the time of the service, and stores in any thread or task.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType,
};
use common::{builder, engine};
use tollgate_core::Tick;
use tollgate_dynamo::{DynamoOpenError, DynamoStore, ServiceError};
use tollgate_dynamo_local::{CallFault, Engine, Faults};
use tollgate_store::records::{Item, ItemKey, Records, Write};
use tollgate_store::{Clock, ManualClock, Store};

fn clock() -> Clock {
    ManualClock::at(Tick::from_secs(1_000_000)).clock()
}

/// The SDK itself, for tables that the store would not make.
fn sdk(engine: &Engine) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("a", "b", None, None, "test"))
        .http_client(engine.http_client());
    Client::from_conf(config.build())
}

fn keys(partition: &str, sort: &str) -> Vec<KeySchemaElement> {
    let key =
        |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    vec![key(partition, KeyType::Hash), key(sort, KeyType::Range)]
}

/// A table with these keys and indexes of everything.
fn make_table(engine: &Engine, partition: &str, indexes: &[&str]) {
    let text = |name: &str| {
        let definition = AttributeDefinition::builder().attribute_name(name);
        definition.attribute_type(ScalarAttributeType::S).build().unwrap()
    };
    let mut table = sdk(engine)
        .create_table()
        .table_name("limits")
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(keys(partition, "SK")))
        .attribute_definitions(text(partition))
        .attribute_definitions(text("SK"));
    for name in indexes {
        let (partition, sort) = (format!("{name}PK"), format!("{name}SK"));
        let all = Projection::builder().projection_type(ProjectionType::All).build();
        let index = GlobalSecondaryIndex::builder().index_name(*name).projection(all);
        table = table
            .attribute_definitions(text(&partition))
            .attribute_definitions(text(&sort))
            .global_secondary_indexes(index.set_key_schema(Some(keys(&partition, &sort))).build().unwrap());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(table.send()).unwrap();
}

fn open(engine: &Engine) -> Result<DynamoStore, DynamoOpenError> {
    DynamoStore::builder("limits").clock(clock()).http_client(engine.http_client()).build().wait()
}

#[test]
fn a_table_that_is_not_there_is_said_to_be() {
    let error = open(&engine(&clock())).unwrap_err();
    assert_eq!(error, DynamoOpenError::NoTable("limits".into(), "us-east-1".into()));
}

#[test]
fn a_table_is_made_once_and_opened_again() {
    let engine = engine(&clock());
    for _ in 0..2 {
        let store = builder(clock()).http_client(engine.http_client()).build().wait().unwrap();
        assert_eq!(store.table(), "limits");
    }
    assert_eq!(engine.calls().of("CreateTable"), 1);
    let opened = engine.calls();
    open(&engine).unwrap();
    let calls = engine.calls() - opened;
    assert_eq!(calls.of("DescribeTable"), 1);
}

#[test]
fn those_who_make_a_table_at_once_share_it() {
    let engine = engine(&clock());
    let faults = Faults::new(engine.http_client());
    faults.next_of("CreateTable", CallFault::LostAfter);
    let open = || builder(clock()).http_client(faults.clone()).build();
    let opening = [open(), open(), open()];
    assert!(opening.into_iter().all(|opening| opening.wait().is_ok()));
}

#[test]
fn a_table_with_indexes_of_everything_is_accepted() {
    let engine = engine(&clock());
    make_table(&engine, "PK", &["GSI1", "GSI2", "GSI3", "GSI4"]);
    open(&engine).unwrap();
}

#[test]
fn a_table_that_does_not_fit_is_told_all_that_is_wrong() {
    let engine = engine(&clock());
    make_table(&engine, "Id", &["GSI1", "GSI3"]);
    let Err(DynamoOpenError::Unfit { table, faults }) = open(&engine) else { panic!("it was opened") };
    assert_eq!(table, "limits");
    let expected = [
        "the partition key of the table is \"Id\" and has to be \"PK\"",
        "index GSI2 by GSI2PK and GSI2SK is missing",
        "index GSI4 by GSI4PK and GSI4SK is missing",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn what_is_wrong_with_the_settings_is_said() {
    for endpoint in ["127.0.0.1:8000", "http://me:secret@127.0.0.1"] {
        let error = DynamoStore::builder("limits").endpoint(endpoint).build().wait().unwrap_err();
        assert!(matches!(&error, DynamoOpenError::BadSetting(why) if !why.contains("secret")), "{error}");
    }
    let error = DynamoStore::builder("").http_client(engine(&clock()).http_client()).build().wait();
    assert!(matches!(error, Err(DynamoOpenError::BadSetting(_))));
}

#[test]
fn a_service_that_is_away_or_forbidden_is_told_apart() {
    let faults = Faults::new(engine(&clock()).http_client());
    let open =
        || DynamoStore::builder("limits").clock(clock()).http_client(faults.clone()).tries(2).build().wait();
    faults.next(CallFault::AccessDenied);
    assert!(matches!(open(), Err(DynamoOpenError::Refused(_, ServiceError::AccessDenied(_)))));
    faults.next(CallFault::LostBefore);
    faults.next(CallFault::LostBefore);
    assert!(matches!(open(), Err(DynamoOpenError::Unavailable { error: ServiceError::Lost(_), .. })));
    let nobody = DynamoStore::builder("limits").endpoint("http://127.0.0.1:1").tries(2);
    assert!(matches!(nobody.build().wait(), Err(DynamoOpenError::Unavailable { .. })));
}

/// How far a store's clock is ahead of the system's, in milliseconds.
fn ahead_ms(store: &DynamoStore) -> i64 {
    let millis = |tick: Tick| (tick.as_micros() / 1_000) as i64;
    millis(store.clock().now()) - millis(Clock::system().now())
}

#[test]
fn a_host_whose_clock_is_off_goes_by_the_service() {
    for off in [-300_000_i64, -3_000, 3_000, 300_000] {
        let engine = Engine::in_memory().unwrap();
        engine.set_time(move || Clock::system().now().as_micros().saturating_add_signed(off * 1_000));
        let builder = DynamoStore::builder("limits").http_client(engine.http_client()).create_table(true);
        let store = builder.build().wait().unwrap();
        let error = ahead_ms(&store) - off;
        assert!(error.abs() <= 1_500, "{off}: off by {error} ms");
    }
}

#[test]
fn a_host_whose_clock_is_right_is_left_alone() {
    let engine = Engine::in_memory().unwrap();
    let builder = DynamoStore::builder("limits").http_client(engine.http_client()).create_table(true);
    let store = builder.build().wait().unwrap();
    assert!(ahead_ms(&store).abs() <= 5);
}

#[test]
fn a_service_whose_time_changes_is_followed_also_by_its_refusals() {
    let off = Arc::new(AtomicI64::new(0));
    let engine = Engine::in_memory().unwrap();
    let by = Arc::clone(&off);
    engine
        .set_time(move || Clock::system().now().as_micros().saturating_add_signed(by.load(Ordering::SeqCst)));
    let builder = DynamoStore::builder("limits").http_client(engine.http_client()).create_table(true);
    let store = builder.build().wait().unwrap();
    off.store(300_000_000, Ordering::SeqCst);
    let sdk = sdk(&engine);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(sdk.delete_table().table_name("limits").send()).unwrap();
    store.get_many(&[ItemKey::new("ns/A", "1")]).wait().unwrap_err();
    assert!((ahead_ms(&store) - 300_000).abs() <= 1_500, "{}", ahead_ms(&store));
}

#[test]
fn a_store_is_used_from_any_thread_and_task_and_dropped_anywhere() {
    let engine = engine(&clock());
    let item = Item::new(ItemKey::new("ns/A", "1")).with("n", 1);
    let write = [Write::Put(item.clone(), vec![])];
    let store = builder(clock()).http_client(engine.http_client()).build().wait().unwrap();
    store.write(&write).wait().unwrap();
    drop(store);
    let runtimes = [
        tokio::runtime::Builder::new_current_thread().build().unwrap(),
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(),
    ];
    for runtime in runtimes {
        let (engine, keys, item) = (engine.clone(), [item.key.clone()], item.clone());
        runtime.block_on(async move {
            let store = builder(clock()).http_client(engine.http_client()).build().await.unwrap();
            assert_eq!(store.get_many(&keys).await, Ok(vec![Some(item)]));
            // Given up at once, and the store goes with it.
            drop(store.get_many(&keys));
            drop(store);
            assert!(open(&Engine::in_memory().unwrap()).is_err());
        });
    }
}

#[test]
fn a_call_that_is_given_up_while_it_waits_does_no_harm() {
    let engine = engine(&clock());
    let faults = Faults::new(engine.http_client());
    let store = builder(clock()).http_client(faults.clone()).build().wait().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let keys = [ItemKey::new("ns/A", "1")];
    runtime.block_on(async {
        faults.next(CallFault::Slow(Duration::from_secs(60)));
        let given_up = tokio::time::timeout(Duration::from_millis(20), store.get_many(&keys)).await;
        assert!(given_up.is_err());
        assert_eq!(store.get_many(&keys).await, Ok(vec![None]));
    });
}

#[test]
fn a_store_reaches_its_table_over_a_port() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let engine = Engine::in_memory().unwrap();
    let server = runtime.spawn(tollgate_dynamo_local::serve(engine.clone(), listener));
    let open =
        |creates| DynamoStore::builder("limits").endpoint(&endpoint).create_table(creates).build().wait();
    assert_eq!(
        open(false).unwrap_err(),
        DynamoOpenError::NoTable("limits".into(), format!("us-east-1 at {endpoint}"))
    );
    let store = open(true).unwrap();
    let item = Item::new(ItemKey::new("ns/A", "1")).with("n", 1);
    let writes = [Write::Put(item.clone(), vec![]), Write::Put(Item::new(ItemKey::new("ns/A", "2")), vec![])];
    store.write(&writes).wait().unwrap();
    let read = |(store, item): (DynamoStore, Item)| {
        let found = store.get_many(std::slice::from_ref(&item.key)).wait();
        found == Ok(vec![Some(item)])
    };
    let threads: Vec<_> =
        vec![(store, item); 4].into_iter().map(|both| std::thread::spawn(move || read(both))).collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    assert_eq!((engine.calls().of("TransactWriteItems"), engine.calls().of("GetItem")), (1, 4));
    server.abort();
}

/// The variable that says that the process is a child.
const CHILD: &str = "TOLLGATE_TEST_CHILD";

/// Only does something as a child, on whose host there is nothing to sign calls with.
#[test]
fn child_without_credentials() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let error = DynamoStore::builder("limits").build().wait().unwrap_err();
    std::io::Write::write_all(&mut std::io::stdout(), format!("said: {error}\n").as_bytes()).unwrap();
}

#[test]
fn a_host_without_credentials_is_told_so_and_where_they_were_looked_for() {
    let this = std::env::current_exe().unwrap();
    let child = std::process::Command::new(this)
        .args(["--exact", "child_without_credentials", "--nocapture"])
        .env_clear()
        .envs([(CHILD, "1"), ("AWS_REGION", "eu-west-1"), ("AWS_EC2_METADATA_DISABLED", "true")])
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    let said = said.split("said: ").nth(1).unwrap_or_else(|| panic!("{child:?}"));
    for place in ["no credentials", "environment (AWS_ACCESS_KEY_ID)", "profile (AWS_PROFILE)", "instance"] {
        assert!(said.contains(place), "{said}");
    }
}

#[test]
fn an_answer_that_does_not_end_is_broken_off() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1 << 16];
        let _ = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\n\r\n{\"a\":\"")
            .unwrap();
        let chunk = vec![b'x'; 1 << 16];
        let mut sent = 0_u64;
        while stream.write_all(&chunk).is_ok() && sent < 1 << 30 {
            sent += chunk.len() as u64;
        }
        sent
    });
    let store = DynamoStore::builder("limits").endpoint(endpoint).tries(1).timeout(Duration::from_secs(120));
    let error = store.build().wait().unwrap_err();
    assert!(matches!(error, DynamoOpenError::Unavailable { .. }), "{error}");
    let sent = server.join().unwrap();
    assert!(sent < 100 << 20, "{sent} bytes were taken");
}

//! A table that the original system wrote is read, and gone on with.

mod common;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use tollgate::catalog::{CatalogError, Registry, UsageQuery, Window};
use tollgate::{Level, Limit, Limiter, Limits, calendar, demand};
use tollgate_core::{Span, Tick};
use tollgate_dynamo_local::Engine;
use tollgate_store::{Backend, ManualClock, Scope};

use common::raw::{number, put, text};

const START: Tick = Tick::from_secs(1_800_000_000);
const NS: &str = "aB3_-xyz012";

/// What the original writes, attribute by attribute.
fn fill(engine: &Engine) {
    let millis = START.as_micros() as i64 / 1_000;
    put(
        engine,
        vec![
            ("PK", text("_/SYSTEM#")),
            ("SK", text("#VERSION")),
            ("schema_version", text("0.10.0")),
            ("lambda_version", text("0.10.1")),
            ("client_min_version", text("0.0.0")),
            ("updated_at", text("2026-01-01T00:00:00+00:00")),
            ("updated_by", AttributeValue::Null(true)),
        ],
    );
    for sort in ["#NAMESPACE#default".to_owned(), format!("#NSID#{NS}")] {
        put(
            engine,
            vec![
                ("PK", text("_/SYSTEM#")),
                ("SK", text(&sort)),
                ("namespace_id", text(NS)),
                ("namespace_name", text("default")),
                ("status", text("active")),
                ("created_at", text("2026-01-01T00:00:00+00:00")),
                ("GSI4PK", text("_")),
                ("GSI4SK", text("_/SYSTEM#")),
            ],
        );
    }
    for (id, parent, cascade) in [("team", None, false), ("user", Some("team"), true)] {
        let mut entity = vec![
            ("PK", text(&format!("{NS}/ENTITY#{id}"))),
            ("SK", text("#META")),
            ("entity_id", text(id)),
            ("name", text(id)),
            ("parent_id", parent.map_or(AttributeValue::Null(true), text)),
            ("cascade", AttributeValue::Bool(cascade)),
            ("metadata", AttributeValue::M(HashMap::from([("tier".to_owned(), text("gold"))]))),
            ("created_at", text("2026-01-01T00:00:00+00:00")),
            ("pgen", number(1_767_225_600_000)),
            ("pinc", text("0fefd36224cfbbf2")),
            ("GSI4PK", text(NS)),
            ("GSI4SK", text(&format!("{NS}/ENTITY#{id}"))),
        ];
        if let Some(parent) = parent {
            entity.push(("GSI1PK", text(&format!("{NS}/PARENT#{parent}"))));
            entity.push(("GSI1SK", text(&format!("CHILD#{id}"))));
        }
        put(engine, entity);
    }
    put(
        engine,
        vec![
            ("PK", text(&format!("{NS}/RESOURCE#gpt-4"))),
            ("SK", text("#CONFIG")),
            ("resource", text("gpt-4")),
            ("config_version", number(3)),
            ("l_rpm_cp", number(100)),
            ("l_rpm_ra", number(100)),
            ("l_rpm_rp", number(60)),
            ("l_tpm_cp", number(10_000)),
            ("l_tpm_ra", number(10_000)),
            ("l_tpm_rp", number(60)),
        ],
    );
    put(
        engine,
        vec![
            ("PK", text(&format!("{NS}/BUCKET#user#gpt-4#0"))),
            ("SK", text("#STATE")),
            ("entity_id", text("user")),
            ("resource", text("gpt-4")),
            ("shard_count", number(1)),
            ("rf", number(millis)),
            ("cascade", AttributeValue::Bool(true)),
            ("parent_id", text("team")),
            ("ttl", number(millis / 1_000 + 420)),
            ("b_rpm_tk", number(40_000)),
            ("b_rpm_cp", number(100_000)),
            ("b_rpm_ra", number(100_000)),
            ("b_rpm_rp", number(60_000)),
            ("b_rpm_tc", number(60_000)),
            ("b_tpm_tk", number(-500_000)),
            ("b_tpm_cp", number(10_000_000)),
            ("b_tpm_ra", number(10_000_000)),
            ("b_tpm_rp", number(60_000)),
            ("b_tpm_tc", number(10_500_000)),
            ("b_wcu_tk", number(999_000)),
            ("b_wcu_cp", number(1_000_000)),
            ("b_wcu_ra", number(1_000_000)),
            ("b_wcu_rp", number(1_000)),
            ("b_wcu_tc", number(1_000)),
            ("GSI2PK", text(&format!("{NS}/RESOURCE#gpt-4"))),
            ("GSI2SK", text("BUCKET#user#0")),
            ("GSI3PK", text(&format!("{NS}/ENTITY#user"))),
            ("GSI3SK", text("BUCKET#gpt-4#0")),
            ("GSI4PK", text(NS)),
            ("GSI4SK", text("BUCKET#user#gpt-4#0")),
        ],
    );
}

/// What the original's function for manifests writes: one of the two keys of GSI4, so that the record is in no index.
fn put_applied(engine: &Engine, partition: &str, sort: &str, said: Vec<(&str, AttributeValue)>) {
    let partition = format!("{NS}/{partition}");
    let mut record = vec![("PK", text(&partition)), ("SK", text(sort)), ("GSI4PK", text(NS))];
    record.extend(said);
    put(engine, record);
}

fn limits_and(more: Vec<(&str, AttributeValue)>) -> Vec<(&str, AttributeValue)> {
    let limits = [("l_rpm_cp", number(5)), ("l_rpm_ra", number(5)), ("l_rpm_rp", number(60))];
    limits.into_iter().chain(more).collect()
}

/// The namespaces of all items in the table.
fn namespaces(engine: &Engine) -> BTreeSet<String> {
    let scan = common::raw::client(engine).scan().table_name("limits");
    let items = common::raw::wait(scan.send()).expect("it answers").items.unwrap_or_default();
    let namespace =
        |item: &common::raw::Attributes| item["PK"].as_s().ok()?.split('/').next().map(str::to_owned);
    items.iter().filter_map(namespace).collect()
}

#[test]
fn what_a_manifest_of_the_original_declared_is_taken_over_though_no_index_has_it() {
    let hands = ManualClock::at(START);
    let engine = common::engine(&hands.clock());
    let store = common::builder(hands.clock()).http_client(engine.http_client()).build().wait();
    let store = Arc::new(store.expect("the engine has what it takes"));
    fill(&engine);
    let yes = || AttributeValue::Bool(true);
    put_applied(&engine, "SYSTEM#", "#CONFIG", limits_and(vec![("on_unavailable", text("block"))]));
    put_applied(&engine, "RESOURCE#off", "#CONFIG", vec![("resource", text("off")), ("disabled", yes())]);
    let soft = limits_and(vec![("resource", text("soft")), ("l_rpm_soft", yes())]);
    put_applied(&engine, "RESOURCE#soft", "#CONFIG", soft);
    let mine = vec![("entity_id", text("team")), ("resource", text("mine")), ("disabled", yes())];
    put_applied(&engine, "ENTITY#team", "#CONFIG#mine", limits_and(mine));
    put_applied(&engine, "SYSTEM#", "#PROVISIONER", vec![("applied_hash", text("sha256:0"))]);

    let registry = Registry::new(store);
    let lost = registry.migration().wait().expect("it answers").expect("it is older").lost;
    assert!(lost.len() == 1 && lost[0].what.contains("#PROVISIONER"), "{lost:?}");
    assert_eq!(registry.migrate().wait(), Err(CatalogError::WouldLose(lost)));
    registry.migrate_anyway().wait().expect("what has no form here may go");

    let catalog = registry.open("default").wait().expect("it answers");
    let chain = |resource: &'static str| catalog.chain("team", resource).wait();
    for resource in ["off", "mine"] {
        assert!(matches!(chain(resource), Err(CatalogError::Disabled { .. })), "{resource}");
    }
    assert!(chain("soft").expect("it is enabled").links[0].limits[0].is_shadow(), "it never refuses");
    assert!(!chain("other").expect("it is enabled").links[0].limits[0].is_shadow());
    // What was in no index and in no list is in them now.
    let listed = catalog.resources_with_limits().wait().expect("it answers");
    assert_eq!(listed, ["gpt-4", "off", "soft"]);
    let custom = catalog.entities_with_limits("mine", Default::default()).wait().expect("it answers").items;
    assert_eq!(custom, ["team"]);
    assert_eq!(registry.inspect().wait().expect("it answers").findings, []);
    registry.delete("default").wait().expect("it answers");
    registry.purge(NS, |_| ()).wait().expect("it answers");
    assert_eq!(namespaces(&engine), BTreeSet::from(["_".to_owned()]), "everything of the namespace is gone");
}

#[test]
fn a_table_of_the_original_is_taken_over() {
    let hands = ManualClock::at(START);
    let engine = common::engine(&hands.clock());
    let store = common::builder(hands.clock()).http_client(engine.http_client()).build().wait();
    let store = Arc::new(store.expect("the engine has what it takes"));
    fill(&engine);
    let upgraded = Registry::new(store.clone()).migrate().wait();
    upgraded.expect("it is older, and can be upgraded");
    let limiter = Limiter::open(store, "default").wait().expect("it answers");
    let catalog = limiter.catalog();
    assert_eq!(catalog.namespace_id(), NS);
    let user = catalog.entity("user").wait().expect("it answers").expect("it is there");
    assert_eq!(
        (user.parent.as_deref(), user.cascades, user.metadata["tier"].as_str()),
        (Some("team"), true, "gold")
    );

    let standing = limiter.available("user", "gpt-4").wait().expect("it answers");
    assert_eq!((standing.available("rpm"), standing.available("tpm")), (Some(40), Some(-500)));
    let attempt =
        limiter.try_acquire("user", "gpt-4", demand! { rpm: 1, tpm: 1 }).wait().expect("it answers");
    let denied = attempt.denied().expect("it is in debt");
    assert_eq!(denied.retry_after().map(|wait| wait.as_millis()), Some(3_006), "501 of 10,000 a minute");
    // Three seconds earn 500 tokens, and five requests.
    hands.advance(Span::from_millis(3_600));
    let lease =
        limiter.acquire("user", "gpt-4", demand! { rpm: 46, tpm: 100 }).wait().expect("now there are");
    lease.commit().wait().expect("it answers");
    let standing = limiter.available("user", "gpt-4").wait().expect("it answers");
    assert_eq!((standing.available("rpm"), standing.available("tpm")), (Some(0), Some(0)));
    let parent = limiter.available("team", "gpt-4").wait().expect("it answers");
    assert_eq!((parent.available("rpm"), parent.available("tpm")), (Some(54), Some(9_900)));

    // What the original counted is its own; what we count is added to it.
    let usage = catalog.usage(UsageQuery::of_entity("user", Window::Day)).wait().expect("it answers").items;
    let told: Vec<_> = usage.iter().map(|row| (row.events, row.amounts["rpm"], row.amounts["tpm"])).collect();
    assert_eq!(told, [(1, 46, 100)]);
    assert_eq!(catalog.children("team", Default::default()).wait().expect("it answers").items.len(), 1);
}

#[test]
fn a_limit_that_cannot_be_read_is_listed_and_dropped_alone() {
    let hands = ManualClock::at(START);
    let engine = common::engine(&hands.clock());
    let store = common::builder(hands.clock()).http_client(engine.http_client()).build().wait();
    let store = Arc::new(store.expect("the engine has what it takes"));
    fill(&engine);
    let partition = format!("{NS}/RESOURCE#gpt-4");
    let mut config = common::raw::get(&engine, &partition, "#CONFIG").expect("it is there");
    let quota = [("cp", number(100)), ("ra", number(0)), ("rp", number(1)), ("rsched", text("1m0h0"))];
    config.extend(quota.map(|(suffix, value)| (format!("l_rpd_{suffix}"), value)));
    put(&engine, config.iter().map(|(name, value)| (name.as_str(), value.clone())).collect());
    let registry = Registry::new(store.clone());
    let plan = registry.migration().wait().expect("it is older").expect("there is something to do");
    let problems: Vec<&str> = plan.lost.iter().map(|finding| finding.problem.as_str()).collect();
    assert!(problems.iter().any(|problem| problem.contains("limit \"rpd\" cannot be read")), "{problems:?}");
    assert!(registry.migrate().wait().is_err());
    registry.migrate_anyway().wait().expect("it drops the quota");
    let limiter = Limiter::open(store, "default").wait().expect("it answers");
    let stored = limiter.catalog().limits(Level::Resource("gpt-4")).wait().expect("it can be read");
    let stored = stored.expect("the other limits stay");
    assert_eq!(
        stored.limits.iter().map(|limit| limit.name().to_string()).collect::<Vec<_>>(),
        ["rpm", "tpm"]
    );
}

#[test]
fn a_quota_of_the_original_begins_again_and_records_of_its_top_ups_are_no_buckets() {
    let hands = ManualClock::at(START);
    let engine = common::engine(&hands.clock());
    let store = common::builder(hands.clock()).http_client(engine.http_client()).build().wait();
    let store = Arc::new(store.expect("the engine has what it takes"));
    fill(&engine);
    let partition = format!("{NS}/BUCKET#user#gpt-4#0");
    let mut bucket = common::raw::get(&engine, &partition, "#STATE").expect("it is there");
    // A quota does not refill: its reset is a schedule of the item, or a window from the first use.
    let quota = [("tk", 93_000), ("cp", 100_000), ("ra", 0), ("rp", 1_000), ("tc", 7_000), ("gc", 1)];
    bucket.extend(quota.map(|(suffix, value)| (format!("b_rpd_{suffix}"), number(value))));
    bucket.extend([("rsched", "1m0h0"), ("sched_tz", "UTC")].map(|(name, value)| (name.into(), text(value))));
    let bucket = bucket.iter().map(|(name, value)| (name.as_str(), value.clone()));
    put(&engine, bucket.collect());
    put(
        &engine,
        vec![
            ("PK", text(&partition)),
            ("SK", text("#OP#invoice-1")),
            ("operation", text("top_up")),
            ("GSI4PK", text(NS)),
            ("GSI4SK", text(&partition)),
        ],
    );
    Registry::new(store.clone()).migrate().wait().expect("it is older, and can be upgraded");

    let page = store.activity(NS, Scope::All, None).wait().expect("the record of a top-up is skipped");
    assert_eq!(page.items.len(), 1);
    let limiter = Limiter::open(store, "default").wait().expect("it answers");
    let daily = calendar::daily("UTC").expect("it is valid");
    let limits = [
        Limit::per_minute("rpm", 100).build().expect("valid"),
        Limit::quota("rpd", 100, daily).build().expect("valid"),
    ];
    let limits = Limits::new(limits).expect("they are valid");
    limiter.catalog().set_limits(Level::Resource("gpt-4"), &limits).wait().expect("it answers");
    let lease = limiter.acquire("user", "gpt-4", demand! { rpm: 1, rpd: 10 }).wait().expect("they are there");
    lease.commit().wait().expect("it answers");
    let status = limiter.available("user", "gpt-4").wait().expect("it answers");
    assert_eq!((status.available("rpm"), status.available("rpd")), (Some(39), Some(90)));
}

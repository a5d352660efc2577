//! What clients of each kind really ask for, and whether their policy lets them.

use std::sync::Arc;

use tollgate::catalog::{Level, NewEntity, UsageQuery, Waiter, Window};
use tollgate::{Limit, Limiter, Limits, demand};
use tollgate_core::{Span, Tick};
use tollgate_dynamo::DynamoStore;
use tollgate_dynamo::aggregate::{Aggregator, Start, StreamReader};
use tollgate_dynamo_local::Engine;
use tollgate_store::ManualClock;

use crate::calls::Recorder;
use crate::policy::{Policy, Request};
use crate::{common, policy};

const START: Tick = Tick::from_secs(1_800_000_000);
const SEEN_FOR: Span = Span::from_secs(5);

struct World {
    hands: ManualClock,
    engine: Engine,
    recorder: Recorder,
    /// One who may do everything.
    owner: Limiter,
}

impl World {
    fn new() -> World {
        let hands = ManualClock::at(START);
        let engine = common::engine(&hands.clock());
        let store = common::builder(hands.clock()).http_client(engine.http_client()).build().wait();
        let store = Arc::new(store.expect("the engine has what it takes"));
        let owner = Limiter::open(store, "default").wait().expect("it answers");
        let catalog = owner.catalog();
        let limits = Limits::new([Limit::per_minute("rpm", 1_000), Limit::per_minute("tpm", 100_000)]);
        catalog.set_limits(Level::System, &limits.expect("they are valid")).wait().expect("it answers");
        catalog.create_entity(NewEntity::new("team")).wait().expect("it answers");
        catalog
            .create_entity(NewEntity::new("user").parent("team").cascades(true))
            .wait()
            .expect("it answers");
        let recorder = Recorder::new(engine.http_client());
        World { hands, engine, recorder, owner }
    }

    fn store(&self, shards: u32) -> DynamoStore {
        let store = DynamoStore::builder("limits").clock(self.hands.clock()).shards(shards, 32);
        store.http_client(self.recorder.clone()).build().wait().expect("the table is there")
    }

    fn limiter(&self, shards: u32) -> Limiter {
        Limiter::open(Arc::new(self.store(shards)), "default").wait().expect("it answers")
    }

    fn namespace(&self) -> String {
        self.owner.catalog().namespace_id().to_owned()
    }
}

/// Everything that a program does which calls something expensive.
fn acquire(world: &World, shards: u32) {
    let limiter = world.limiter(shards);
    for entity in ["user", "team", "other"] {
        for round in 0..4 {
            let lease =
                limiter.acquire(entity, "gpt-4", demand! { rpm: 1, tpm: 500 }).wait().expect("there is room");
            match round {
                0 => lease.settle(demand! { tpm: 700 }).wait().expect("it answers"),
                1 => lease.settle(demand! { tpm: 20 }).wait().expect("it answers"),
                2 => lease.cancel().wait().expect("it answers"),
                _ => lease.commit().wait().expect("it answers"),
            };
            world.hands.advance(Span::from_secs(1_800));
        }
    }
    let refused = limiter.acquire("user", "gpt-4", demand! { rpm: 1_000 }).wait();
    let again = limiter.acquire("user", "gpt-4", demand! { rpm: 1_000 }).wait();
    assert!(refused.is_ok() && again.is_err_and(|error| error.refusal().is_some()));
    limiter.available("user", "gpt-4").wait().expect("it answers");
    let catalog = limiter.catalog();
    let waiter = Waiter::new("user", "gpt-4", world.hands.clock().now(), 7, "host");
    let seen = catalog.show_waiter(&waiter, SEEN_FOR).wait().expect("it answers").expect("there is a place");
    assert!(catalog.renew_waiter(&seen, SEEN_FOR).wait().expect("it answers"));
    catalog.withdraw_waiter(&seen).wait().expect("it answers");
    for query in [UsageQuery::of_entity("user", Window::Hour), UsageQuery::of_resource("gpt-4", Window::Day)]
    {
        assert!(!catalog.usage(query).wait().expect("it answers").items.is_empty());
    }
    catalog
        .backend()
        .write(&catalog.ticket_writes(7, tollgate_core::Tick::MAX, "me"))
        .wait()
        .expect("it answers");
}

fn assert_all_allowed(policy: &Policy, requests: &[Request], tag: Option<&str>) {
    assert!(!requests.is_empty());
    for request in requests {
        assert!(policy.allows(request, tag), "{request:?}");
    }
}

fn is_write(request: &Request) -> bool {
    ["Put", "Update", "Delete"].iter().any(|verb| request.action.contains(verb))
}

#[test]
fn a_program_that_acquires_needs_no_more_than_the_policy_for_it() {
    for shards in [1, 4] {
        let world = World::new();
        acquire(&world, shards);
        let (requests, namespace) = (world.recorder.take(), world.namespace());
        assert!(requests.iter().filter(|request| is_write(request)).count() > 10);
        assert_all_allowed(&policy("AcquirePolicy"), &requests, None);
        assert_all_allowed(&policy("FullPolicy"), &requests, None);
        assert_all_allowed(&policy("TenantAcquirePolicy"), &requests, Some(&namespace));
        assert_all_allowed(&policy("TenantFullPolicy"), &requests, Some(&namespace));
        // The writes and the secret that seals tickets are the difference to those who look.
        let is_for_readers = |request: &Request| {
            !is_write(request) && !request.leading_keys.iter().any(|key| key.ends_with("/SECRET"))
        };
        let (readers, tenants) = (policy("ReadPolicy"), policy("TenantReadPolicy"));
        for request in &requests {
            assert_eq!(readers.allows(request, None), is_for_readers(request), "{request:?}");
            assert_eq!(tenants.allows(request, Some(&namespace)), is_for_readers(request), "{request:?}");
        }
    }
}

#[test]
fn who_changes_limits_needs_the_full_policy() {
    let world = World::new();
    let limiter = world.limiter(1);
    world.recorder.take();
    let (catalog, namespace) = (limiter.catalog(), world.namespace());
    let limits = Limits::new([Limit::per_minute("rpm", 5)]).expect("they are valid");
    let changes: [&dyn Fn(); 6] = [
        &|| catalog.set_limits(Level::System, &limits).wait().expect("it answers"),
        &|| catalog.set_limits(Level::Resource("gpt-4"), &limits).wait().expect("it answers"),
        &|| catalog.set_limits(Level::Entity("user"), &limits).wait().expect("it answers"),
        &|| drop(catalog.create_entity(NewEntity::new("new")).wait().expect("it answers")),
        &|| assert!(catalog.disable_resource("gpt-4").wait().expect("it answers")),
        &|| catalog.delete_entity("user").wait().expect("it answers"),
    ];
    for change in changes {
        change();
        let requests = world.recorder.take();
        let is_denied =
            |policy: &str, tag| requests.iter().any(|request| !crate::policy(policy).allows(request, tag));
        assert!(is_denied("AcquirePolicy", None), "{requests:?}");
        assert!(is_denied("TenantAcquirePolicy", Some(&*namespace)), "{requests:?}");
        assert_all_allowed(&policy("FullPolicy"), &requests, None);
        assert_all_allowed(&policy("TenantFullPolicy"), &requests, Some(&namespace));
        assert!(is_denied("TenantFullPolicy", Some("another")), "{requests:?}");
        assert!(is_denied("TenantFullPolicy", None), "{requests:?}");
    }
}

#[test]
fn the_function_writes_usage_with_the_role_of_its_own() {
    let world = World::new();
    acquire(&world, 1);
    let other = common::builder(world.hands.clock()).http_client(world.engine.http_client()).build().wait();
    let mut reader = StreamReader::open(&other.expect("the table is there"), Start::Oldest)
        .wait()
        .expect("it has a stream");
    let aggregator = Aggregator::new(world.store(1));
    world.recorder.take();
    while let Some(batch) = reader.next_batch().wait().expect("it can be read") {
        let outcome = aggregator.handle(&batch.records).wait();
        assert!(outcome.failed.is_empty());
        reader.pass(&batch);
    }
    assert_all_allowed(&policy("AggregatorRole"), &world.recorder.take(), None);
}

//! What clients of each kind really ask for, and whether their policy lets them.

use std::sync::Arc;
use std::time::Duration;

use tollgate::catalog::{Level, NewEntity, UsageQuery, WaiterRecord, Window};
use tollgate::limiter::LeaseEnd;
use tollgate::{Limit, LimitSet, Limiter, Limits, demand};
use tollgate_core::{LimitBuilder, Span, Tick};
use tollgate_dynamo::aggregate::{Aggregator, StreamReader, StreamStart};
use tollgate_dynamo::{Chains, DynamoStore};
use tollgate_dynamo_local::{CallFault, Engine, Faults};
use tollgate_store::{Backend, ManualClock};

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
        let world = World { hands, engine, recorder, owner };
        let set = world.set(Arc::clone(world.owner.catalog().backend()), set_limits());
        set.peek().wait().expect("it answers");
        world
    }

    fn store(&self, shards: u32, chains: Chains) -> DynamoStore {
        let store =
            DynamoStore::builder("limits").clock(self.hands.clock()).shards(shards, 32).chains(chains);
        store.http_client(self.recorder.clone()).build().wait().expect("the table is there")
    }

    fn limiter(&self, shards: u32, chains: Chains) -> Limiter {
        Limiter::open(Arc::new(self.store(shards, chains)), "default").wait().expect("it answers")
    }

    /// A limit set of this namespace, as a program names it that has this store.
    fn set(&self, store: Arc<dyn Backend>, limits: Vec<LimitBuilder>) -> LimitSet {
        let set = LimitSet::builder().limits(limits).name("calls").namespace(self.namespace());
        set.store(store).build().expect("they are valid")
    }

    fn namespace(&self) -> String {
        self.owner.catalog().namespace_id().to_owned()
    }
}

fn set_limits() -> Vec<LimitBuilder> {
    vec![Limit::per_minute("rpm", 1_000), Limit::resource("slots", 4)]
}

/// Everything that a program does with a limit set that another one has opened before.
fn use_set(world: &World, store: Arc<dyn Backend>) {
    let set = world.set(store, set_limits());
    let lease = set.acquire(demand! { rpm: 2, slots: 1 }).wait().expect("there is room");
    lease.settle(demand! { rpm: 1 }).wait().expect("it answers");
    let lease = set.acquire(demand! { rpm: 1, slots: 1 }).wait().expect("there is room");
    lease.cancel().wait().expect("it answers");
    set.cool_down(Duration::from_secs(1)).wait().expect("it answers");
    set.end_cool_down().wait().expect("it answers");
    set.peek().wait().expect("it answers");
}

/// Hands a call on as text, and ends it by that.
fn use_ticket(limiter: &Limiter) {
    let ticket = || {
        let call = limiter.acquire("user", "gpt-4", demand! { rpm: 1, tpm: 40 });
        let lease = call.detached(Duration::from_secs(10)).wait().expect("there is room");
        lease.into_ticket().wait().expect("it was detached")
    };
    let (used, unused) = (ticket(), ticket());
    let lease = limiter.redeem(&used).wait().expect("it is a ticket");
    lease.settle(demand! { tpm: 70 }).wait().expect("it answers");
    let lease = limiter.redeem(&unused).wait().expect("it is a ticket");
    lease.end_once(LeaseEnd::Cancel).wait().expect("it answers");
}

/// Everything that a program does which calls something expensive.
fn acquire(world: &World, shards: u32, chains: Chains) {
    let limiter = world.limiter(shards, chains);
    use_set(world, Arc::clone(limiter.catalog().backend()));
    use_ticket(&limiter);
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
    let [first, again] = [0, 1].map(|_| limiter.try_acquire("user", "gpt-4", demand! { rpm: 1_000 }).wait());
    assert!(first.expect("it answers").is_admitted() && !again.expect("it answers").is_admitted());
    limiter.available("user", "gpt-4").wait().expect("it answers");
    let catalog = limiter.catalog();
    let waiter = WaiterRecord::new("user", "gpt-4", world.hands.clock().now(), 7, "host");
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
    for (shards, chains) in [(1, Chains::Parallel), (4, Chains::Parallel), (1, Chains::Transaction)] {
        let world = World::new();
        acquire(&world, shards, chains);
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
fn usage_is_viewed_with_the_policy_for_readers() {
    let world = World::new();
    for _ in 0..3 {
        let lease = world.owner.acquire("user", "gpt-4", demand! { rpm: 1, tpm: 40 }).wait();
        lease.expect("there is room").commit().wait().expect("it answers");
        world.hands.advance(Span::from_secs(1_800));
    }
    let reader = world.limiter(1, Chains::Parallel);
    world.recorder.take();
    let (catalog, namespace) = (reader.catalog(), world.namespace());
    let month = catalog.usage(UsageQuery::of_entity("user", Window::Month)).wait().expect("it answers");
    assert_eq!(month.items.iter().map(|row| row.events).collect::<Vec<_>>(), [3]);
    let hours = catalog.usage(UsageQuery::of_all_entities(Window::Hour)).wait().expect("it answers");
    assert_eq!(hours.items.len(), 4, "two hours of the entity and of its parent");
    assert_eq!(catalog.counts().wait().expect("it answers").usage_records, 8);
    let requests = world.recorder.take();
    assert_all_allowed(&policy("ReadPolicy"), &requests, None);
    assert_all_allowed(&policy("TenantReadPolicy"), &requests, Some(&namespace));
}

#[test]
fn who_changes_limits_needs_the_full_policy() {
    let world = World::new();
    let limiter = world.limiter(1, Chains::Parallel);
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
fn the_first_open_of_a_set_needs_the_full_policy_and_later_ones_do_not() {
    let world = World::new();
    let store: Arc<dyn Backend> = Arc::new(world.store(1, Chains::Parallel));
    let namespace = world.namespace();
    let more = || [set_limits(), vec![Limit::per_day("spend", 10)]].concat();
    world.recorder.take();
    // The set is there, but without one of these limits.
    world.set(Arc::clone(&store), more()).peek().wait().expect("it answers");
    let requests = world.recorder.take();
    for (acquirer, tag) in [("AcquirePolicy", None), ("TenantAcquirePolicy", Some(&*namespace))] {
        let denied: Vec<&Request> =
            requests.iter().filter(|request| !policy(acquirer).allows(request, tag)).collect();
        let is_of_sets = |request: &&Request| request.leading_keys == [format!("{namespace}/LIMIT_SETS#")];
        assert!(!denied.is_empty() && denied.iter().all(is_of_sets), "{acquirer}: {denied:?}");
    }
    assert_all_allowed(&policy("FullPolicy"), &requests, None);
    assert_all_allowed(&policy("TenantFullPolicy"), &requests, Some(&namespace));
    for limits in [more(), set_limits()] {
        world.set(Arc::clone(&store), limits).peek().wait().expect("it answers");
        assert_all_allowed(&policy("AcquirePolicy"), &world.recorder.take(), None);
    }
}

#[test]
fn who_may_not_write_the_limits_of_a_set_is_told_what_to_do() {
    let world = World::new();
    let faults = Faults::new(world.engine.http_client());
    let store = common::builder(world.hands.clock()).http_client(faults.clone()).build().wait();
    let store: Arc<dyn Backend> = Arc::new(store.expect("the table is there"));
    let set = world.set(store, [set_limits(), vec![Limit::per_day("spend", 10)]].concat());
    faults.next_of("TransactWriteItems", CallFault::AccessDenied);
    let refused =
        set.acquire(demand! { rpm: 1 }).wait().expect_err("the limits cannot be written").to_string();
    for said in ["limit set \"calls\"", "open the set first", "no permission"] {
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn the_function_writes_usage_with_the_role_of_its_own() {
    let world = World::new();
    acquire(&world, 1, Chains::Parallel);
    let other = common::builder(world.hands.clock()).http_client(world.engine.http_client()).build().wait();
    let mut reader = StreamReader::open(&other.expect("the table is there"), StreamStart::Oldest)
        .wait()
        .expect("it has a stream");
    let aggregator = Aggregator::new(world.store(1, Chains::Parallel));
    world.recorder.take();
    while let Some(batch) = reader.next_batch().wait().expect("it can be read") {
        let outcome = aggregator.handle(&batch.records).wait();
        assert!(outcome.failed.is_empty());
        reader.pass(&batch);
    }
    assert_all_allowed(&policy("AggregatorRole"), &world.recorder.take(), None);
}

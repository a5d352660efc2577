//! A store that was used before, as only time can make one.

use std::path::Path;
use std::sync::Arc;

use tollgate::store::records::{Change, Item, ItemKey, Query, Records, Value, Write};
use tollgate::store::{Backend, BucketRef, Key, Op, Scope, Step, Store, Transaction, TxnOutcome};
use tollgate::{
    Level, Limit, LimitSet, Limiter, Limits, ManualClock, NewEntity, SETS_NAMESPACE, Span, Tick, demand,
};
use tollgate_file::FileStore;

/// 2026-01-15T12:00:00Z.
const JANUARY: Tick = Tick::from_secs(1_768_478_400);

/// Uses `user-1` and `user-2` from January to June 2026. Usage by month is kept for ten years; usage by hour and by day
/// expires sooner, so no test depends on it.
pub fn used_for_half_a_year(path: &Path) {
    let hands = ManualClock::at(JANUARY);
    let store = FileStore::builder(path).clock(hands.clock()).build().expect("the file can be made");
    let limiter = limited(store);
    for (month, tokens) in [120_000_u64, 80_000, 0, 310_000, 455_000, 20_000].into_iter().enumerate() {
        for (entity, share) in [("user-1", 4), ("user-2", 1)] {
            if tokens > 0 {
                let demand = demand! { rpm: 1 + month as u64, tpm: tokens * share / 5 };
                let lease = limiter.acquire(entity, "gpt-4", demand).wait().expect("it is admitted");
                lease.commit().wait().expect("it is written");
            }
        }
        hands.advance(Span::from_secs(30 * 86_400));
    }
}

/// Lets `count` entities acquire once in this hour, the last of them twice, in one namespace of a store. Returns the limiter.
pub fn used_by_many(store: Arc<dyn Backend>, entities: usize) -> Limiter {
    let limiter = limited_on(Arc::clone(&store));
    take_once_each(&store, &limiter, entities);
    let last = Key::new(&[&format!("user-{}", entities - 1), "gpt-4"]);
    take(&store, &limiter, &[last]);
    limiter
}

/// Lets the same entities take once more.
pub fn take_once_each(store: &Arc<dyn Backend>, limiter: &Limiter, entities: usize) {
    let keys: Vec<Key> =
        (0..entities).map(|number| Key::new(&[&format!("user-{number}"), "gpt-4"])).collect();
    keys.chunks(100).for_each(|keys| take(store, limiter, keys));
}

fn take(store: &Arc<dyn Backend>, limiter: &Limiter, keys: &[Key]) {
    let (limits, namespace) = (limits(), limiter.catalog().namespace_id());
    let costs = limits.costs(&demand! { rpm: 1, tpm: 10 }).expect("it fits");
    let place = |key| BucketRef { namespace, key, limits: &limits };
    let step = |key| Step { place: place(key), op: Op::Take { costs: &costs, term: None } };
    let steps: Vec<Step<'_>> = keys.iter().map(step).collect();
    let taken = store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait();
    assert!(matches!(taken, Ok(TxnOutcome::Done(_))), "{taken:?}");
}

/// Takes 1,500,000 tokens of `user-1`, now.
pub fn used_now(path: &Path) {
    let limiter = limited(FileStore::open(path).expect("the file can be opened"));
    let lease = limiter.acquire("user-1", "gpt-4", demand! { rpm: 1, tpm: 1_500_000 }).wait();
    lease.expect("it is admitted").commit().wait().expect("it is written");
}

/// Writes damaged records: invalid limits, and a parent that does not exist.
pub fn damage(path: &Path) {
    let store = FileStore::open(path).expect("the file can be opened");
    let limiter = open(store.clone());
    let catalog = limiter.catalog();
    catalog.create_entity(NewEntity::new("acme")).wait().expect("created");
    catalog.create_entity(NewEntity::new("key-1").parent("acme")).wait().expect("created");
    let limits = Limits::new([Limit::per_minute("rpm", 10)]).expect("they are valid");
    catalog.set_limits(Level::System, &limits).wait().expect("stored");
    let namespace = catalog.namespace_id();
    let limits = ItemKey::new(format!("{namespace}/SYSTEM#"), "#CONFIG");
    let no_capacity = Change::Set("l_rpm_cp".into(), Value::Int(0));
    let parent = ItemKey::new(format!("{namespace}/ENTITY#acme"), "#META");
    let writes = [Write::Change(limits, vec![no_capacity], Vec::new()), Write::Delete(parent, Vec::new())];
    store.write(&writes).wait().expect("written");
}

/// Makes the records look as if an earlier version had written them.
pub fn age(path: &Path) {
    let store = FileStore::open(path).expect("the file can be opened");
    let namespace = open(store.clone()).catalog().namespace_id().to_owned();
    let version = Change::Set("schema_version".into(), Value::Text("0.9.0".into()));
    let write = Write::Change(ItemKey::new("_/SYSTEM#", "#VERSION"), vec![version], Vec::new());
    // Then there were no secrets.
    let secret = Write::Delete(ItemKey::new(format!("{namespace}/SECRET"), "#TOKENS"), Vec::new());
    store.write(&[write, secret]).wait().expect("written");
}

/// Uses four limit sets, two of which are in other namespaces than the usual one. Of the last, the bucket was forgotten.
pub fn used_sets(path: &Path) {
    let store: Arc<dyn Backend> = Arc::new(FileStore::open(path).expect("the file can be opened"));
    used_sets_on(&store);
}

/// The same in a store that is open.
pub fn used_sets_on(store: &Arc<dyn Backend>) {
    for (name, namespace, used) in [
        ("openai/blue", SETS_NAMESPACE, 200),
        ("openai/green", SETS_NAMESPACE, 900),
        ("red", "accounts", 200),
        ("old", "former", 200),
    ] {
        let limits = [Limit::per_day("rpm", 1_000), Limit::resource("connections", 8)];
        let set = LimitSet::builder().limits(limits).store(Arc::clone(store)).namespace(namespace);
        let set = set.name(name).build().expect("it is valid");
        let lease = set.try_acquire(demand! { rpm: used }).wait().expect("the store answers").admitted();
        lease.expect("it fits").settle(demand! { rpm: used }).wait().expect("the store answers");
    }
    assert_eq!(store.forget("former", Scope::All).wait().expect("the store answers"), 1);
}

fn limits() -> Limits {
    let limits =
        [Limit::per_day("rpm", 1_000), Limit::per_day("tpm", 2_000_000), Limit::resource("slots", 4)];
    Limits::new(limits).expect("they are valid")
}

/// Writes records of zae-limiter: disabled entries, limits that never deny, a cascade policy and a schedule.
pub fn foreign(path: &Path) {
    age(path);
    let store = FileStore::open(path).expect("the file can be opened");
    let registry = store.query(&Query::prefix("_/SYSTEM#", "#NSID#")).wait().expect("it can be read");
    let namespace = registry.items[0].key.sort.replace("#NSID#", "");
    let limits = |resource: &str| {
        Item::new(ItemKey::new(format!("{namespace}/RESOURCE#{resource}"), "#CONFIG"))
            .with("resource", resource)
            .with("l_rpm_cp", 5)
            .with("l_rpm_ra", 5)
            .with("l_rpm_rp", 60)
    };
    let listed = ["claude:beta", "gpt-4", "image", "whisper"].map(String::from);
    let names = Item::new(ItemKey::new(format!("{namespace}/SYSTEM#"), "#RESOURCES"))
        .with("resources", Value::Set(listed.into()));
    let items = [
        limits("claude:beta"),
        limits("gpt-4").with("cascade", false).with("l_rpm_sched", "0 9 * * *"),
        limits("image").with("disabled", true),
        limits("whisper").with("l_rpm_soft", true),
        names,
    ];
    store.write(&items.map(|item| Write::Put(item, Vec::new()))).wait().expect("written");
}

fn limited(store: FileStore) -> Limiter {
    limited_on(Arc::new(store))
}

fn limited_on(store: Arc<dyn Backend>) -> Limiter {
    let limiter = Limiter::open(store, "default").wait().expect("the namespace can be opened");
    limiter.catalog().set_limits(Level::System, &limits()).wait().expect("stored");
    limiter
}

fn open(store: FileStore) -> Limiter {
    Limiter::open(Arc::new(store), "default").wait().expect("the namespace can be opened")
}

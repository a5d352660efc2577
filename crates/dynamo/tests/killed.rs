//! Processes that are killed in the middle of a chain: what each of the two ways to write one leaves behind.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_smithy_http_client::Builder;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use tollgate::catalog::{Level, NewEntity};
use tollgate::{Attempt, Limit, Limiter, Limits, demand};
use tollgate_core::{Span, Tick};
use tollgate_dynamo::{Chains, DynamoStore};
use tollgate_dynamo_local::{Engine, serve};
use tollgate_store::ManualClock;

const START: Tick = Tick::from_secs(1_800_000_000);

/// The variable that says to a child where the table is, how chains are written, which write is its last, and what it
/// takes.
const TOLD: &str = "TOLLGATE_TEST_CHILD";

/// How many requests, and how many slots, there are for the project.
const REQUESTS: u64 = 60;
const SLOTS: u64 = 2;

/// How many tokens there are for each entity, how many a call reserves, and how many the calls of a process use by turns.
const TOKENS: u64 = 10_000;
const RESERVED: u64 = 50;
const USED: [u64; 2] = [20, 90];

/// A client for the SDK that kills its process when a write has been made and those before it are, before its answer is
/// received. Writes that are sent after the last one never arrive.
#[derive(Clone, Debug)]
struct Deadly {
    client: SharedHttpClient,
    writes: Arc<Writes>,
}

#[derive(Debug)]
struct DeadlyConnector {
    inner: SharedHttpConnector,
    writes: Arc<Writes>,
}

/// The writes of a process.
#[derive(Debug, Default)]
struct Writes {
    /// How many may be sent.
    left: AtomicU64,
    /// How many are on their way.
    under_way: AtomicU64,
    is_answered: tokio::sync::Notify,
}

impl Writes {
    /// Waits until no write is on its way but that of the caller.
    async fn wait_for_others(&self) {
        loop {
            let answered = self.is_answered.notified();
            if self.under_way.load(Ordering::Acquire) == 1 {
                return;
            }
            answered.await;
        }
    }
}

impl HttpClient for Deadly {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.client.http_connector(settings, components);
        SharedHttpConnector::new(DeadlyConnector { inner, writes: Arc::clone(&self.writes) })
    }
}

impl HttpConnector for DeadlyConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let is_write = target.ends_with(".UpdateItem") || target.ends_with(".TransactWriteItems");
        let call = self.inner.call(request);
        if !is_write {
            return call;
        }
        let writes = Arc::clone(&self.writes);
        let left = writes.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        let Ok(left) = left else {
            return HttpConnectorFuture::new(async move {
                drop(call);
                std::future::pending().await
            });
        };
        writes.under_way.fetch_add(1, Ordering::AcqRel);
        HttpConnectorFuture::new(async move {
            let answer = call.await;
            if left == 1 {
                writes.wait_for_others().await;
                let pid = std::process::id().to_string();
                let killed = Command::new("kill").args(["-KILL", &pid]).status();
                panic!("it was not killed: {killed:?}");
            }
            writes.under_way.fetch_sub(1, Ordering::AcqRel);
            writes.is_answered.notify_waiters();
            answer
        })
    }
}

fn store(endpoint: &str, chains: Chains, last_write: Option<u64>) -> DynamoStore {
    let store = DynamoStore::builder("limits").endpoint(endpoint).chains(chains).create_table(true);
    let store = store.timeout(Duration::from_secs(60));
    let store = match last_write {
        None => store,
        Some(last) => {
            let writes = Arc::new(Writes { left: AtomicU64::new(last), ..Writes::default() });
            store.http_client(Deadly { client: Builder::new().build_http(), writes })
        }
    };
    store.build().wait().expect("the table is there")
}

fn limiter(endpoint: &str, chains: Chains, last_write: Option<u64>) -> Limiter {
    let store = Arc::new(store(endpoint, chains, last_write));
    Limiter::open(store, "default").wait().expect("it answers")
}

/// Only does something as a child: takes from a key and its project until it is refused or killed, and says how often it
/// was admitted.
#[test]
fn child() {
    let Ok(told) = std::env::var(TOLD) else { return };
    let [endpoint, chains, last, entity, what] = *told.split(' ').collect::<Vec<_>>() else {
        panic!("{told}")
    };
    let chains = if chains == "Transaction" { Chains::Transaction } else { Chains::Parallel };
    let limiter = limiter(endpoint, chains, last.parse().ok());
    if what == "tpm" {
        return use_tokens(&limiter, entity);
    }
    let mut held = Vec::new();
    loop {
        let lease = match what {
            "slots" => limiter.try_acquire(entity, "api", demand! { slots: 1 }).wait(),
            _ => limiter.try_acquire(entity, "api", demand! { rpm: 1 }).wait(),
        };
        match lease {
            Ok(Attempt::Admitted(lease)) if what == "slots" => held.push(lease),
            Ok(Attempt::Admitted(lease)) => lease.commit().wait().expect("it answers"),
            Ok(Attempt::Denied(_)) => return,
            Err(error) => panic!("{error}"),
        }
        writeln!(std::io::stdout(), "admitted").expect("the parent listens");
    }
}

/// Reserves tokens and settles with others until it is killed, and prints what was answered.
fn use_tokens(limiter: &Limiter, entity: &str) {
    for used in USED.into_iter().cycle() {
        let lease = limiter.acquire(entity, "api", demand! { tpm: RESERVED }).wait().expect("there is room");
        writeln!(std::io::stdout(), "admitted").expect("the parent listens");
        lease.settle(demand! { tpm: used }).wait().expect("it answers");
        writeln!(std::io::stdout(), "settled").expect("the parent listens");
    }
}

struct World {
    hands: ManualClock,
    endpoint: String,
    limiter: Limiter,
}

impl World {
    fn new(limit: tollgate_core::LimitBuilder) -> World {
        let hands = ManualClock::at(START);
        let engine = common::engine(&hands.clock());
        let endpoint = served(engine);
        let limiter = limiter(&endpoint, Chains::Parallel, None);
        let catalog = limiter.catalog();
        let limits = Limits::new([limit]).expect("it is valid");
        catalog.set_limits(Level::System, &limits).wait().expect("it answers");
        catalog.create_entity(NewEntity::new("project")).wait().expect("it answers");
        for key in ["key-0", "key-1", "key-2"] {
            let key = NewEntity::new(key).parent("project").cascades(true);
            catalog.create_entity(key).wait().expect("it answers");
        }
        World { hands, endpoint, limiter }
    }

    /// Runs a process that is killed at its `last` write, if it gets there. Returns how often it was admitted as far as
    /// it knew, and whether it was killed.
    fn run(&self, chains: Chains, last: u64, entity: &str, what: &str) -> (u64, bool) {
        let (said, was_killed) = self.run_and_listen(chains, last, entity, what);
        (said.iter().filter(|line| line.ends_with("admitted")).count() as u64, was_killed)
    }

    /// As [`run`](World::run), with all that the process wrote.
    fn run_and_listen(&self, chains: Chains, last: u64, entity: &str, what: &str) -> (Vec<String>, bool) {
        let this = std::env::current_exe().expect("it is running");
        let mut child = Command::new(this)
            .args(["--exact", "child", "--nocapture"])
            .env(TOLD, format!("{} {chains:?} {last} {entity} {what}", self.endpoint))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be started");
        // What the test harness writes may stand before it in the line.
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        let said = said.lines().map_while(Result::ok).collect();
        let status = child.wait().expect("it ends");
        (said, !status.success())
    }

    /// How many tokens were taken from the bucket of an entity.
    fn spent(&self, entity: &str) -> u64 {
        let buckets = self.limiter.catalog().buckets(entity).wait().expect("it answers");
        let left = buckets.first().map_or(TOKENS as i64, |bucket| bucket.limits[0].available());
        TOKENS - u64::try_from(left).expect("it owes nothing")
    }

    /// What is left in the bucket of an entity, whatever its parent has.
    fn left(&self, entity: &str) -> u64 {
        let buckets = self.limiter.catalog().buckets(entity).wait().expect("it answers");
        let left = buckets.first().expect("it was used").limits[0].available();
        u64::try_from(left).expect("it owes nothing")
    }

    /// How many slots an entity could take now.
    fn free(&self, entity: &str) -> Option<i64> {
        self.limiter.available(entity, "api").wait().expect("it answers").available("slots")
    }

    fn used(&self, entity: &str) -> u64 {
        REQUESTS - self.left(entity)
    }
}

/// An engine on a port of this host, for as long as the process lasts.
fn served(engine: Engine) -> String {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("there are threads");
        runtime.block_on(serve(engine, listener)).expect("it is served");
    });
    format!("http://{address}")
}

/// Processes that are killed at each of their first writes, one after the other. Returns how often they were admitted
/// as far as they knew, and how many were killed.
fn killed_at_every_write(world: &World, chains: Chains) -> (u64, u64) {
    let runs = (1..10).map(|last| world.run(chains, last, &format!("key-{}", last % 3), "rpm"));
    runs.fold((0, 0), |(admitted, killed), (more, was_killed)| {
        (admitted + more, killed + u64::from(was_killed))
    })
}

#[test]
fn a_chain_in_a_transaction_is_charged_whole_or_not_at_all_whenever_its_process_is_killed() {
    let world = World::new(Limit::per_day("rpm", REQUESTS));
    let (admitted, killed) = killed_at_every_write(&world, Chains::Transaction);
    assert_eq!(killed, 9);
    let keys: u64 = ["key-0", "key-1", "key-2"].map(|key| world.used(key)).iter().sum();
    assert_eq!(world.used("project"), keys);
    assert!((admitted..=admitted + killed).contains(&keys), "{admitted} were told of {keys}");
}

#[test]
fn a_chain_in_parallel_leaves_at_most_one_charge_at_each_level_for_each_process_that_is_killed() {
    let world = World::new(Limit::per_day("rpm", REQUESTS));
    let (mut admitted, killed) = killed_at_every_write(&world, Chains::Parallel);
    assert_eq!(killed, 9);
    let keys: u64 = ["key-0", "key-1", "key-2"].map(|key| world.used(key)).iter().sum();
    for charged in [world.used("project"), keys] {
        assert!((admitted..=admitted + killed).contains(&charged), "{admitted} were told of {charged}");
    }
    // Until nothing is left: never more than there is.
    for key in ["key-0", "key-1", "key-2"] {
        admitted += world.run(Chains::Parallel, u64::MAX, key, "rpm").0;
    }
    assert_eq!(world.left("project"), 0);
    assert!((REQUESTS - killed..=REQUESTS).contains(&admitted), "{admitted} of {REQUESTS}");
}

#[test]
fn slots_of_a_killed_process_come_back_when_their_leases_expire() {
    for chains in [Chains::Parallel, Chains::Transaction] {
        let world = World::new(Limit::resource("slots", SLOTS));
        let (admitted, was_killed) = world.run(chains, SLOTS, "key-0", "slots");
        assert!(was_killed && admitted < SLOTS);
        let free = ["key-0", "project"].map(|entity| world.free(entity));
        assert_eq!(free, [Some(0); 2], "all or none of each");
        world.hands.advance(Span::covering(tollgate::limiter::LEASE_TTL + Duration::from_secs(2)));
        let free = ["key-0", "project"].map(|entity| world.free(entity));
        assert_eq!(free, [Some(SLOTS as i64); 2]);
    }
}

/// Processes that are killed at each of their first `writes` while they reserve and settle. What each leaves in the
/// bucket of its key and in that of the project: all that was answered to it, and for the call under way a charge that
/// it may have at that point.
fn assert_charged_once(chains: Chains, writes: u64) -> Vec<[u64; 2]> {
    let world = World::new(Limit::per_day("tpm", TOKENS));
    let mut left = Vec::new();
    for last in 1..=writes {
        let before = ["key-0", "project"].map(|entity| world.spent(entity));
        let (said, was_killed) = world.run_and_listen(chains, last, "key-0", "tpm");
        assert!(was_killed, "{said:?}");
        let count = |word: &str| said.iter().filter(|line| line.ends_with(word)).count();
        let (admitted, settled) = (count("admitted"), count("settled"));
        let told: u64 = USED.iter().cycle().take(settled).sum();
        let under_way = match admitted - settled {
            0 => [0, RESERVED],
            _ => [RESERVED, USED[settled % USED.len()]],
        };
        let after = ["key-0", "project"].map(|entity| world.spent(entity));
        let charged = [0, 1].map(|level| after[level] - before[level] - told);
        for charge in charged {
            assert!(under_way.contains(&charge), "{chains:?}, write {last}: {charged:?} of {under_way:?}");
        }
        left.push(charged);
    }
    left
}

#[test]
fn a_settlement_in_a_transaction_is_made_at_all_levels_or_at_none_whenever_its_process_is_killed() {
    let left = assert_charged_once(Chains::Transaction, 8);
    assert!(left.iter().all(|[key, project]| key == project), "{left:?}");
    // Reserved and not settled, settled with less, settled with more: the processes were killed at all of them.
    for charge in [RESERVED, USED[0], USED[1]] {
        assert!(left.contains(&[charge; 2]), "{left:?}");
    }
}

#[test]
fn a_settlement_in_parallel_leaves_at_most_one_charge_of_the_call_at_each_level() {
    let left = assert_charged_once(Chains::Parallel, 14);
    assert!(
        left.iter().any(|[key, project]| key != project),
        "processes were killed between levels: {left:?}"
    );
}

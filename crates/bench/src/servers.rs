//! A Redis server on this host: the number of calls, and its processor time for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tollgate::redis::RedisStore;
use tollgate::store::{BucketRef, Clock, Key, Op, Step, Store, Transaction, TxnOutcome};
use tollgate::{Level, Limit, Limiter, Limits, demand};
use tollgate_redis_local::{RespReply, Server, ServerKind};

use crate::options::Effort;
use crate::single::SoloValue;

const PLENTY: u64 = 1_000_000_000;
const ACQUIRES: u64 = 1_000;

/// The number of rounds, and the calls of each side in a round.
const TURNS: u64 = 10;
const TURN: u64 = 1_000;

/// How many tasks acquire at once, and for how many acquires together.
const AT_ONCE: u64 = 64;
const TOGETHER: u64 = 50_000;

/// The minimal script: it reads a value and writes it.
const BARE: &str = "local v = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) return v";

fn three() -> Result<Limits> {
    let limits = ["rpm", "tpm", "spend"].map(|name| Limit::per_minute(name, PLENTY));
    Ok(Limits::new(limits)?)
}

fn open(server: &Server) -> Result<RedisStore> {
    Ok(RedisStore::builder(server.url()).timeout(Duration::from_secs(30)).build().wait()?)
}

/// Calls for each warm acquire of a limiter under three limits, as the server counts them.
pub(crate) fn calls_of_acquire(_: &Effort) -> Result<SoloValue> {
    let server = Server::start(ServerKind::Redis);
    let limiter = Limiter::open(Arc::new(open(&server)?), "default").wait()?;
    limiter.catalog().set_limits(Level::System, &three()?).wait()?;
    let acquire = || limiter.acquire("me", "gpt", demand! { rpm: 1, tpm: 10, spend: 3 }).wait();
    acquire()?.commit().wait()?;
    let mut calls = 0;
    for _ in 0..ACQUIRES {
        let before = scripts(&server)?;
        let lease = acquire()?;
        calls += scripts(&server)? - before;
        lease.commit().wait()?;
    }
    let detail = format!("{calls} scripts for {ACQUIRES} acquires, by INFO commandstats");
    Ok(SoloValue { value: calls as f64 / ACQUIRES as f64, detail })
}

fn scripts(server: &Server) -> Result<u64> {
    statistic(&server.command(&["INFO", "commandstats"]), "evalsha", "calls")
}

/// Returns a statistic of the server about a command.
fn statistic(info: &RespReply, command: &str, name: &str) -> Result<u64> {
    let field = info.field(&format!("cmdstat_{command}")).context("the command was made")?;
    let value = field.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    Ok(value.context("it is counted")?.parse()?)
}

/// The server's processor time for a side, in total and within scripts, in microseconds.
#[derive(Clone, Copy, Default)]
struct Spent {
    processor: f64,
    scripts: f64,
}

fn spent(server: &Server, work: impl FnOnce() -> Result<()>) -> Result<Spent> {
    let read = || -> Result<Spent> {
        let cpu = server.command(&["INFO", "cpu"]);
        let stats = server.command(&["INFO", "commandstats"]);
        let seconds =
            |name: &str| -> Result<f64> { Ok(cpu.field(name).context("it is reported")?.trim().parse()?) };
        let processor = seconds("used_cpu_user")? + seconds("used_cpu_sys")?;
        let scripts = statistic(&stats, "evalsha", "usec").unwrap_or(0) as f64;
        Ok(Spent { processor: processor * 1e6, scripts })
    };
    let before = read()?;
    work()?;
    let after = read()?;
    Ok(Spent { processor: after.processor - before.processor, scripts: after.scripts - before.scripts })
}

/// Acquires from a chain of buckets.
struct RedisChain {
    store: RedisStore,
    limits: Limits,
    keys: Vec<Key>,
}

impl RedisChain {
    fn new(server: &Server, buckets: usize) -> Result<RedisChain> {
        let keys =
            (0..buckets).map(|number| Key::new(&[&format!("entity-{number}-of-{buckets}"), "resource"]));
        let till = RedisChain { store: open(server)?, limits: three()?, keys: keys.collect() };
        till.acquire(1)?;
        Ok(till)
    }

    fn acquire(&self, times: u64) -> Result<()> {
        let costs = self.limits.costs(&demand! { rpm: 1, tpm: 10, spend: 3 })?;
        let step = |key| Step {
            place: BucketRef { namespace: "bench", key, limits: &self.limits },
            op: Op::Take { costs: &costs, term: None },
        };
        let steps: Vec<Step<'_>> = self.keys.iter().map(step).collect();
        for _ in 0..times {
            let applied = self.store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait()?;
            ensure!(matches!(applied, TxnOutcome::Done(_)), "there is plenty");
        }
        Ok(())
    }
}

/// The bare script on a value of the same length as a bucket of three limits, by the same client as ours.
struct Bare {
    runtime: tokio::runtime::Runtime,
    connection: redis::aio::MultiplexedConnection,
    script: redis::Cmd,
    hash: String,
}

impl Bare {
    fn new(server: &Server) -> Result<Bare> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let client = redis::Client::open(server.url())?;
        let connection = runtime.block_on(client.get_multiplexed_async_connection())?;
        let value = "x".repeat(105 + three()?.to_text().len());
        let hash = server.command(&["SCRIPT", "LOAD", BARE]).text().to_owned();
        server.command(&["SET", "{tollgate}bare", &value]);
        let mut script = redis::cmd("EVALSHA");
        script.arg(&hash).arg(1).arg("{tollgate}bare").arg(&value);
        Ok(Bare { runtime, connection, script, hash })
    }

    fn run(&mut self, times: u64) -> Result<()> {
        for _ in 0..times {
            self.runtime.block_on(self.connection.send_packed_command(&self.script))?;
        }
        Ok(())
    }
}

/// Returns the median of the rounds, because other processes use the processor as well.
fn middle(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// Measures the server's time for an acquire of three limits, relative to the bare script.
pub(crate) fn processor_of_acquire(_: &Effort) -> Result<SoloValue> {
    let server = Server::start(ServerKind::Redis);
    let till = RedisChain::new(&server, 1)?;
    let mut bare = Bare::new(&server)?;
    let mut ratios = Vec::new();
    let mut within = Vec::new();
    let mut costs = Vec::new();
    for _ in 0..TURNS {
        let theirs = spent(&server, || bare.run(TURN))?;
        let ours = spent(&server, || till.acquire(TURN))?;
        ratios.push(ours.processor / theirs.processor);
        within.push(ours.scripts / theirs.scripts);
        costs.push(ours.processor / TURN as f64);
    }
    let detail =
        format!("{:.1} us of the server each; within the script {:.1} x", middle(costs), middle(within));
    Ok(SoloValue { value: middle(ratios), detail })
}

/// Measures the server's time for a chain of three buckets of three limits, relative to one bucket of three limits.
pub(crate) fn processor_of_chain(_: &Effort) -> Result<SoloValue> {
    let server = Server::start(ServerKind::Redis);
    let one = RedisChain::new(&server, 1)?;
    let chain = RedisChain::new(&server, 3)?;
    let mut ratios = Vec::new();
    let mut within = Vec::new();
    for _ in 0..TURNS {
        let single = spent(&server, || one.acquire(TURN))?;
        let triple = spent(&server, || chain.acquire(TURN))?;
        ratios.push(triple.processor / single.processor);
        within.push(triple.scripts / single.scripts);
    }
    let detail = format!("within the script {:.1} x", middle(within));
    Ok(SoloValue { value: middle(ratios), detail })
}

/// Measures the acquires a second of one process with many at once, compared with as many bare scripts.
pub(crate) fn throughput(_: &Effort) -> Result<SoloValue> {
    let server = Server::start(ServerKind::Redis);
    let till = Arc::new(RedisChain::new(&server, 1)?);
    let left = Arc::new(AtomicU64::new(TOGETHER));
    let start = Clock::system().now();
    std::thread::scope(|scope| -> Result<()> {
        let worker = || -> Result<()> {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            {
                till.acquire(1)?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| anyhow::anyhow!("it panicked"))?)
    })?;
    let lasted = Clock::system().now().since(start).to_duration();
    let ours = TOGETHER as f64 / lasted.as_secs_f64();
    let bare = redis_benchmark(&server).map_or_else(
        |why| format!("no redis-benchmark: {why}"),
        |rate| format!("redis-benchmark makes {rate:.0} bare scripts a second, {AT_ONCE} at once"),
    );
    Ok(SoloValue { value: ours, detail: bare })
}

/// Measures the bare scripts a second of the server's own benchmark.
fn redis_benchmark(server: &Server) -> Result<f64> {
    let hash = Bare::new(server)?.hash;
    let program = ServerKind::Redis.find().with_file_name("redis-benchmark");
    let mut benchmark = std::process::Command::new(&program);
    let port = server.port().to_string();
    let clients = AT_ONCE.to_string();
    let count = TOGETHER.to_string();
    benchmark.args(["-p", &port, "-c", &clients, "-n", &count, "-P", &clients, "--csv"]);
    benchmark.args(["EVALSHA", &hash, "1", "{tollgate}bare", &"x".repeat(200)]);
    let libraries = program.ancestors().nth(2).map(|usr| usr.join("lib/x86_64-linux-gnu"));
    let output = benchmark.env("LD_LIBRARY_PATH", libraries.unwrap_or_default()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().last().context("it has output")?;
    let rate = line.split("\",\"").nth(1).context("it has a rate")?;
    Ok(rate.parse()?)
}

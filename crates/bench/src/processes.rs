//! Shared memory: one process compared with private memory, four processes on one bucket, and the time from a release to the
//! wake-up in another process.
//!
//! Other processes are this program with internal arguments.

use std::io::{BufRead, BufReader, Lines, Write as _, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tollgate::shm::ShmStore;
use tollgate::store::{BucketRef, Key, Op, Step, StepOutcome, Store, Transaction, TxnOutcome};
use tollgate::{Clock, Costs, Level, Limit, Limiter, Limits, Memory, demand};
use tollgate_core::Usage;

use crate::meter;
use crate::options::Effort;
use crate::single::SoloValue;
use crate::subject::{BenchOperation, each};

/// The name of the other side.
pub(crate) const MEMORY: &str = "memory of one process";

/// More a second than any loop can acquire.
const PLENTY: u64 = 1_000_000_000;

const PROCESSES: u64 = 4;

/// Acquired and settled by each process or thread: two operations each.
const TURNS: u64 = 250_000;

/// Long enough for a waiter in the queue to be asleep.
const FALL_ASLEEP: Duration = Duration::from_millis(2);

pub(crate) const RESOURCE: &str = "gpt-4";

/// A store that is deleted on drop.
pub(crate) struct TempStore(pub(crate) ShmStore);

impl TempStore {
    pub(crate) fn new(what: &str) -> Result<TempStore> {
        Ok(TempStore(ShmStore::open(&format!("bench-{what}-{}", std::process::id()))?))
    }

    pub(crate) fn name(&self) -> Result<&str> {
        let name = self.0.path().file_name().and_then(|name| name.to_str()).context("it has a name")?;
        name.splitn(3, '-').nth(2).context("its name is behind that of its user")
    }
}

impl Drop for TempStore {
    fn drop(&mut self) {
        // An error is ignored: the file is lost when the host stops.
        let _ = std::fs::remove_file(self.0.path());
    }
}

/// Three limits of one bucket, acquired together and settled.
pub(crate) struct HotOperation {
    limits: Limits,
    costs: Costs,
    pub(crate) key: Key,
}

impl HotOperation {
    pub(crate) fn new() -> Result<HotOperation> {
        let tpm = Limit::per_second("tpm", 100 * PLENTY);
        let limits =
            Limits::new([Limit::per_second("rpm", PLENTY), tpm, Limit::resource("connections", 100)])?;
        let costs = limits.costs(&demand! { rpm: 1, tpm: 100, connections: 1 })?;
        Ok(HotOperation { limits, costs, key: Key::new(&["user-1", RESOURCE]) })
    }

    /// Takes and settles, as a limiter does.
    pub(crate) fn turn(&self, store: &impl Store) -> bool {
        let place = BucketRef { namespace: "bench", key: &self.key, limits: &self.limits };
        let steps = [Step { place, op: Op::Take { costs: &self.costs, term: None } }];
        let taken = store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait();
        let Ok(TxnOutcome::Done(done)) = taken else { return false };
        let [StepOutcome::Taken(taken)] = done[..] else { return false };
        let usage = Usage { at: taken.at, reserved: &self.costs, used: &[1, 90, 0], holder: None };
        let steps = [Step { place, op: Op::Settle(usage) }];
        store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().is_ok()
    }
}

/// One process on shared memory.
pub(crate) fn one_process() -> Result<BenchOperation> {
    let shared = TempStore::new("one")?;
    let hot = HotOperation::new()?;
    Ok(each(move || hot.turn(&shared.0)))
}

/// One process on private memory.
pub(crate) fn own_memory() -> Result<BenchOperation> {
    let memory = Memory::default();
    let hot = HotOperation::new()?;
    Ok(each(move || hot.turn(&memory)))
}

/// Four processes on one bucket: nanoseconds for each operation of all of them together.
pub(crate) fn four_processes(_: &Effort) -> Result<SoloValue> {
    let shared = TempStore::new("four")?;
    let mut others = Vec::new();
    for _ in 0..PROCESSES {
        others.push(Other::start("turns", shared.name()?)?);
    }
    for other in &mut others {
        ensure!(other.read_line()? == "ready", "another process is not ready");
    }
    let since = meter::wall();
    others.iter_mut().try_for_each(|other| other.say("go"))?;
    for other in &mut others {
        ensure!(other.read_line()? == "done", "another process was denied");
    }
    let operations = (PROCESSES * TURNS * 2) as f64;
    let each = |time: Duration| time.as_nanos() as f64 / operations;
    let shared_ns = each(since.elapsed());
    let memory_ns = each(four_threads()?);
    let rate = |ns: f64| (1e9 / ns) as u64;
    let detail = format!(
        "{} operations/s in all; memory of one process with four threads: {}/s",
        rate(shared_ns),
        rate(memory_ns)
    );
    Ok(SoloValue { value: shared_ns, detail })
}

fn four_threads() -> Result<Duration> {
    let memory = Memory::default();
    let since = meter::wall();
    let work = || -> Result<bool> {
        let hot = HotOperation::new()?;
        Ok((0..TURNS).all(|_| hot.turn(&memory)))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..PROCESSES).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let is_done = thread.join().map_err(|_| anyhow::anyhow!("a thread has panicked"))??;
            ensure!(is_done, "a thread was denied");
        }
        Ok(since.elapsed())
    })
}

fn one_slot(store: &ShmStore) -> Result<Limiter> {
    Ok(Limiter::open(Arc::new(store.clone()), "default").wait()?)
}

/// Measures the time from a release in one process to the grant in another.
pub(crate) fn wake(effort: &Effort) -> Result<SoloValue> {
    let shared = TempStore::new("wake")?;
    let limiter = one_slot(&shared.0)?;
    let slots = Limits::new([Limit::resource("slots", 1)])?;
    limiter.catalog().set_limits(Level::Resource(RESOURCE), &slots).wait()?;
    let mut other = Other::start("wake", shared.name()?)?;
    ensure!(other.read_line()? == "ready", "another process is not ready");
    let mut samples = Vec::new();
    for _ in 0..effort.wakes {
        let lease = limiter.acquire("user-1", RESOURCE, demand! { slots: 1 }).wait()?;
        other.say("go")?;
        meter::pause(FALL_ASLEEP);
        let released = Clock::system().now().as_micros();
        drop(lease);
        let woken: u64 = other.read_line()?.parse().context("it says when it woke up")?;
        samples.push(Duration::from_micros(woken.saturating_sub(released)));
    }
    samples.sort_unstable();
    let micros = |share: usize| samples[samples.len() * share / 100].as_micros() as f64;
    let detail =
        format!("median of {}; p99 {:.0} us; a thread of another process", samples.len(), micros(99));
    Ok(SoloValue { value: micros(50), detail })
}

/// What another process does.
pub(crate) fn work_here(what: &str, name: &str) -> Result<()> {
    let store = ShmStore::open(name)?;
    let mut lines = stdin().lines();
    let say = |text: String| -> Result<()> {
        writeln!(stdout(), "{text}")?;
        Ok(stdout().flush()?)
    };
    say("ready".into())?;
    match what {
        "turns" => {
            let hot = HotOperation::new()?;
            lines.next().context("it gets the signal to start")??;
            let is_done = (0..TURNS).all(|_| hot.turn(&store));
            say(if is_done { "done".into() } else { "denied".into() })
        }
        "wake" => {
            let limiter = one_slot(&store)?;
            for line in lines {
                line?;
                let lease = limiter.acquire("user-1", RESOURCE, demand! { slots: 1 }).wait()?;
                let now = Clock::system().now().as_micros();
                drop(lease);
                say(now.to_string())?;
            }
            Ok(())
        }
        other => bail!("no process does {other:?}"),
    }
}

/// Another process of this program.
struct Other {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(what: &str, name: &str) -> Result<Other> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["process", what, name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start another process")?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).context("it has pipes")?;
        Ok(Other { child, input, lines: BufReader::new(output).lines() })
    }

    fn say(&mut self, text: &str) -> Result<()> {
        Ok(writeln!(self.input, "{text}")?)
    }

    fn read_line(&mut self) -> Result<String> {
        Ok(self.lines.next().context("another process has ended")??)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // Errors are ignored: it may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A process of workers: it calls for as long as its input is open, and says what it did.

use std::error::Error;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tollgate::workers::{Shutdown, Worker, WorkerPool};
use tollgate::{AcquireError, Limit, LimitSet, demand};

use crate::history::Call;
use crate::{BURST, Dice, RATE, SLOTS, rest, store};

/// In the environment of a child: where the store is.
pub(crate) const ADDRESS: &str = "TOLLGATE_WORKERS_STORE";

/// Where the store is, if this process is a child.
pub(crate) fn address() -> Option<String> {
    std::env::var(ADDRESS).ok()
}

pub(crate) fn run(address: &str) -> Result<(), Box<dyn Error>> {
    let limits = [Limit::per_second("calls", RATE).burst(BURST), Limit::resource("slots", SLOTS)];
    let set = LimitSet::builder().limits(limits).store(store::open(address)?).name("workers/demo").build()?;
    // Three workers in this process; each has a pool of its own over the one set that all processes share.
    let pool = WorkerPool::threads(3).limits(set).across_processes().queue(4).build(call)?;
    let is_open = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            // The parent process says that it is over by closing this, or by being gone.
            let _ = std::io::stdin().read(&mut [0]);
            is_open.store(false, Ordering::SeqCst);
        });
        let inputs = (0_u64..).take_while(|_| is_open.load(Ordering::SeqCst));
        let mut completed = pool.as_completed(inputs);
        while let Some((_, result)) = completed.next_result().wait() {
            result?;
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    pool.shutdown(Shutdown::Drain).wait();
    Ok(())
}

/// One call: wait for the limits, call, say so, give the slot back.
fn call(worker: &Worker, number: u64) -> Result<(), AcquireError> {
    let clock = worker.limits()[0].clock();
    let asked = clock.now();
    let lease = worker.limits().acquire(demand! { calls: 1 }).wait()?;
    let begun = clock.now();
    let mut dice = Dice(number ^ u64::from(std::process::id()) << 20 | 1);
    rest(clock, dice.roll(10, 40));
    let line = Call { asked, begun, over: clock.now() }.line();
    // Said while the slot is still held, so that what is said is true.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    drop(out);
    drop(lease);
    Ok(())
}

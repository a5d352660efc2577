//! Batches: their duration in simulated time, and their cost in processor time.

use std::any::Any;
use std::future::pending;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::runtime::{Builder, Runtime};
use tollgate::{Span, Tick};
use tollgate_batch::simulator::{Disclosure, RetryAfter, SimLimit, SimProvider, simulate};
use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
use tollgate_provider::Hint;

use crate::footprint::resident_bytes;
use crate::options::Effort;
use crate::single::SoloValue;
use crate::subject::BenchOperation;

pub(crate) const TOKIO_QUEUE: &str = "tokio mpsc";
pub(crate) const NONE_REFUSED: &str = "as many calls";

const WORKERS: usize = 50;

/// The number of items that are streamed to measure the growth of memory.
const STREAMED: u64 = 1_000_000;

fn bucket(rate: u64, burst: u64) -> SimLimit {
    SimLimit::Bucket { rate, burst }
}

/// Simulates a batch, and returns its duration as a multiple of the ideal one.
fn makespan(mut provider: SimProvider, sizes: &[u64], workers: usize, ideal: Span) -> SoloValue {
    let simulated = simulate(&mut provider, sizes, workers, 1);
    let rejected = simulated.rejected as f64 * 100.0 / simulated.calls as f64;
    let seconds = simulated.makespan.as_micros() as f64 / 1e6;
    let ideal = ideal.as_micros() as f64 / 1e6;
    let detail = format!("{seconds:.1} s of {ideal:.1} s, {rejected:.1} % refused");
    SoloValue { value: seconds / ideal, detail }
}

pub(crate) fn burst_10(_: &Effort) -> Result<SoloValue> {
    let provider = SimProvider::of_calls(bucket(10, 10), Span::from_secs(1));
    Ok(makespan(provider, &[0; 2_000], WORKERS, Span::from_secs(200)))
}

pub(crate) fn burst_600(_: &Effort) -> Result<SoloValue> {
    let provider = SimProvider::of_calls(bucket(10, 600), Span::from_secs(1));
    Ok(makespan(provider, &[0; 2_000], WORKERS, Span::from_secs(141)))
}

pub(crate) fn halves(_: &Effort) -> Result<SoloValue> {
    let provider = SimProvider::of_calls(bucket(10, 10), Span::from_secs(1)).halves_at(Tick::from_secs(100));
    Ok(makespan(provider, &[0; 2_000], WORKERS, Span::from_secs(299)))
}

pub(crate) fn tokens(_: &Effort) -> Result<SoloValue> {
    let sizes: Vec<u64> = (0..2_000_u64).map(|at| 100 + at.wrapping_mul(2_654_435_761) % 7_901).collect();
    let total: u64 = sizes.iter().sum();
    let provider = SimProvider::of_tokens(bucket(40_000, 40_000), Span::from_secs(1));
    let ideal = Span::from_micros((total - 40_000) * 25 + 1_000_000);
    Ok(makespan(provider, &sizes, WORKERS, ideal))
}

pub(crate) fn refused_with_headers(_: &Effort) -> Result<SoloValue> {
    let disclosure = Disclosure { headers: true, retry_after: RetryAfter::Exact, minutes: false };
    let mut provider = SimProvider::of_calls(bucket(10, 600), Span::from_secs(1)).discloses(disclosure);
    let simulated = simulate(&mut provider, &[0; 2_600], WORKERS, 1);
    let value = simulated.rejected as f64 * 100.0 / simulated.calls as f64;
    Ok(SoloValue { value, detail: format!("{} of {} calls", simulated.rejected, simulated.calls) })
}

fn runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_time().build().context("no runtime")
}

fn items(count: u64) -> impl Iterator<Item = Item<u64>> + Send {
    (0..count).map(|at| Item::new("item", at))
}

/// Items through a batch whose handler does nothing.
pub(crate) fn no_op() -> Result<BenchOperation> {
    let runtime = runtime()?;
    Ok(Box::new(move |times| {
        runtime.block_on(async {
            let batch = Batch::new().workers(WORKERS);
            let mut run = batch.run(items(times), |call: ItemAttempt<u64>| async move {
                CallReply::done(black_box(*call.payload()), Hint::ok())
            });
            let mut done = 0;
            while let Some(outcome) = run.next().await {
                done += u64::from(outcome.result.is_ok());
            }
            done
        })
    }))
}

/// As many items through two tokio channels, without error handling.
pub(crate) fn tokio_queue() -> Result<BenchOperation> {
    let runtime = runtime()?;
    Ok(Box::new(move |times| {
        runtime.block_on(async {
            let (give, take) = tokio::sync::mpsc::channel::<(Arc<str>, u64)>(1_024);
            let (tell, mut told) = tokio::sync::mpsc::channel(1_024);
            let take = Arc::new(tokio::sync::Mutex::new(take));
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..WORKERS {
                let take = Arc::clone(&take);
                let tell = tell.clone();
                tasks.spawn(async move {
                    loop {
                        let Some(item) = take.lock().await.recv().await else { break };
                        if tell.send((item.0, black_box(item.1))).await.is_err() {
                            break;
                        }
                    }
                });
            }
            drop(tell);
            tasks.spawn(async move {
                for at in 0..times {
                    if give.send(("item".into(), at)).await.is_err() {
                        break;
                    }
                }
            });
            let mut done = 0;
            while told.recv().await.is_some() {
                done += 1;
            }
            done
        })
    }))
}

/// Items of which each tenth is throttled once, in simulated time.
pub(crate) fn tenth_refused() -> Result<BenchOperation> {
    calls_that_take_time(|_| 0, |call| call.number() == 1 && call.payload().is_multiple_of(10))
}

/// The same number of calls, none of them throttled.
pub(crate) fn none_refused() -> Result<BenchOperation> {
    calls_that_take_time(|times| times.div_ceil(10), |_| false)
}

/// Calls with latency, in simulated time: their cost is that of the batch and its timers.
fn calls_that_take_time(
    more: fn(u64) -> u64,
    is_refused: fn(&ItemAttempt<u64>) -> bool,
) -> Result<BenchOperation> {
    let runtime =
        Builder::new_current_thread().enable_time().start_paused(true).build().context("no runtime")?;
    Ok(Box::new(move |times| {
        runtime.block_on(async {
            let batch = Batch::new().workers(WORKERS);
            let mut run = batch.run(items(times + more(times)), move |call: ItemAttempt<u64>| async move {
                let millis = 100 + call.payload().wrapping_mul(2_654_435_761) % 200;
                tokio::time::sleep(Duration::from_millis(millis)).await;
                if is_refused(&call) {
                    return CallReply::refused(Hint::throttled(Some(Duration::from_millis(1))));
                }
                CallReply::done(*call.payload(), Hint::ok())
            });
            let mut done = 0_u64;
            while let Some(outcome) = run.next().await {
                done += u64::from(outcome.result.is_ok());
            }
            done - more(times)
        })
    }))
}

/// A batch that has accepted many items, one of which never ends.
pub(crate) fn queued(count: u64) -> Result<Box<dyn Any>> {
    let runtime = runtime()?;
    let run = runtime.block_on(async {
        let lookahead = usize::try_from(count).unwrap_or(usize::MAX);
        let named = (0..count).map(|at| Item::new(format!("item-{at:08}"), at));
        let run = Batch::new()
            .workers(1)
            .lookahead(lookahead)
            .run(named, |_: ItemAttempt<u64>| pending::<CallReply<()>>());
        while run.progress().accepted < count {
            tokio::task::yield_now().await;
        }
        run
    });
    Ok(Box::new((run, runtime)))
}

/// Measures the growth of memory while a million items pass.
pub(crate) fn streamed(_: &Effort) -> Result<SoloValue> {
    let runtime = runtime()?;
    let (early, late) = runtime.block_on(async {
        let mut run = Batch::new().run(items(STREAMED), |call: ItemAttempt<u64>| async move {
            CallReply::done(*call.payload(), Hint::ok())
        });
        let mut read = 0_u64;
        let mut early = 0;
        while run.next().await.is_some() {
            read += 1;
            if read == STREAMED / 10 {
                early = resident_bytes()?;
            }
        }
        ensure!(read == STREAMED, "only {read} of {STREAMED} items came out");
        anyhow::Ok((early, resident_bytes()?))
    })?;
    let value = late.saturating_sub(early) as f64 / 1024.0;
    Ok(SoloValue { value, detail: format!("{STREAMED} items, {} KiB after a tenth", early / 1024) })
}

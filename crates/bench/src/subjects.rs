//! Our side of the rows, through the public API.

use std::any::Any;

use anyhow::{Context, Result, ensure};
use tollgate::store::{BucketCell, CellChain, Key};
use tollgate::{
    Attempt, Checker, Clock, Limit, LimitSet, Limits, ManualClock, Memory, Priority, Span, Tick, demand,
};

use crate::keys::{self, KeyWalk};
use crate::subject::{BenchOperation, each};
use crate::threaded::{SharedOperation, shared};

/// More a second than any loop can acquire.
const PLENTY: u64 = 1_000_000_000;

/// For glibc: larger than a small block, and smaller than a mapped one.
const LARGE_BLOCK: usize = 100_000;

/// One rate limit, acquired and left charged.
pub(crate) fn one_limit() -> Result<BenchOperation> {
    let set = LimitSet::new([Limit::per_second("rps", PLENTY)])?;
    Ok(each(move || matches!(set.try_acquire(demand! { rps: 1 }).wait(), Ok(Attempt::Admitted(_)))))
}

/// Requests, tokens and connections, acquired together and settled.
pub(crate) fn three_limits_settled() -> Result<BenchOperation> {
    let set = LimitSet::new(three())?;
    Ok(each(move || match set.acquire(demand! { rpm: 1, tpm: 100 }).wait() {
        Ok(lease) => lease.settle(demand! { rpm: 1, tpm: 90 }).wait().is_ok(),
        Err(_) => false,
    }))
}

/// Requests, tokens and connections, acquired together and dropped.
pub(crate) fn three_limits() -> Result<BenchOperation> {
    let set = LimitSet::new(three())?;
    Ok(each(move || matches!(set.try_acquire(demand! { rpm: 1, tpm: 100 }).wait(), Ok(Attempt::Admitted(_)))))
}

/// An entity, its team and its company, three limits each, acquired together.
pub(crate) fn chain_of_three() -> Result<BenchOperation> {
    let limits = Limits::new(three_rates())?;
    let costs = limits.costs(&demand! { rpm: 1, tpm: 100, spend: 3 })?;
    let cell = |name| BucketCell::new(Key::new(&[name]), limits.clone(), Tick::ZERO);
    let chain = CellChain::new(vec![cell("entity"), cell("team"), cell("company")])?;
    let clock = Clock::system();
    Ok(each(move || chain.try_take(&clock, &[&costs, &costs, &costs], None, Priority::Normal).is_ok()))
}

/// One key of a checker, two limits.
pub(crate) fn one_hot_key() -> Result<BenchOperation> {
    let checker = Checker::new();
    let limits = two()?;
    let key = keys::key(0);
    Ok(each(move || check(&checker, &limits, &key)))
}

/// A checker with a million keys, two limits each, in random order.
pub(crate) fn million_keys() -> Result<BenchOperation> {
    let checker = Checker::new();
    let limits = two()?;
    for key in keys::million() {
        check(&checker, &limits, key).then_some(()).context("a new key was denied")?;
    }
    let mut walk = KeyWalk::over(keys::million());
    Ok(each(move || check(&checker, &limits, walk.step())))
}

/// One key of a checker that all threads use, two limits.
pub(crate) fn one_shared_key() -> Result<SharedOperation> {
    let checker = Checker::new();
    let limits = two()?;
    let key = keys::key(0);
    Ok(shared(move || check(&checker, &limits, &key)))
}

/// A store that has seen many keys once, none of which may be evicted.
pub(crate) fn fill(keys: u64) -> Result<Box<dyn Any>> {
    let memory = Memory::default();
    fill_memory(&memory, keys)?;
    Ok(Box::new(memory))
}

/// The same store after all keys were full again and evicted.
pub(crate) fn fill_and_sweep(keys: u64) -> Result<Box<dyn Any>> {
    let hands = ManualClock::at(Clock::system().now());
    let memory = Memory::builder().clock(hands.clock()).build();
    fill_memory(&memory, keys)?;
    hands.advance(Span::from_secs(2 * 86_400));
    let space = memory.namespace("");
    space.sweep(hands.now());
    ensure!(space.is_empty(), "{} of {keys} keys were not swept", space.len());
    // glibc keeps freed small blocks until a larger one is allocated and freed, as in any program.
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE_BLOCK)));
    Ok(Box::new(memory))
}

/// A bucket refills in a quarter of an hour: none may be full again, and so be evicted, before the last key is created.
fn fill_memory(memory: &Memory, keys: u64) -> Result<()> {
    let limits = Limits::new([Limit::per_day("rpm", 100), Limit::per_day("tpm", 10_000)])?;
    let checker = Checker::in_memory(memory, "");
    for index in 0..keys {
        check(&checker, &limits, &keys::key(index)).then_some(()).context("a new key was denied")?;
    }
    let kept = memory.namespace("").len();
    ensure!(kept as u64 == keys, "only {kept} of {keys} keys were kept");
    Ok(())
}

fn check(checker: &Checker, limits: &Limits, key: &str) -> bool {
    let verdict = checker.try_acquire(key, "", &demand! { rpm: 1, tpm: 100 }, limits).wait();
    verdict.is_ok_and(|verdict| verdict.is_admitted())
}

fn three() -> [tollgate::LimitBuilder; 3] {
    [
        Limit::per_second("rpm", PLENTY),
        Limit::per_second("tpm", 100 * PLENTY),
        Limit::resource("connections", 16),
    ]
}

fn three_rates() -> [tollgate::LimitBuilder; 3] {
    [
        Limit::per_second("rpm", PLENTY),
        Limit::per_second("tpm", 100 * PLENTY),
        Limit::per_second("spend", 100 * PLENTY),
    ]
}

fn two() -> Result<Limits> {
    Ok(Limits::new([Limit::per_second("rpm", PLENTY), Limit::per_second("tpm", 100 * PLENTY)])?)
}

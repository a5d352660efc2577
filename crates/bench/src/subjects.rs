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

/// More a second than any loop can take.
const PLENTY: u64 = 1_000_000_000;

/// For glibc: not small any more, and not yet mapped by itself.
const LARGE_BLOCK: usize = 100_000;

/// One rate limit, taken and left charged.
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

/// Requests, tokens and connections, taken together and dropped.
pub(crate) fn three_limits() -> Result<BenchOperation> {
    let set = LimitSet::new(three())?;
    Ok(each(move || matches!(set.try_acquire(demand! { rpm: 1, tpm: 100 }).wait(), Ok(Attempt::Admitted(_)))))
}

/// An entity, its team and its company, three limits each, taken together.
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
    let (checker, limits, key) = (Checker::new(), two()?, keys::key(0));
    Ok(each(move || check(&checker, &limits, &key)))
}

/// A checker with a million keys, two limits each, in random order.
pub(crate) fn million_keys() -> Result<BenchOperation> {
    let (checker, limits) = (Checker::new(), two()?);
    for key in keys::million() {
        check(&checker, &limits, key).then_some(()).context("we refused a new key")?;
    }
    let mut walk = KeyWalk::over(keys::million());
    Ok(each(move || check(&checker, &limits, walk.step())))
}

/// One key of a checker that all threads want, two limits.
pub(crate) fn one_shared_key() -> Result<SharedOperation> {
    let (checker, limits, key) = (Checker::new(), two()?, keys::key(0));
    Ok(shared(move || check(&checker, &limits, &key)))
}

/// A store that has seen so many keys once, and has to remember every one of them.
pub(crate) fn fill(keys: u64) -> Result<Box<dyn Any>> {
    let memory = Memory::default();
    fill_memory(&memory, keys)?;
    Ok(Box::new(memory))
}

/// The same store once all keys are full again and have been swept out.
pub(crate) fn fill_and_sweep(keys: u64) -> Result<Box<dyn Any>> {
    let hands = ManualClock::at(Clock::system().now());
    let memory = Memory::builder().clock(hands.clock()).build();
    fill_memory(&memory, keys)?;
    hands.advance(Span::from_secs(2 * 86_400));
    let space = memory.space("");
    space.sweep(hands.now());
    ensure!(space.is_empty(), "{} of {keys} keys were not swept", space.len());
    // glibc keeps small blocks that were freed until a larger one comes and goes, as it does in any program.
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE_BLOCK)));
    Ok(Box::new(memory))
}

/// What a key has spent here comes back in a quarter of an hour: none may be full again, and so swept, before
/// the last key is in.
fn fill_memory(memory: &Memory, keys: u64) -> Result<()> {
    let limits = Limits::new([Limit::per_day("rpm", 100), Limit::per_day("tpm", 10_000)])?;
    let checker = Checker::in_memory(memory, "");
    for index in 0..keys {
        check(&checker, &limits, &keys::key(index)).then_some(()).context("we refused a new key")?;
    }
    let kept = memory.space("").len();
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

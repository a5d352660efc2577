//! Speed goals: how fast a batch is against a provider with unknown limits, on a virtual clock.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::one_each;
use tokio::time::{Instant, sleep};
use tollgate::{Span, Tick};
use tollgate_batch::simulator::{Disclosure, RetryAfter, SimLimit, SimProvider, simulate};
use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
use tollgate_provider::{Class, Hint};
use tollgate_store::Mutex;

const LATENCY: Span = Span::from_secs(1);

/// How long a batch took, in milliseconds, and how many of a thousand calls were refused.
struct RunResult {
    millis: u128,
    rejected: u64,
}

async fn run(provider: SimProvider, sizes: Vec<u64>, workers: usize) -> RunResult {
    let began = Instant::now();
    let count = sizes.len() as u64;
    let provider = Arc::new(Mutex::new(provider));
    let asked = Arc::clone(&provider);
    let items =
        sizes.into_iter().enumerate().map(|(at, tokens)| Item::new(at.to_string(), tokens).tokens(tokens));
    let run = Batch::new().workers(workers).seed(1).run(items, move |call: ItemAttempt<u64>| {
        let now = Tick::ZERO + Span::covering(began.elapsed());
        let (hint, latency) = asked.lock().call(now, *call.payload());
        async move {
            sleep(latency.to_duration()).await;
            if hint.class == Class::Ok { CallReply::done((), hint) } else { CallReply::refused(hint) }
        }
    });
    let outcomes = one_each(run, count).await;
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    let seen = provider.lock().stats;
    RunResult { millis: began.elapsed().as_millis(), rejected: seen.refused * 1_000 / seen.calls }
}

fn bucket(rate: u64, burst: u64) -> SimLimit {
    SimLimit::Bucket { rate, burst }
}

#[tokio::test(start_paused = true)]
async fn ten_a_second_is_met_within_a_twentieth_and_three_percent() {
    let result = run(SimProvider::of_calls(bucket(10, 10), LATENCY), vec![0; 2_000], 50).await;
    assert!(
        result.millis <= 210_000 && result.rejected < 30,
        "{} ms, {} of 1000",
        result.millis,
        result.rejected
    );
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_600_is_used_and_five_percent_are_refused_at_most() {
    let result = run(SimProvider::of_calls(bucket(10, 600), LATENCY), vec![0; 2_000], 50).await;
    assert!(
        result.millis <= 148_050 && result.rejected < 50,
        "{} ms, {} of 1000",
        result.millis,
        result.rejected
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_halves_half_way_is_followed_within_eight_percent() {
    let provider = SimProvider::of_calls(bucket(10, 10), LATENCY).halves_at(Tick::from_secs(100));
    let result = run(provider, vec![0; 2_000], 50).await;
    // 1,010 in the first 100 s, the others at 5 a second.
    let ideal = 100_000 + (2_000 - 1_010) * 200 + 1_000;
    assert!(result.millis <= ideal * 108 / 100, "{} ms of {ideal}", result.millis);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_met_within_a_tenth() {
    for retry_after in [RetryAfter::None, RetryAfter::Seconds] {
        let mut random = 42_u64;
        let sizes: Vec<u64> = (0..2_000)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                100 + random % 7_901
            })
            .collect();
        let total: u64 = sizes.iter().sum();
        let disclosure = Disclosure { retry_after, ..Disclosure::default() };
        let provider = SimProvider::of_tokens(bucket(40_000, 40_000), LATENCY).discloses(disclosure);
        let result = run(provider, sizes, 50).await;
        let ideal = u128::from(total - 40_000) / 40 + 1_000;
        assert!(result.millis <= ideal * 110 / 100, "{} ms of {ideal}", result.millis);
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_advertises_its_limits_refuses_less_than_one_percent() {
    for (rate, burst) in [(10, 600), (10, 60), (1, 60), (100, 6_000)] {
        let disclosure = Disclosure { headers: true, retry_after: RetryAfter::Exact, minutes: false };
        let provider = SimProvider::of_calls(bucket(rate, burst), LATENCY).discloses(disclosure);
        let workers = usize::try_from(rate * 2).unwrap().max(50);
        let result = run(provider, vec![0; 2_000 + burst as usize], workers).await;
        assert!(result.rejected < 10, "{rate}: {} of 1000", result.rejected);
        let ideal = u128::from(2_000 * 1_000 / rate)
            .max(u128::from((2_000 + burst) * 1_000) / workers as u128)
            + 1_000;
        assert!(result.millis <= ideal * 105 / 100, "{rate} {burst}: {} ms of {ideal}", result.millis);
    }
}

#[tokio::test(start_paused = true)]
async fn one_a_second_and_a_hundred_a_second_are_met_as_well() {
    for (rate, items, workers) in [(1, 2_000_u64, 50), (100, 20_000, 200)] {
        let burst = rate.max(10);
        let result =
            run(SimProvider::of_calls(bucket(rate, burst), LATENCY), vec![0; items as usize], workers).await;
        let ideal = u128::from((items - burst) * 1_000 / rate) + 1_000;
        let (most, rejected) = (ideal * 105 / 100, result.rejected);
        assert!(
            result.millis <= most && rejected < 30,
            "{rate}: {} ms of {ideal}, {rejected}",
            result.millis
        );
    }
}

/// A provider that refuses some calls at any pace must not make the batch slower and slower,
/// whether it advises a wait or not.
#[tokio::test(start_paused = true)]
async fn a_tenth_that_is_refused_at_any_pace_does_not_slow_the_batch_down_for_ever() {
    for advice in [Some(Duration::from_millis(10)), None] {
        let began = Instant::now();
        let work = (0..50_000_u64).map(|at| Item::new(at.to_string(), at));
        let run = Batch::new().workers(50).seed(1).run(work, move |call: ItemAttempt<u64>| async move {
            sleep(Duration::from_millis(10)).await;
            if call.number() == 1 && call.payload().is_multiple_of(10) {
                return CallReply::refused(Hint::throttled(advice));
            }
            CallReply::done((), Hint::ok())
        });
        one_each(run, 50_000).await;
        // Without a pace, 50 workers take 11 s, and 5,000 cooldowns in sequence 50 s.
        assert!(began.elapsed() < Duration::from_secs(200), "{advice:?}: {:?}", began.elapsed());
    }
}

/// If the provider has a limit as well, the pace stays close to it.
#[tokio::test(start_paused = true)]
async fn a_limit_is_respected_although_a_tenth_is_refused_at_any_pace() {
    for (rate, advice) in [(10, true), (10, false), (100, true), (100, false)] {
        let retry_after = if advice { RetryAfter::Exact } else { RetryAfter::None };
        let disclosure = Disclosure { headers: false, retry_after, minutes: false };
        let count = 500 * rate;
        let provider = SimProvider::of_calls(bucket(rate, 10), LATENCY).discloses(disclosure);
        let provider = Arc::new(Mutex::new(provider));
        let (asked, began) = (Arc::clone(&provider), Instant::now());
        let items = (0..count).map(|at| Item::new(at.to_string(), at));
        let run = Batch::new().workers(500).seed(1).run(items, move |call: ItemAttempt<u64>| {
            let now = Tick::ZERO + Span::covering(began.elapsed());
            let unlucky = call.number() == 1 && call.payload().is_multiple_of(10);
            let reply = (!unlucky).then(|| asked.lock().call(now, 0));
            async move {
                sleep(Duration::from_secs(1)).await;
                match reply {
                    Some((hint, _)) if hint.class == Class::Ok => CallReply::done((), hint),
                    Some((hint, _)) => CallReply::refused(hint),
                    None => CallReply::refused(Hint::throttled(advice.then_some(Duration::from_millis(100)))),
                }
            }
        });
        one_each(run, count).await;
        let (seen, took) = (provider.lock().stats, began.elapsed());
        let rejected = seen.refused * 1_000 / seen.calls;
        // At the limit the batch takes 500 s.
        assert!(took < Duration::from_secs(900) && rejected < 200, "{rate}, {advice}: {took:?}, {rejected}");
    }
}

/// Calls that take ten seconds do not start one by one until the first is answered.
#[tokio::test(start_paused = true)]
async fn calls_that_take_long_do_not_wait_for_the_first_reply() {
    let provider = SimProvider::unlimited(Span::from_secs(10));
    let result = run(provider, vec![0; 128], 64).await;
    assert!(result.millis <= 36_000, "{} ms, where 20 s are ideal", result.millis);
}

/// Timers are as succeeded as a millisecond, which is five calls here.
#[tokio::test(start_paused = true)]
async fn five_thousand_a_second_are_met_as_well() {
    let provider = SimProvider::of_calls(bucket(5_000, 5_000), Span::from_millis(100));
    let result = run(provider, vec![0; 200_000], 1_500).await;
    let ideal = 195_000 / 5 + 100;
    let rejected = result.rejected;
    assert!(
        result.millis <= ideal * 105 / 100 && rejected < 30,
        "{} ms of {ideal}, {rejected}",
        result.millis
    );
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_cools_down_does_not_slow_down_another() {
    let began = Instant::now();
    let items = (0..400_u64)
        .map(|at| Item::new(at.to_string(), at).scope(if at.is_multiple_of(2) { "slow" } else { "fast" }));
    let done = Arc::new(Mutex::new(Duration::ZERO));
    let recorded = Arc::clone(&done);
    let slow = Arc::new(Mutex::new(
        SimProvider::of_calls(bucket(1, 1), LATENCY)
            .discloses(Disclosure { retry_after: RetryAfter::Seconds, ..Disclosure::default() }),
    ));
    let run = Batch::new().workers(20).run(items, move |call: ItemAttempt<u64>| {
        let now = Tick::ZERO + Span::covering(began.elapsed());
        let hint = (call.scope() == "slow").then(|| slow.lock().call(now, 0).0);
        let recorded = Arc::clone(&recorded);
        async move {
            sleep(Duration::from_secs(1)).await;
            match hint {
                Some(hint) if hint.class != Class::Ok => CallReply::refused(hint),
                Some(hint) => CallReply::done((), hint),
                None => {
                    *recorded.lock() = began.elapsed();
                    CallReply::done((), tollgate_provider::Hint::ok())
                }
            }
        }
    });
    one_each(run, 400).await;
    let alone = alone(20, 200).await;
    let beside = *done.lock();
    assert!(
        beside <= alone + Duration::from_secs(2),
        "{beside:?} beside a scope that cools down, {alone:?} alone"
    );
}

/// Returns how long this many items take with a provider that refuses nothing.
async fn alone(workers: usize, count: u64) -> Duration {
    let began = Instant::now();
    let run = Batch::new().workers(workers).run(support::items(count), |_: ItemAttempt<u64>| async {
        sleep(Duration::from_secs(1)).await;
        support::succeeded(())
    });
    one_each(run, count).await;
    began.elapsed()
}

/// Calls arrive in another order than they were started in, so of a burst any call may be the first that is refused.
#[test]
fn a_batch_does_not_crawl_after_a_burst_that_arrived_in_another_order() {
    let makespan = |seed: u64| {
        let retry_after = [RetryAfter::None, RetryAfter::Exact][(seed / 2 % 2) as usize];
        let disclosure = Disclosure { headers: seed.is_multiple_of(2), retry_after, minutes: false };
        let provider = SimProvider::of_calls(bucket(20, 20), Span::from_millis(200 + seed % 7)).seed(seed);
        let provider = provider.arrives_within(Span::from_millis([1, 5, 20, 100][(seed / 4 % 4) as usize]));
        let provider = provider.refuses_within(Span::from_millis([0, 20, 200][(seed / 16 % 3) as usize]));
        (simulate(&mut provider.discloses(disclosure), &[510; 200], 50, seed).makespan, seed)
    };
    let (worst, seed) = (0..2_000).map(makespan).max().expect("there are seeds");
    // 20 at once, then 20 a second: 9 s.
    assert!(worst <= Tick::from_secs(14), "{worst:?} with seed {seed}");
}

/// One token is far less than one call: where no call passed, the pace of calls is lowered, and that of tokens not below it.
#[test]
fn calls_with_sizes_go_on_as_soon_after_an_outage_as_those_without() {
    let makespan = |tokens: u64, seed: u64| {
        let provider = SimProvider::of_calls(bucket(20, 20), Span::from_millis(200)).seed(seed);
        let (from, to) = (Tick::from_secs(1 + seed % 5), Tick::from_secs(3 + seed % 7));
        let mut provider = provider.outage(from, to).slower_by(Span::from_millis(50));
        simulate(&mut provider, &[tokens; 400], 50, seed).makespan
    };
    for seed in 0..200 {
        let (with, without) = (makespan(510, seed), makespan(0, seed));
        let most = without.since(Tick::ZERO).as_micros() * 3 / 2;
        assert!(with.since(Tick::ZERO).as_micros() <= most, "{with:?} of {without:?} with seed {seed}");
    }
}

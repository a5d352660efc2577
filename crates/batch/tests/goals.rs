//! How fast a batch is against a provider of whom nothing is known, on a virtual clock.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::one_each;
use tokio::time::{Instant, sleep};
use tollgate::{Span, Tick};
use tollgate_batch::simulator::{Manners, RetryAfter, SimLimit, SimProvider};
use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
use tollgate_provider::{Class, Hint};
use tollgate_store::Mutex;

const LATENCY: Span = Span::from_secs(1);

/// How a batch went: how long it took in milliseconds, and of a thousand calls how many were refused.
struct Went {
    millis: u128,
    rejected: u64,
}

async fn run(provider: SimProvider, sizes: Vec<u64>, workers: usize) -> Went {
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
    let seen = provider.lock().seen;
    Went { millis: began.elapsed().as_millis(), rejected: seen.refused * 1_000 / seen.calls }
}

fn bucket(rate: u64, burst: u64) -> SimLimit {
    SimLimit::Bucket { rate, burst }
}

#[tokio::test(start_paused = true)]
async fn ten_a_second_is_met_within_a_twentieth_and_three_percent() {
    let went = run(SimProvider::of_calls(bucket(10, 10), LATENCY), vec![0; 2_000], 50).await;
    assert!(went.millis <= 210_000 && went.rejected < 30, "{} ms, {} of 1000", went.millis, went.rejected);
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_600_is_used_and_five_percent_are_refused_at_most() {
    let went = run(SimProvider::of_calls(bucket(10, 600), LATENCY), vec![0; 2_000], 50).await;
    assert!(went.millis <= 148_050 && went.rejected < 50, "{} ms, {} of 1000", went.millis, went.rejected);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_halves_half_way_is_followed_within_eight_percent() {
    let provider = SimProvider::of_calls(bucket(10, 10), LATENCY).halves_at(Tick::from_secs(100));
    let went = run(provider, vec![0; 2_000], 50).await;
    // 1,010 in the first 100 s, the others at 5 a second.
    let ideal = 100_000 + (2_000 - 1_010) * 200 + 1_000;
    assert!(went.millis <= ideal * 108 / 100, "{} ms of {ideal}", went.millis);
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
        let manners = Manners { retry_after, ..Manners::default() };
        let provider = SimProvider::of_tokens(bucket(40_000, 40_000), LATENCY).manners(manners);
        let went = run(provider, sizes, 50).await;
        let ideal = u128::from(total - 40_000) / 40 + 1_000;
        assert!(went.millis <= ideal * 110 / 100, "{} ms of {ideal}", went.millis);
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_tells_how_its_limits_stand_refuses_less_than_one_percent() {
    for (rate, burst) in [(10, 600), (10, 60), (1, 60), (100, 6_000)] {
        let manners = Manners { headers: true, retry_after: RetryAfter::Exact, minutes: false };
        let provider = SimProvider::of_calls(bucket(rate, burst), LATENCY).manners(manners);
        let workers = usize::try_from(rate * 2).unwrap().max(50);
        let went = run(provider, vec![0; 2_000 + burst as usize], workers).await;
        assert!(went.rejected < 10, "{rate}: {} of 1000", went.rejected);
        let ideal = u128::from(2_000 * 1_000 / rate)
            .max(u128::from((2_000 + burst) * 1_000) / workers as u128)
            + 1_000;
        assert!(went.millis <= ideal * 105 / 100, "{rate} {burst}: {} ms of {ideal}", went.millis);
    }
}

#[tokio::test(start_paused = true)]
async fn one_a_second_and_a_hundred_a_second_are_met_as_well() {
    for (rate, items, workers) in [(1, 2_000_u64, 50), (100, 20_000, 200)] {
        let burst = rate.max(10);
        let went =
            run(SimProvider::of_calls(bucket(rate, burst), LATENCY), vec![0; items as usize], workers).await;
        let ideal = u128::from((items - burst) * 1_000 / rate) + 1_000;
        let (most, rejected) = (ideal * 105 / 100, went.rejected);
        assert!(went.millis <= most && rejected < 30, "{rate}: {} ms of {ideal}, {rejected}", went.millis);
    }
}

/// One that refuses some calls whatever the pace is not met by going slower and slower, whether it says how long to wait
/// or not.
#[tokio::test(start_paused = true)]
async fn a_tenth_that_is_refused_whatever_the_pace_does_not_slow_it_down_for_ever() {
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
        // Alone, with no pace at all, 50 workers take 11 s, and 5,000 cooldowns one after the other 50 s.
        assert!(began.elapsed() < Duration::from_secs(200), "{advice:?}: {:?}", began.elapsed());
    }
}

/// One that has a limit as well keeps its pace at about that.
#[tokio::test(start_paused = true)]
async fn a_limit_is_kept_to_though_a_tenth_is_refused_whatever_the_pace() {
    for (rate, advice) in [(10, true), (10, false), (100, true), (100, false)] {
        let retry_after = if advice { RetryAfter::Exact } else { RetryAfter::None };
        let manners = Manners { headers: false, retry_after, minutes: false };
        let count = 500 * rate;
        let provider = SimProvider::of_calls(bucket(rate, 10), LATENCY).manners(manners);
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
        let (seen, took) = (provider.lock().seen, began.elapsed());
        let rejected = seen.refused * 1_000 / seen.calls;
        // At its limit it takes 500 s.
        assert!(took < Duration::from_secs(900) && rejected < 200, "{rate}, {advice}: {took:?}, {rejected}");
    }
}

/// Calls that take ten seconds are not started one by one until the first is answered.
#[tokio::test(start_paused = true)]
async fn calls_that_take_long_do_not_wait_for_the_first_reply() {
    let provider = SimProvider::free(Span::from_secs(10));
    let went = run(provider, vec![0; 128], 64).await;
    assert!(went.millis <= 36_000, "{} ms, where 20 s are ideal", went.millis);
}

/// Timers are as fine as a millisecond, which is five calls here.
#[tokio::test(start_paused = true)]
async fn five_thousand_a_second_are_met_as_well() {
    let provider = SimProvider::of_calls(bucket(5_000, 5_000), Span::from_millis(100));
    let went = run(provider, vec![0; 200_000], 1_500).await;
    let ideal = 195_000 / 5 + 100;
    let rejected = went.rejected;
    assert!(went.millis <= ideal * 105 / 100 && rejected < 30, "{} ms of {ideal}, {rejected}", went.millis);
}

#[tokio::test(start_paused = true)]
async fn of_two_scopes_one_of_which_cools_down_the_other_loses_nothing() {
    let began = Instant::now();
    let items = (0..400_u64)
        .map(|at| Item::new(at.to_string(), at).scope(if at.is_multiple_of(2) { "slow" } else { "fast" }));
    let done = Arc::new(Mutex::new(Duration::ZERO));
    let noted = Arc::clone(&done);
    let slow = Arc::new(Mutex::new(
        SimProvider::of_calls(bucket(1, 1), LATENCY)
            .manners(Manners { retry_after: RetryAfter::Seconds, ..Manners::default() }),
    ));
    let run = Batch::new().workers(20).run(items, move |call: ItemAttempt<u64>| {
        let now = Tick::ZERO + Span::covering(began.elapsed());
        let hint = (call.scope() == "slow").then(|| slow.lock().call(now, 0).0);
        let noted = Arc::clone(&noted);
        async move {
            sleep(Duration::from_secs(1)).await;
            match hint {
                Some(hint) if hint.class != Class::Ok => CallReply::refused(hint),
                Some(hint) => CallReply::done((), hint),
                None => {
                    *noted.lock() = began.elapsed();
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

/// How long so many items take alone with a provider that refuses nothing.
async fn alone(workers: usize, count: u64) -> Duration {
    let began = Instant::now();
    let run = Batch::new().workers(workers).run(support::items(count), |_: ItemAttempt<u64>| async {
        sleep(Duration::from_secs(1)).await;
        support::fine(())
    });
    one_each(run, count).await;
    began.elapsed()
}

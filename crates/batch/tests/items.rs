//! Attempts, state, deadlines, budgets, accounts and reservations.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use support::{Calls, items, one_each, succeeded, throttled, without_jitter};
use tokio::time::{Instant, sleep};
use tollgate::{Demand, Limit, LimitSet, Span, Tick};
use tollgate_batch::simulator::{SimLimit, SimProvider};
use tollgate_batch::{
    Batch, CallReply, FailureClass, Item, ItemAttempt, ItemError, Jitter, Order, Retry, StopReason,
    TokenUsage,
};
use tollgate_provider::{Class, FatalKind, Hint, Tokens};
use tollgate_store::Mutex;

const SECOND: Duration = Duration::from_secs(1);

fn class<O>(result: &Result<O, ItemError>) -> Option<FailureClass> {
    match result {
        Err(ItemError::Item { class, .. }) => Some(*class),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn state_is_carried_from_one_call_to_the_next() {
    let run = Batch::new().attempts(10).run(items(1), |call: ItemAttempt<u64, Vec<String>>| async move {
        let word = format!("attempt {} call {}", call.attempt(), call.number());
        call.state().push(word);
        match call.number() {
            1 => throttled(1),
            2 => CallReply::invalid("half a sentence", Hint::ok()),
            3 => CallReply::refused(Hint::transient()),
            _ => succeeded(call.state().clone()),
        }
    });
    let outcomes = one_each(run, 1).await;
    let seen = outcomes[0].result.clone().unwrap();
    assert_eq!(seen, ["attempt 1 call 1", "attempt 1 call 2", "attempt 2 call 3", "attempt 3 call 4"]);
    assert_eq!((outcomes[0].attempts, outcomes[0].calls, outcomes[0].throttles), (3, 4, 1));
}

/// A provider that rejects an invalid request has let it pass its limits.
#[tokio::test(start_paused = true)]
async fn requests_that_all_fail_permanently_do_not_go_one_by_one() {
    let began = Instant::now();
    let run = Batch::new().workers(50).seed(1).run(items(2_000), |_: ItemAttempt<u64>| async {
        sleep(Duration::from_millis(200)).await;
        CallReply::<()>::refused(Hint::fatal(FatalKind::Request))
    });
    one_each(run, 2_000).await;
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}, where 8 s are ideal", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn each_class_has_its_own_attempts_and_a_fatal_one_has_one() {
    let batch = || {
        Batch::new()
            .on_overloaded(Retry::attempts(4).longest(10 * SECOND))
            .on_transient(Retry::attempts(3).pause(Duration::ZERO))
            .on_invalid(Retry::attempts(2).pause(Duration::ZERO))
    };
    type CallAnswer = fn() -> CallReply<()>;
    let cases: [(CallAnswer, FailureClass, u32); 5] = [
        (|| CallReply::refused(Hint::overloaded(None)), FailureClass::Overloaded, 4),
        (|| CallReply::refused(Hint::transient()), FailureClass::Transient, 3),
        (|| CallReply::invalid("no", Hint::ok()), FailureClass::Invalid, 2),
        (|| CallReply::refused(Hint::fatal(FatalKind::Request)), FailureClass::Fatal, 1),
        (|| panic!("on purpose"), FailureClass::Panicked, 1),
    ];
    for (answer, wanted, calls) in cases {
        let outcomes =
            one_each(batch().run(items(1), move |_: ItemAttempt<u64>| async move { answer() }), 1).await;
        assert_eq!((class(&outcomes[0].result), outcomes[0].calls), (Some(wanted), calls));
    }
}

#[tokio::test(start_paused = true)]
async fn backoff_doubles_and_follows_advice() {
    let began = Instant::now();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&starts);
    let retry = Retry::attempts(4).jitter(Jitter::Added);
    let run =
        Batch::new().on_overloaded(retry).run(items(1), move |call: ItemAttempt<u64>| {
            recorded.lock().push(began.elapsed());
            let advice = (call.number() == 3).then_some(100 * SECOND);
            async move {
                if call.number() < 4 { CallReply::refused(Hint::overloaded(advice)) } else { succeeded(()) }
            }
        });
    one_each(run, 1).await;
    let starts = starts.lock();
    let pauses: Vec<Duration> = starts.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(pauses[0] >= SECOND && pauses[0] <= SECOND * 3 / 2 + SECOND / 100, "{pauses:?}");
    assert!(pauses[1] >= 2 * SECOND && pauses[1] <= 3 * SECOND + SECOND / 100, "{pauses:?}");
    assert!(pauses[2] >= 100 * SECOND, "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn deadlines_hold_for_an_attempt_an_item_and_the_batch() {
    let hang = |_: ItemAttempt<u64>| async {
        sleep(1_000 * SECOND).await;
        succeeded(())
    };
    let began = Instant::now();
    let batch =
        Batch::new().attempt_deadline(2 * SECOND).on_transient(Retry::attempts(3).pause(Duration::ZERO));
    let outcomes = one_each(batch.run(items(1), hang), 1).await;
    assert_eq!((class(&outcomes[0].result), outcomes[0].calls), (Some(FailureClass::Transient), 3));
    assert!(began.elapsed() >= 6 * SECOND && began.elapsed() < 7 * SECOND);

    let outcomes = one_each(Batch::new().item_deadline(5 * SECOND).run(items(1), hang), 1).await;
    assert_eq!((class(&outcomes[0].result), outcomes[0].took), (Some(FailureClass::Deadline), 5 * SECOND));

    let began = Instant::now();
    let outcomes = one_each(Batch::new().workers(2).deadline(7 * SECOND).run(items(5), hang), 5).await;
    assert!(
        outcomes.iter().all(|outcome| outcome.result == Err(ItemError::Unfinished(StopReason::Deadline)))
    );
    assert_eq!(began.elapsed(), 7 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_refused_for_longer_than_its_budget_fails() {
    let batch = Batch::new().cooldown(without_jitter()).throttle_budget(10 * SECOND);
    let run = batch.run(items(1), |_: ItemAttempt<u64>| async { throttled::<()>(4) });
    let outcomes = one_each(run, 1).await;
    assert_eq!((class(&outcomes[0].result), outcomes[0].throttles), (Some(FailureClass::Throttled), 4));
}

#[tokio::test(start_paused = true)]
async fn used_and_reserved_tokens_never_exceed_the_budget() {
    let spent = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&spent);
    let work = (0..100_u64).map(|at| Item::new(at.to_string(), at).tokens(100).cost_micros(50));
    let batch = Batch::new().workers(8).max_tokens(1_000).max_cost_micros(1_000_000);
    let run = batch.run(work, move |_: ItemAttempt<u64>| {
        counted.fetch_add(80, Ordering::SeqCst);
        async {
            sleep(SECOND).await;
            CallReply::done((), Hint::ok().with_usage(Tokens::new(50, 30)))
        }
    });
    let (outcomes, summary) = run.collect().await.unwrap();
    let done = outcomes.iter().filter(|outcome| outcome.result.is_ok()).count();
    // Each call may use 100 and uses 80, so the twelfth still fits and the thirteenth does not.
    assert_eq!((done, spent.load(Ordering::SeqCst)), (12, 960));
    assert_eq!((summary.progress.tokens, summary.progress.cost_micros), (960, 480));
    assert_eq!(summary.stopped, Some(StopReason::Budget));
    assert!(
        outcomes
            .iter()
            .skip(12)
            .all(|outcome| outcome.result == Err(ItemError::Unfinished(StopReason::Budget)))
    );
}

#[tokio::test(start_paused = true)]
async fn usage_is_known_zero_or_as_estimated() {
    let work = (0..3_u64).map(|at| Item::new(at.to_string(), at).tokens(100).cost_micros(1_000));
    let run = Batch::new().run(work, |call: ItemAttempt<u64>| async move {
        let reply = succeeded(());
        match call.payload() {
            0 => reply.usage(TokenUsage::Known(40)),
            1 => reply.usage(TokenUsage::Zero),
            _ => reply,
        }
    });
    let outcomes = one_each(run, 3).await;
    let used: Vec<_> = outcomes.iter().map(|outcome| (outcome.tokens, outcome.cost_micros)).collect();
    assert_eq!(used, [(40, 400), (0, 0), (100, 1_000)]);
}

#[tokio::test(start_paused = true)]
async fn a_class_that_stops_the_batch_lets_calls_in_flight_finish() {
    let run = Batch::new().workers(4).stop_on(FailureClass::Fatal).run(
        items(50),
        |call: ItemAttempt<u64>| async move {
            sleep(if *call.payload() == 1 { SECOND } else { 2 * SECOND }).await;
            if *call.payload() == 1 {
                CallReply::refused(Hint::fatal(FatalKind::Request))
            } else {
                succeeded(())
            }
        },
    );
    let (outcomes, summary) = run.collect().await.unwrap();
    let done = outcomes.iter().filter(|outcome| outcome.result.is_ok()).count();
    assert_eq!((done, summary.stopped), (3, Some(StopReason::Stopped(FailureClass::Fatal))));
    assert_eq!(summary.progress.unfinished + 4, summary.progress.accepted);
}

#[tokio::test(start_paused = true)]
async fn the_order_of_the_input_holds_whichever_item_is_parked() {
    for buffer in [0, 1, 7] {
        let batch = Batch::new().workers(4).buffer(buffer).order(Order::Input);
        let mut run = batch.run(items(60), |call: ItemAttempt<u64>| async move {
            sleep(SECOND * (1 + (*call.payload() * 7 % 5) as u32)).await;
            if call.number() == 1 && call.payload().is_multiple_of(9) {
                throttled(20)
            } else {
                succeeded(*call.payload())
            }
        });
        let mut wanted = 0;
        while let Some(outcome) = run.next().await {
            assert_eq!(outcome.result, Ok(wanted));
            wanted += 1;
        }
        assert_eq!(wanted, 60);
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_that_cools_down_or_is_closed_is_skipped() {
    let calls = Calls::default();
    let counting = calls.clone();
    let began = Instant::now();
    let batch =
        Batch::new().workers(2).cooldown(without_jitter()).account("blue").account("green").account("red");
    let run = batch.run(items(30), move |call: ItemAttempt<u64>| {
        counting.count(&call);
        async move {
            sleep(SECOND).await;
            match call.scope() {
                "blue" => throttled(1_000),
                "red" => CallReply::refused(Hint::exhausted(None)),
                _ => succeeded(()),
            }
        }
    });
    let outcomes = one_each(run, 30).await;
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert!(began.elapsed() < 60 * SECOND, "{:?}", began.elapsed());
    assert!(calls.total() <= 34, "{}", calls.total());
}

fn limits(tokens: u64) -> LimitSet {
    let limits = [Limit::per_hour("tpm", tokens).burst(tokens), Limit::resource("connections", 4)];
    LimitSet::new(limits).expect("valid limits")
}

fn tokens_of(tokens: u64) -> Demand {
    Demand::new().with("tpm", tokens)
}

#[tokio::test]
async fn a_reservation_is_settled_with_what_was_used() {
    let set = limits(1_000);
    let work = (0..4_u64).map(|at| Item::new(at.to_string(), at).tokens(200));
    let batch = Batch::new().account_with("blue", set.clone()).demand(tokens_of);
    let run = batch.run(work, |call: ItemAttempt<u64>| async move {
        match (call.payload(), call.number()) {
            (0, _) => succeeded(()).usage(TokenUsage::Known(50)),
            (1, _) => succeeded(()).usage(TokenUsage::Known(250)),
            (2, _) => succeeded(()),
            (_, 1) => CallReply::refused(Hint::throttled(Some(Duration::from_millis(1)))),
            _ => succeeded(()).usage(TokenUsage::Zero),
        }
    });
    let outcomes = one_each(run, 4).await;
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert_eq!(set.peek().await.unwrap().limit("tpm").unwrap().available(), 1_000 - 50 - 250 - 200);
    assert_eq!(set.peek().await.unwrap().limit("connections").unwrap().available(), 4);
}

#[tokio::test]
async fn an_item_goes_to_an_account_that_admits_it() {
    let (small, large) = (limits(100), limits(1_000));
    let accounts = Batch::new().account_with("small", small.clone()).account_with("large", large.clone());
    let work = (0..10_u64).map(|at| Item::new(at.to_string(), at).tokens(50));
    let run = accounts
        .demand(tokens_of)
        .run(work, |_: ItemAttempt<u64>| async { succeeded(()).usage(TokenUsage::Known(50)) });
    let outcomes = one_each(run, 10).await;
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    let left = [small.peek().await.unwrap(), large.peek().await.unwrap()];
    assert_eq!(left.map(|peek| peek.limit("tpm").unwrap().available()), [0, 600]);
}

/// Of three accounts one answers ten times slower: it gets calls only while the others are at their
/// limits, and none that would end last.
#[tokio::test(start_paused = true)]
async fn the_slow_one_of_three_accounts_delays_no_item() {
    for (workers, rate, ideal) in [(20, 1_000_000, 25_000), (300, 10, 33_000)] {
        let began = Instant::now();
        let limit = SimLimit::Bucket { rate, burst: rate };
        let providers = ["fast", "quick", "slow"].map(|name| {
            let millis = if name == "slow" { 5_000 } else { 500 };
            let provider = SimProvider::of_calls(limit, Span::from_millis(millis));
            (name, Arc::new(Mutex::new(provider.refuses_within(Span::from_millis(100)))))
        });
        let mut batch = Batch::new().workers(workers).seed(1);
        for (name, _) in &providers {
            batch = batch.account(*name);
        }
        let run = batch.run(items(1_000), move |call: ItemAttempt<u64>| {
            let provider = &providers.iter().find(|(name, _)| *name == call.scope()).unwrap().1;
            let (hint, took) = provider.lock().call(Tick::ZERO + Span::covering(began.elapsed()), 0);
            async move {
                sleep(took.to_duration()).await;
                if hint.class == Class::Ok { CallReply::done((), hint) } else { CallReply::refused(hint) }
            }
        });
        assert!(one_each(run, 1_000).await.iter().all(|outcome| outcome.result.is_ok()));
        let took = began.elapsed().as_millis();
        assert!(took <= ideal * 13 / 10, "{workers} workers: {took} ms of {ideal}");
    }
}

#[tokio::test]
async fn a_reservation_in_one_of_several_accounts_is_returned_when_it_cools_down() {
    let sets = [limits(1_000), limits(1_000)];
    let mut batch = Batch::new().workers(8).cooldown(without_jitter()).demand(tokens_of);
    for (name, set) in ["blue", "green"].into_iter().zip(&sets) {
        batch = batch.account_with(name, set.clone());
    }
    let work = (0..40_u64).map(|at| Item::new(at.to_string(), at).tokens(10));
    let run = batch.run(work, |call: ItemAttempt<u64>| async move {
        if call.payload().is_multiple_of(3) && call.number() == 1 {
            CallReply::refused(Hint::throttled(Some(Duration::from_millis(2)))).usage(TokenUsage::Zero)
        } else {
            succeeded(()).usage(TokenUsage::Known(10))
        }
    });
    assert!(one_each(run, 40).await.iter().all(|outcome| outcome.result.is_ok()));
    let mut left = 0;
    for set in &sets {
        let peek = set.peek().await.unwrap();
        assert_eq!(peek.limit("connections").unwrap().available(), 4);
        left += peek.limit("tpm").unwrap().available();
    }
    assert_eq!(left, 2_000 - 40 * 10);
}

#[tokio::test]
async fn the_reservation_of_a_call_that_has_not_started_is_returned_when_a_cooldown_begins() {
    // One connection: the first call holds it and meets a 429 while the others wait for admission.
    let set = LimitSet::new([Limit::per_hour("tpm", 1_000).burst(1_000), Limit::resource("connections", 1)])
        .unwrap();
    let batch = Batch::new()
        .workers(5)
        .cooldown(without_jitter())
        .account_with("blue", set.clone())
        .demand(tokens_of);
    let work = (0..5_u64).map(|at| Item::new(at.to_string(), at).tokens(10));
    let run = batch.run(work, |call: ItemAttempt<u64>| async move {
        tokio::task::yield_now().await;
        if *call.payload() == 0 && call.number() == 1 {
            CallReply::refused(Hint::throttled(Some(Duration::from_millis(30))))
        } else {
            succeeded(()).usage(TokenUsage::Known(10))
        }
    });
    let (outcomes, summary) = run.collect().await.unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    // One call gets the connection and starts before the batch gets the 429; the others do not.
    assert_eq!((summary.counters.given_back, summary.counters.calls), (3, 6));
    assert_eq!(set.peek().await.unwrap().limit("tpm").unwrap().available(), 950);
    assert_eq!(set.peek().await.unwrap().limit("connections").unwrap().available(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_demand_that_can_never_be_admitted_fails_with_the_reason() {
    let batch = Batch::new().account_with("blue", limits(100)).demand(tokens_of);
    let work = [Item::new("big", 0_u64).tokens(101)];
    let outcomes = one_each(batch.run(work, |_: ItemAttempt<u64>| async { succeeded(()) }), 1).await;
    let Err(ItemError::Item { class: FailureClass::Fatal, reason }) = &outcomes[0].result else { panic!() };
    assert!(reason.contains("tpm") && reason.contains("100"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_at_most_64_scopes_and_fails_items_of_further_ones() {
    let work = (0..80_u64).map(|at| Item::new(at.to_string(), at).scope(at.to_string()));
    let outcomes = one_each(Batch::new().run(work, |_: ItemAttempt<u64>| async { succeeded(()) }), 80).await;
    let failed =
        outcomes.iter().filter(|outcome| class(&outcome.result) == Some(FailureClass::Fatal)).count();
    assert_eq!(failed, 80 - 64 + 1, "one scope is the default one");
}

#[tokio::test(start_paused = true)]
async fn first_calls_that_hang_do_not_delay_the_others_for_ever() {
    let began = Instant::now();
    let run = Batch::new().workers(20).run(items(30), |call: ItemAttempt<u64>| async move {
        sleep(if *call.payload() < 10 { 10_000 * SECOND } else { SECOND }).await;
        succeeded(())
    });
    let mut run = run;
    for _ in 0..20 {
        assert!(run.next().await.unwrap().index >= 10);
    }
    assert!(began.elapsed() < 60 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_batch_runs_on_a_manual_clock() {
    let clock = tollgate::ManualClock::at(tollgate::Tick::from_secs(1_000));
    let batch = Batch::new().cooldown(without_jitter()).clock(clock.clock());
    let mut run = batch.run(items(1), |call: ItemAttempt<u64>| async move {
        if call.number() == 1 { throttled(30) } else { succeeded(()) }
    });
    // The batch has set an alarm when it waits.
    while clock.next_alarm().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(clock.next_alarm(), Some(tollgate::Tick::from_secs(1_030)));
    clock.advance(tollgate::Span::from_secs(60));
    let outcome = run.next().await.unwrap();
    assert_eq!((outcome.result, outcome.took), (Ok(()), 60 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_handler_did_not_make_is_not_counted_and_another_account_serves_its_item() {
    let batch = Batch::new().workers(4).account("right").account("wrong");
    let (asked, counter) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counting = Arc::clone(&counter);
    let run = batch.run(items(20), move |call: ItemAttempt<u64>| {
        let was_known = call.scope() == "wrong" && asked.fetch_add(1, Ordering::SeqCst) > 0;
        counting.fetch_add(u32::from(was_known), Ordering::SeqCst);
        async move {
            match call.scope() {
                "wrong" if was_known => CallReply::not_sent(Hint::fatal(FatalKind::Auth)),
                "wrong" => CallReply::refused(Hint::fatal(FatalKind::Auth)),
                _ => succeeded(*call.payload()),
            }
        }
    });
    let (outcomes, summary) = run.collect().await.expect("the batch ends");
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert!(counter.load(Ordering::SeqCst) > 0, "some calls were not made");
    assert_eq!(summary.counters.calls, 21);
}

#[tokio::test]
async fn large_payloads_bound_how_many_items_wait_and_one_that_is_too_large_still_passes() {
    const MEGABYTE: usize = 1 << 20;
    let (finished, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (ended, held) = (Arc::clone(&finished), Arc::clone(&most));
    let items = items(200).zip(0_u32..).map(move |(item, number)| {
        held.fetch_max(number + 1 - ended.load(Ordering::SeqCst), Ordering::SeqCst);
        item.payload_bytes(if number.is_multiple_of(50) { 100 * MEGABYTE } else { 4 * MEGABYTE })
    });
    let run = Batch::new().workers(2).buffer_bytes(10 * MEGABYTE).run(items, move |_: ItemAttempt<u64>| {
        let finished = Arc::clone(&finished);
        async move {
            tokio::task::yield_now().await;
            finished.fetch_add(1, Ordering::SeqCst);
            succeeded(())
        }
    });
    let (outcomes, _) = run.collect().await.expect("the batch ends");
    assert_eq!(outcomes.len(), 200);
    // Two items are in flight and three wait: the third exceeds ten megabytes.
    assert_eq!(most.load(Ordering::SeqCst), 5);
}

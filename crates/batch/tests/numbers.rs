//! Exact numbers of calls, cooldowns and outcomes, on a virtual clock.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::{Calls, EventLog, items, one_each, succeeded, throttled, without_jitter};
use tokio::time::{Instant, sleep};
use tollgate_batch::{Batch, CallReply, FailureClass, Item, ItemAttempt, ItemError, StopReason};
use tollgate_provider::{FatalKind, Hint};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn ten_workers_whose_first_calls_meet_429_make_twenty_calls_and_one_cooldown() {
    let calls = Calls::default();
    let counting = calls.clone();
    let run =
        Batch::new().workers(10).cooldown(without_jitter()).run(items(10), move |call: ItemAttempt<u64>| {
            let number = counting.count(&call);
            async move {
                sleep(SECOND).await;
                if number == 1 { throttled(5) } else { succeeded(*call.payload()) }
            }
        });
    let (outcomes, summary) = run.collect().await.unwrap();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.result.is_ok()).count(), 10);
    assert_eq!((calls.total(), summary.counters.calls), (20, 20));
    assert_eq!((summary.counters.generations, summary.counters.rejected), (1, 10));
    assert_eq!(summary.counters.participants, [10]);
    assert_eq!((summary.counters.parked, summary.counters.handed_out), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn five_workers_and_two_429s_for_each_item_lose_and_duplicate_no_item() {
    let calls = Calls::default();
    let counting = calls.clone();
    let run = Batch::new().workers(5).run(items(15), move |call: ItemAttempt<u64>| {
        let number = counting.count(&call);
        async move {
            sleep(SECOND).await;
            if number <= 2 { throttled(1) } else { succeeded(*call.payload()) }
        }
    });
    let (outcomes, summary) = run.collect().await.unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.result == Ok(outcome.index)));
    assert_eq!((outcomes.len(), calls.total()), (15, 45));
    assert!(summary.counters.generations >= 2);
}

#[tokio::test(start_paused = true)]
async fn with_twenty_workers_and_every_second_call_a_429_there_is_a_call_for_each_item_and_each_429() {
    for seed in 0..20_u64 {
        let random = Arc::new(Mutex::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
        let run = Batch::new().workers(20).seed(seed).run(items(100), move |call: ItemAttempt<u64>| {
            let mut random = random.lock().unwrap();
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            let refused = random.is_multiple_of(2);
            async move {
                sleep(SECOND).await;
                if refused { CallReply::refused(Hint::throttled(None)) } else { succeeded(*call.payload()) }
            }
        });
        let (outcomes, summary) = run.collect().await.unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.result == Ok(outcome.index)), "seed {seed}");
        assert_eq!(outcomes.len(), 100, "seed {seed}");
        assert_eq!(summary.counters.calls, 100 + summary.counters.rejected, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_of_an_old_call_begins_no_cooldown() {
    let calls = Calls::default();
    let counting = calls.clone();
    // Item 0 gets its reply at once, item 1 only after the cooldown of item 0 is over.
    let run =
        Batch::new().workers(2).cooldown(without_jitter()).run(items(2), move |call: ItemAttempt<u64>| {
            let number = counting.count(&call);
            async move {
                let item = *call.payload();
                sleep(if item == 0 { SECOND } else { 10 * SECOND }).await;
                if number == 1 { throttled(3) } else { succeeded(item) }
            }
        });
    let (_, summary) = run.collect().await.unwrap();
    assert_eq!((summary.counters.generations, summary.counters.rejected), (1, 2));
    assert_eq!(summary.counters.participants, [1]);
}

#[tokio::test(start_paused = true)]
async fn a_cooldown_lasts_although_the_item_that_met_the_429_fails_after_a_tenth_of_it() {
    let began = Instant::now();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&starts);
    let run = Batch::new()
        .workers(2)
        .cooldown(without_jitter())
        // The item that meets the 429 fails 3 s later, which is a tenth of the cooldown.
        .item_deadline(4 * SECOND)
        .run_stream(DelayedItems::new(began), move |call: ItemAttempt<u64>| {
            recorded.lock().unwrap().push((*call.payload(), began.elapsed()));
            async move {
                sleep(SECOND).await;
                if *call.payload() == 0 { throttled(30) } else { succeeded(0) }
            }
        });
    let (outcomes, _) = run.collect().await.unwrap();
    assert!(matches!(&outcomes[0].result, Err(ItemError::Item { class: FailureClass::Deadline, .. })));
    assert_eq!(outcomes[0].took, 4 * SECOND);
    assert!(outcomes[1].result.is_ok());
    let starts = starts.lock().unwrap();
    assert_eq!(starts[1].0, 1);
    assert!(starts[1].1 >= 31 * SECOND, "{starts:?}");
}

/// A stream with item 0 at once and item 1 after 29 s.
struct DelayedItems {
    began: Instant,
    next: u64,
    sleep: std::pin::Pin<Box<tokio::time::Sleep>>,
}

impl DelayedItems {
    fn new(began: Instant) -> DelayedItems {
        DelayedItems { began, next: 0, sleep: Box::pin(sleep(29 * SECOND)) }
    }
}

impl futures_core::Stream for DelayedItems {
    type Item = Item<u64>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Item<u64>>> {
        use std::task::Poll;
        if self.next == 1 && self.sleep.as_mut().poll(context).is_pending() {
            assert!(self.began.elapsed() < 29 * SECOND);
            return Poll::Pending;
        }
        self.next += 1;
        Poll::Ready((self.next <= 2).then(|| Item::new((self.next - 1).to_string(), self.next - 1)))
    }
}

use std::future::Future;

#[tokio::test(start_paused = true)]
async fn shutdown_during_a_cooldown_finishes_every_item_at_once() {
    let log = EventLog::default();
    let began = Instant::now();
    let mut run = Batch::new().workers(4).cooldown(without_jitter()).observer(log.observer()).run(
        items(20),
        |_: ItemAttempt<u64>| async {
            sleep(SECOND).await;
            throttled::<u64>(30)
        },
    );
    let stopper = run.stopper();
    let stop = async move {
        sleep(3 * SECOND).await;
        stopper.shut_down();
    };
    let (first, ()) = tokio::join!(run.next(), stop);
    assert_eq!(first.unwrap().result, Err(ItemError::Unfinished(StopReason::Shutdown)));
    let mut others = 0;
    while run.next().await.is_some() {
        others += 1;
    }
    assert_eq!(others, 19);
    let summary = run.finish().await.unwrap();
    assert_eq!(began.elapsed(), 3 * SECOND);
    assert_eq!(summary.progress.unfinished, 20);
    assert_eq!((log.count("cooling"), log.count("cooled"), log.count("ended")), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn advice_of_a_day_with_a_cap_of_ten_minutes_is_ten_minutes() {
    let log = EventLog::default();
    let policy = without_jitter().cap(Duration::from_secs(600));
    let run = Batch::new()
        .cooldown(policy)
        .observer(log.observer())
        .run(items(1), |call: ItemAttempt<u64>| async move {
            if call.number() == 1 { throttled(86_400) } else { succeeded(0) }
        });
    run.finish().await.unwrap();
    assert!(log.lines().contains(&"cooling default 600000ms".to_owned()), "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn advice_that_is_not_a_duration_is_replaced_by_the_default() {
    use std::time::SystemTime;
    use tollgate_provider::{Response, read};
    for advice in ["NaN", "inf", "-5"] {
        let log = EventLog::default();
        let policy = without_jitter().default_cooldown(Duration::from_secs(7));
        let run = Batch::new().cooldown(policy).observer(log.observer()).run(
            items(1),
            move |call: ItemAttempt<u64>| {
                let hint =
                    read(&Response::new(429, &[("retry-after", advice)], b"{}"), SystemTime::UNIX_EPOCH);
                async move { if call.number() == 1 { CallReply::refused(hint) } else { succeeded(0) } }
            },
        );
        run.finish().await.unwrap();
        assert!(log.lines().contains(&"cooling default 7000ms".to_owned()), "{advice}: {:?}", log.lines());
    }
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_cools_down_does_not_delay_another() {
    let began = Instant::now();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&starts);
    let work =
        (0..8).map(|number| Item::new(number.to_string(), number).scope(if number < 4 { "a" } else { "b" }));
    let run = Batch::new().workers(4).cooldown(without_jitter()).run(work, move |call: ItemAttempt<u64>| {
        recorded.lock().unwrap().push((call.scope().to_owned(), began.elapsed()));
        async move { if call.scope() == "a" && call.number() == 1 { throttled(30) } else { succeeded(0) } }
    });
    let (outcomes, _) = run.collect().await.unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    let starts = starts.lock().unwrap();
    let first =
        |scope: &str| starts.iter().filter(|(name, _)| name == scope).map(|(_, at)| *at).min().unwrap();
    assert_eq!(first("b"), Duration::ZERO);
    assert!(starts.iter().filter(|(name, at)| name == "a" && *at >= 30 * SECOND).count() >= 4);
}

#[tokio::test(start_paused = true)]
async fn five_429s_are_no_attempts() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&seen);
    let run = Batch::new().attempts(3).run(items(1), move |call: ItemAttempt<u64>| {
        recorded.lock().unwrap().push(call.attempt());
        async move { if call.number() <= 5 { throttled(1) } else { succeeded(0) } }
    });
    let (outcomes, _) = run.collect().await.unwrap();
    assert_eq!((outcomes[0].result.is_ok(), outcomes[0].attempts, outcomes[0].throttles), (true, 1, 5));
    assert_eq!(*seen.lock().unwrap(), [1; 6]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_outcomes_are_not_read_starts_no_call() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let mut run = Batch::new().workers(3).buffer(2).run(items(100), move |_: ItemAttempt<u64>| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { succeeded(0) }
    });
    for wanted in 5..50 {
        sleep(SECOND).await;
        assert_eq!(calls.load(Ordering::SeqCst), wanted);
        run.next().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminal_refusal_closes_the_scope_with_its_reason() {
    let log = EventLog::default();
    let refusals = [
        Hint::exhausted(None).with_reason("insufficient_quota"),
        Hint::fatal(FatalKind::Auth).with_reason("key"),
    ];
    for hint in refusals {
        let reason = hint.reason.clone().unwrap();
        let calls = Calls::default();
        let counting = calls.clone();
        let run =
            Batch::new().workers(1).observer(log.observer()).run(items(10), move |call: ItemAttempt<u64>| {
                counting.count(&call);
                let hint = hint.clone();
                async move { CallReply::<u64>::refused(hint) }
            });
        let outcomes = one_each(run, 10).await;
        assert_eq!(calls.total(), 1);
        for outcome in outcomes {
            let Err(ItemError::Unfinished(StopReason::Closed(closed))) = outcome.result else {
                panic!("{outcome:?}")
            };
            assert_eq!(*closed.reason, *reason);
        }
    }
    assert_eq!(log.count("closed"), 2);
}

/// Counts the values that are alive, and their maximum.
struct Counted(Arc<(AtomicU32, AtomicU32)>);

impl Counted {
    fn new(counts: &Arc<(AtomicU32, AtomicU32)>) -> Counted {
        let alive = counts.0.fetch_add(1, Ordering::Relaxed) + 1;
        counts.1.fetch_max(alive, Ordering::Relaxed);
        Counted(Arc::clone(counts))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_a_million_items_holds_no_more_than_may_wait() {
    let counts = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
    let counted = Arc::clone(&counts);
    let id: Arc<str> = "item".into();
    let work = (0..1_000_000).map(move |_| Item::new(Arc::clone(&id), Counted::new(&counted)));
    let batch = Batch::new().workers(10).lookahead(100).buffer(50);
    let mut run = batch.run(work, |_: ItemAttempt<Counted>| async { succeeded(()) });
    let mut read = 0;
    while run.next().await.is_some() {
        read += 1;
    }
    assert_eq!((read, counts.0.load(Ordering::Relaxed)), (1_000_000, 0));
    // One more is between the input and the batch.
    assert!(counts.1.load(Ordering::Relaxed) <= 10 + 100 + 1, "{}", counts.1.load(Ordering::Relaxed));
}

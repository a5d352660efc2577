//! The numbers that must hold, each on a virtual clock.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::{Calls, Diary, exact, fine, items, not_now, one_each};
use tokio::time::{Instant, sleep};
use tollgate_batch::{Batch, CallReply, FailureClass, Item, ItemAttempt, ItemError, StopReason};
use tollgate_provider::{FatalKind, Hint};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn ten_workers_whose_first_calls_meet_429_make_twenty_calls_and_one_cooldown() {
    let calls = Calls::default();
    let counting = calls.clone();
    let run = Batch::new().workers(10).rules(exact()).run(items(10), move |call: ItemAttempt<u64>| {
        let number = counting.count(&call);
        async move {
            sleep(SECOND).await;
            if number == 1 { not_now(5) } else { fine(*call.payload()) }
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
async fn five_workers_and_two_429s_each_lose_none_and_double_none() {
    let calls = Calls::default();
    let counting = calls.clone();
    let run = Batch::new().workers(5).run(items(15), move |call: ItemAttempt<u64>| {
        let number = counting.count(&call);
        async move {
            sleep(SECOND).await;
            if number <= 2 { not_now(1) } else { fine(*call.payload()) }
        }
    });
    let (outcomes, summary) = run.collect().await.unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.result == Ok(outcome.index)));
    assert_eq!((outcomes.len(), calls.total()), (15, 45));
    assert!(summary.counters.generations >= 2);
}

#[tokio::test(start_paused = true)]
async fn twenty_workers_and_half_of_the_calls_429_make_as_many_calls_as_items_and_429s() {
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
                if refused { CallReply::refused(Hint::throttled(None)) } else { fine(*call.payload()) }
            }
        });
        let (outcomes, summary) = run.collect().await.unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.result == Ok(outcome.index)), "seed {seed}");
        assert_eq!(outcomes.len(), 100, "seed {seed}");
        assert_eq!(summary.counters.calls, 100 + summary.counters.rejected, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_call_s_429_after_its_cooldown_begins_no_other() {
    let calls = Calls::default();
    let counting = calls.clone();
    // Item 0 gets its reply at once, item 1 only after the cooldown of item 0 is over.
    let run = Batch::new().workers(2).rules(exact()).run(items(2), move |call: ItemAttempt<u64>| {
        let number = counting.count(&call);
        async move {
            let item = *call.payload();
            sleep(if item == 0 { SECOND } else { 10 * SECOND }).await;
            if number == 1 { not_now(3) } else { fine(item) }
        }
    });
    let (_, summary) = run.collect().await.unwrap();
    assert_eq!((summary.counters.generations, summary.counters.rejected), (1, 2));
    assert_eq!(summary.counters.participants, [1]);
}

#[tokio::test(start_paused = true)]
async fn a_reporter_cancelled_at_a_tenth_of_the_cooldown_lets_the_others_wait_for_its_end() {
    let began = Instant::now();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&starts);
    let run = Batch::new()
        .workers(2)
        .rules(exact())
        // The item that meets the 429 is given up 3 s later, which is a tenth of the cooldown.
        .item_deadline(4 * SECOND)
        .run_stream(Later::new(began), move |call: ItemAttempt<u64>| {
            noted.lock().unwrap().push((*call.payload(), began.elapsed()));
            async move {
                sleep(SECOND).await;
                if *call.payload() == 0 { not_now(30) } else { fine(0) }
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

/// Item 0 at once, item 1 after 29 s.
struct Later {
    began: Instant,
    next: u64,
    sleep: std::pin::Pin<Box<tokio::time::Sleep>>,
}

impl Later {
    fn new(began: Instant) -> Later {
        Later { began, next: 0, sleep: Box::pin(sleep(29 * SECOND)) }
    }
}

impl futures_core::Stream for Later {
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
async fn shutdown_during_a_cooldown_returns_at_once_and_everyone_wakes() {
    let diary = Diary::default();
    let began = Instant::now();
    let mut run = Batch::new().workers(4).rules(exact()).observer(diary.observer()).run(
        items(20),
        |_: ItemAttempt<u64>| async {
            sleep(SECOND).await;
            not_now::<u64>(30)
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
    assert_eq!((diary.count("cooling"), diary.count("cooled"), diary.count("ended")), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn advice_of_a_day_with_a_cap_of_ten_minutes_is_ten_minutes() {
    let diary = Diary::default();
    let rules = exact().cap(Duration::from_secs(600));
    let run = Batch::new()
        .rules(rules)
        .observer(diary.observer())
        .run(items(1), |call: ItemAttempt<u64>| async move {
            if call.number() == 1 { not_now(86_400) } else { fine(0) }
        });
    run.finish().await.unwrap();
    assert!(diary.lines().contains(&"cooling default 600000ms".to_owned()), "{:?}", diary.lines());
}

#[tokio::test(start_paused = true)]
async fn advice_that_is_no_time_is_the_default() {
    use std::time::SystemTime;
    use tollgate_provider::{Response, read};
    for advice in ["NaN", "inf", "-5"] {
        let diary = Diary::default();
        let rules = exact().default_cooldown(Duration::from_secs(7));
        let run = Batch::new().rules(rules).observer(diary.observer()).run(
            items(1),
            move |call: ItemAttempt<u64>| {
                let hint =
                    read(&Response::new(429, &[("retry-after", advice)], b"{}"), SystemTime::UNIX_EPOCH);
                async move { if call.number() == 1 { CallReply::refused(hint) } else { fine(0) } }
            },
        );
        run.finish().await.unwrap();
        assert!(
            diary.lines().contains(&"cooling default 7000ms".to_owned()),
            "{advice}: {:?}",
            diary.lines()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_cools_down_costs_another_nothing() {
    let began = Instant::now();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&starts);
    let work =
        (0..8).map(|number| Item::new(number.to_string(), number).scope(if number < 4 { "a" } else { "b" }));
    let run = Batch::new().workers(4).rules(exact()).run(work, move |call: ItemAttempt<u64>| {
        noted.lock().unwrap().push((call.scope().to_owned(), began.elapsed()));
        async move { if call.scope() == "a" && call.number() == 1 { not_now(30) } else { fine(0) } }
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
    let noted = Arc::clone(&seen);
    let run = Batch::new().attempts(3).run(items(1), move |call: ItemAttempt<u64>| {
        noted.lock().unwrap().push(call.attempt());
        async move { if call.number() <= 5 { not_now(1) } else { fine(0) } }
    });
    let (outcomes, _) = run.collect().await.unwrap();
    assert_eq!((outcomes[0].result.is_ok(), outcomes[0].attempts, outcomes[0].throttles), (true, 1, 5));
    assert_eq!(*seen.lock().unwrap(), [1; 6]);
}

#[tokio::test(start_paused = true)]
async fn nobody_reads_and_it_stands_still_until_somebody_does() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let mut run = Batch::new().workers(3).buffer(2).run(items(100), move |_: ItemAttempt<u64>| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { fine(0) }
    });
    for wanted in 5..50 {
        sleep(SECOND).await;
        assert_eq!(calls.load(Ordering::SeqCst), wanted);
        run.next().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminal_refusal_closes_the_scope_with_its_reason() {
    let diary = Diary::default();
    let refusals = [
        Hint::exhausted(None).with_reason("insufficient_quota"),
        Hint::fatal(FatalKind::Auth).with_reason("key"),
    ];
    for hint in refusals {
        let reason = hint.reason.clone().unwrap();
        let calls = Calls::default();
        let counting = calls.clone();
        let run = Batch::new().workers(1).observer(diary.observer()).run(
            items(10),
            move |call: ItemAttempt<u64>| {
                counting.count(&call);
                let hint = hint.clone();
                async move { CallReply::<u64>::refused(hint) }
            },
        );
        let outcomes = one_each(run, 10).await;
        assert_eq!(calls.total(), 1);
        for outcome in outcomes {
            let Err(ItemError::Unfinished(StopReason::Closed(closed))) = outcome.result else {
                panic!("{outcome:?}")
            };
            assert_eq!(*closed.reason, *reason);
        }
    }
    assert_eq!(diary.count("closed"), 2);
}

/// Counts those that are alive, and how many were at most.
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
async fn of_a_million_items_no_more_are_held_than_may_wait() {
    let counts = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
    let counted = Arc::clone(&counts);
    let id: Arc<str> = "item".into();
    let work = (0..1_000_000).map(move |_| Item::new(Arc::clone(&id), Counted::new(&counted)));
    let batch = Batch::new().workers(10).lookahead(100).buffer(50);
    let mut run = batch.run(work, |_: ItemAttempt<Counted>| async { fine(()) });
    let mut read = 0;
    while run.next().await.is_some() {
        read += 1;
    }
    assert_eq!((read, counts.0.load(Ordering::Relaxed)), (1_000_000, 0));
    // One more is on its way from the input.
    assert!(counts.1.load(Ordering::Relaxed) <= 10 + 100 + 1, "{}", counts.1.load(Ordering::Relaxed));
}

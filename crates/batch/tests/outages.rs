//! Outages: every call fails for a while, and no item is to blame. On a virtual clock.

mod support;

use std::time::Duration;

use support::{Calls, EventLog, items, one_each, succeeded};
use tokio::time::{Instant, sleep};
use tollgate_batch::{
    Batch, CallReply, CooldownPolicy, FailureClass, Item, ItemAttempt, ItemError, StopReason,
};
use tollgate_provider::Hint;

const LATENCY: Duration = Duration::from_secs(1);

/// The way in which calls fail in an outage.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// With a 529, after a while.
    Overloaded,
    /// With a 503, after a while.
    Unavailable,
    /// At once: the connection is reset.
    Reset,
    /// After seconds: the name of the host cannot be resolved.
    Unresolved,
    /// Never: nothing answers.
    Hang,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Overloaded, Kind::Unavailable, Kind::Reset, Kind::Unresolved, Kind::Hang];

    fn reason(self) -> &'static str {
        match self {
            Kind::Overloaded => "529 Overloaded",
            Kind::Unavailable => "503 Service Unavailable",
            Kind::Reset => "connection reset",
            Kind::Unresolved => "no such host",
            Kind::Hang => "",
        }
    }

    async fn fail(self) -> CallReply<()> {
        let (millis, hint) = match self {
            Kind::Overloaded => (200, Hint::overloaded(None)),
            Kind::Unavailable => (200, Hint::transient()),
            Kind::Reset => (1, Hint::transient()),
            Kind::Unresolved => (4_000, Hint::transient()),
            Kind::Hang => (86_400_000, Hint::ok()),
        };
        sleep(Duration::from_millis(millis)).await;
        CallReply::refused(hint.with_reason(self.reason()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_minute_of_outage_fails_no_item_and_costs_few_calls() {
    for kind in Kind::ALL {
        for workers in [5, 50, 200] {
            let (began, calls, count) = (Instant::now(), Calls::default(), 5_000);
            let counted = calls.clone();
            let total = LATENCY * count / workers;
            let outage = total / 2..total / 2 + Duration::from_secs(60);
            let batch =
                Batch::new().workers(workers as usize).seed(1).attempt_deadline(Duration::from_secs(20));
            let run = batch.run(items(count.into()), move |call: ItemAttempt<u64>| {
                counted.count(&call);
                let is_out = outage.contains(&began.elapsed());
                async move {
                    if is_out {
                        return kind.fail().await;
                    }
                    sleep(LATENCY).await;
                    succeeded(())
                }
            });
            let outcomes = one_each(run, count.into()).await;
            assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()), "{kind:?}, {workers} workers");
            let more = calls.total() - count;
            assert!(more <= count / 20, "{kind:?}, {workers} workers: {more} calls more");
            let took = began.elapsed().saturating_sub(total + Duration::from_secs(60));
            assert!(took <= Duration::from_secs(25), "{kind:?}, {workers} workers: {took:?} longer");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_call_at_a_time_finds_out_whether_an_outage_is_over() {
    let (began, log) = (Instant::now(), EventLog::default());
    let batch = Batch::new().workers(20).seed(1).observer(log.observer());
    let run = batch.run(items(100), move |_: ItemAttempt<u64>| async move {
        if began.elapsed() < Duration::from_secs(60) {
            return Kind::Unavailable.fail().await;
        }
        sleep(LATENCY).await;
        succeeded(())
    });
    let outcomes = one_each(run, 100).await;
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    let calls = log.count("start");
    assert!((120..200).contains(&calls), "{calls} calls");
    assert!(log.count("cooling") <= calls - 100, "each cooldown begins with a call that failed");
}

#[tokio::test(start_paused = true)]
async fn items_that_always_fail_do_so_although_only_they_are_left() {
    for workers in [1, 5, 10, 20] {
        all_but_ten_pass(workers).await;
    }
}

/// Runs a batch whose first ten items always fail and whose others pass: at the end only those ten
/// are left.
async fn all_but_ten_pass(workers: usize) {
    let (began, calls) = (Instant::now(), Calls::default());
    let counted = calls.clone();
    let run = Batch::new().workers(workers).seed(1).run(items(500), move |call: ItemAttempt<u64>| {
        counted.count(&call);
        async move {
            if *call.payload() < 10 {
                return Kind::Unavailable.fail().await;
            }
            sleep(LATENCY).await;
            succeeded(())
        }
    });
    let outcomes = one_each(run, 500).await;
    for outcome in outcomes {
        let failed = matches!(outcome.result, Err(ItemError::Item { class: FailureClass::Transient, .. }));
        assert_eq!(failed, outcome.index < 10, "{}", outcome.index);
    }
    assert!(calls.total() < 500 + 70, "{workers} workers, {} calls", calls.total());
    let more = began.elapsed().saturating_sub(LATENCY * 490 / workers as u32);
    assert!(more < Duration::from_secs(60), "{workers} workers, {more:?} more");
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_does_not_end_ends_the_batch_and_fails_no_item() {
    for kind in [Kind::Reset, Kind::Unavailable, Kind::Overloaded] {
        let policy = CooldownPolicy::default().outage_max(Duration::from_secs(300));
        let began = Instant::now();
        let run = Batch::new().workers(20).seed(1).cooldown(policy).run(
            items(1_000),
            move |_: ItemAttempt<u64>| async move {
                if began.elapsed() < Duration::from_secs(10) {
                    sleep(LATENCY).await;
                    return succeeded(());
                }
                kind.fail().await
            },
        );
        let outcomes = one_each(run, 1_000).await;
        let done = outcomes.iter().filter(|outcome| outcome.result.is_ok()).count();
        assert!((180..=220).contains(&done), "{kind:?}: {done}");
        for outcome in outcomes.iter().filter(|outcome| outcome.result.is_err()) {
            let Err(ItemError::Unfinished(StopReason::Closed(closed))) = &outcome.result else {
                panic!("{kind:?}: {:?}", outcome.result)
            };
            let reason = &closed.reason;
            assert!(reason.contains("no call has passed for") && reason.contains(kind.reason()), "{reason}");
        }
        let took = began.elapsed();
        assert!((310..400).contains(&took.as_secs()), "{kind:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_one_account_delays_no_item_of_another_and_costs_its_own_items_no_attempts() {
    let (began, calls) = (Instant::now(), Calls::default());
    let counted = calls.clone();
    let outage = Duration::from_secs(5)..Duration::from_secs(65);
    let scope = |number: u64| if number.is_multiple_of(2) { "blue" } else { "green" };
    let work = (0..400_u64).map(move |number| Item::new(number.to_string(), number).scope(scope(number)));
    let batch = Batch::new().workers(20).seed(1).attempts(3).account("blue").account("green");
    let run = batch.run(work, move |call: ItemAttempt<u64>| {
        counted.count(&call);
        let is_out = call.scope() == "blue" && outage.contains(&began.elapsed());
        async move {
            if is_out {
                return Kind::Unavailable.fail().await;
            }
            sleep(LATENCY).await;
            succeeded(())
        }
    });
    let outcomes = one_each(run, 400).await;
    assert!(
        outcomes.iter().all(|outcome| outcome.result.is_ok()),
        "three attempts last for a few seconds only"
    );
    let last = |of: &str| {
        let theirs = outcomes.iter().filter(|outcome| scope(outcome.index) == of);
        theirs.map(|outcome| outcome.took).max().unwrap_or_default()
    };
    assert!(last("green") < Duration::from_secs(30), "{:?}", last("green"));
    assert!((66..100).contains(&last("blue").as_secs()), "{:?}", last("blue"));
    assert!(calls.total() < 400 + 60, "{} calls", calls.total());
}

#[tokio::test(start_paused = true)]
async fn items_of_any_account_go_to_the_one_that_is_not_out() {
    let began = Instant::now();
    let batch = Batch::new().workers(20).seed(1).attempts(3).account("blue").account("green");
    let run = batch.run(items(400), move |call: ItemAttempt<u64>| async move {
        if call.scope() == "blue" && began.elapsed() > Duration::from_secs(5) {
            return Kind::Reset.fail().await;
        }
        sleep(LATENCY).await;
        succeeded(())
    });
    let outcomes = one_each(run, 400).await;
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
}

//! The status of scopes, slow start, and the last reply of failed items.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{items, succeeded};
use tokio::time::sleep;
use tollgate_batch::{
    Batch, BatchEvent, CallReply, FailureClass, Item, ItemAttempt, ItemError, Run, ScopeStatus,
};
use tollgate_provider::{FatalKind, Hint};
use tollgate_store::Mutex;

const SECOND: Duration = Duration::from_secs(1);

/// Returns the current status of the only scope: a call returns the status as of the previous call.
async fn status<O: Send + 'static>(run: &Run<O>) -> ScopeStatus {
    run.scopes();
    sleep(Duration::from_millis(1)).await;
    run.scopes().pop().expect("a batch has a scope")
}

#[tokio::test(start_paused = true)]
async fn a_cooldown_is_reported_with_its_reason_what_is_left_of_it_and_how_long_it_lasted() {
    let (events, recorded) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (began, ended) = (Arc::clone(&events), Arc::clone(&recorded));
    let batch = Batch::new().workers(3).seed(1).observer(move |event: &BatchEvent<'_>| match event {
        BatchEvent::CoolingDown { reason, .. } => began.lock().push((*reason).to_owned()),
        BatchEvent::CooledDown { participants, paused, .. } => ended.lock().push((*participants, *paused)),
        BatchEvent::HandedOut { id, .. } => began.lock().push(format!("again {id}")),
        _ => {}
    });
    let run = batch.run(items(3), |call: ItemAttempt<u64>| async move {
        sleep(SECOND).await;
        match call.number() {
            1 => CallReply::refused(Hint::throttled(Some(10 * SECOND)).with_reason("slow down")),
            _ => succeeded(()),
        }
    });
    sleep(5 * SECOND).await;
    let now = status(&run).await;
    let cooldown = now.cooldown.as_ref().expect("it cools down");
    assert_eq!((&*cooldown.reason, cooldown.generation), ("slow down", 1));
    assert!((5 * SECOND..8 * SECOND).contains(&cooldown.left), "{cooldown:?}");
    assert!((3 * SECOND..5 * SECOND).contains(&now.paused), "{now:?}");
    assert_eq!((now.in_flight, now.counters.parked), (0, 3));

    let summary = run.finish().await.expect("the batch ends");
    let scope = &summary.scopes[0];
    assert_eq!((scope.participants, scope.counters.handed_out), (3, 3));
    assert!((10 * SECOND..11 * SECOND).contains(&scope.paused), "{scope:?}");
    assert_eq!(*recorded.lock(), [(3, scope.paused)]);
    assert_eq!(events.lock()[0], "slow down");
    assert_eq!(events.lock().iter().filter(|event| event.starts_with("again")).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn slow_start_lets_calls_in_flight_grow_from_one_to_all() {
    let batch = Batch::new().workers(11).slow_start(10 * SECOND);
    let run = batch.run(items(100), |_: ItemAttempt<u64>| async move {
        sleep(1_000 * SECOND).await;
        succeeded(())
    });
    for (seconds, most) in [(0, 1), (5, 6), (5, 11), (5, 11)] {
        sleep(seconds * SECOND + Duration::from_millis(10)).await;
        let in_flight = status(&run).await.in_flight;
        assert!(in_flight <= most, "{in_flight} calls, {most} may be");
        assert!(in_flight + 1 >= most.min(10), "{in_flight} calls, {most} may be");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_item_has_the_last_reply_and_one_that_is_done_has_none() {
    let run = Batch::new().attempts(2).run(items(2), |call: ItemAttempt<u64>| async move {
        let reply = format!("reply {}", call.number());
        match (call.payload(), call.number()) {
            (0, 1) => CallReply::refused(Hint::transient()).rejected(reply),
            (0, _) => CallReply::refused(Hint::fatal(FatalKind::Request)).rejected(reply),
            (_, 1) => CallReply::invalid("no", Hint::ok()).rejected(reply),
            _ => succeeded(reply),
        }
    });
    let (outcomes, _) = run.collect().await.expect("the batch ends");
    assert_eq!(outcomes[0].rejected.as_deref(), Some("reply 2"));
    assert_eq!((outcomes[1].result.as_deref().ok(), &outcomes[1].rejected), (Some("reply 2"), &None));
}

#[tokio::test(start_paused = true)]
async fn an_item_that_fails_without_a_reply_has_the_one_before() {
    let batch = Batch::new().attempts(3).attempt_deadline(2 * SECOND).item_deadline(20 * SECOND);
    // Each item has a scope of its own, so that none waits for another.
    let work = (0..4_u64).map(|number| Item::new(number.to_string(), number).scope(number.to_string()));
    let run = batch.run(work, |call: ItemAttempt<u64>| async move {
        let reply = format!("reply {}", call.number());
        match (call.payload(), call.number()) {
            // The deadline of the item passes while it is parked.
            (0, _) => CallReply::refused(Hint::throttled(Some(15 * SECOND))).rejected(reply),
            // All calls after the first hang, or are reset.
            (1 | 2, 1) => CallReply::refused(Hint::transient()).rejected(reply),
            (1, _) => {
                sleep(1_000 * SECOND).await;
                succeeded(reply)
            }
            (2, _) => CallReply::refused(Hint::transient().with_reason("connection reset")),
            _ => CallReply::refused(Hint::fatal(FatalKind::Request)),
        }
    });
    let (mut outcomes, _) = run.collect().await.expect("the batch ends");
    outcomes.sort_by_key(|outcome| outcome.index);
    let classes = outcomes.iter().map(|outcome| match &outcome.result {
        Err(ItemError::Item { class, .. }) => *class,
        other => panic!("{other:?}"),
    });
    let late =
        [FailureClass::Deadline, FailureClass::Transient, FailureClass::Transient, FailureClass::Fatal];
    assert_eq!(classes.collect::<Vec<_>>(), late);
    let replies: Vec<Option<&str>> = outcomes.iter().map(|outcome| outcome.rejected.as_deref()).collect();
    assert_eq!(replies, [Some("reply 2"), Some("reply 1"), Some("reply 1"), None]);
}

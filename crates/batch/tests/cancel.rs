//! A batch or a reader that is dropped at any poll harms no other task.

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use support::{items, succeeded, throttled, without_jitter};
use tokio::time::sleep;
use tollgate::{Demand, Limit, LimitSet};
use tollgate_batch::{Batch, Item, ItemAttempt, TokenUsage};

/// Counts the values that are alive.
struct Alive(Arc<AtomicU32>);

impl Alive {
    fn new(count: &Arc<AtomicU32>) -> Alive {
        count.fetch_add(1, Ordering::SeqCst);
        Alive(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_dropped_after_any_number_of_outcomes_ends_all_its_calls() {
    for read in 0..20 {
        let alive = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&alive);
        let mut run = Batch::new().workers(5).run(items(20), move |call: ItemAttempt<u64>| {
            let alive = Alive::new(&counted);
            async move {
                let _alive = alive;
                sleep(Duration::from_millis(100 + *call.payload() * 7)).await;
                if call.number() == 1 && call.payload().is_multiple_of(3) {
                    throttled(1)
                } else {
                    succeeded(())
                }
            }
        });
        for _ in 0..read {
            run.next().await.unwrap();
        }
        drop(run);
        // The runtime drops aborted tasks when it runs next.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(alive.load(Ordering::SeqCst), 0, "after {read}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_cancelled_at_every_poll_loses_no_outcome() {
    let mut run = Batch::new().workers(3).buffer(1).run(items(50), |call: ItemAttempt<u64>| async move {
        sleep(Duration::from_millis(*call.payload() % 5)).await;
        succeeded(*call.payload())
    });
    let mut seen = Vec::new();
    loop {
        // Polled once and dropped, over and over.
        let polled = {
            let mut next = pin!(run.next());
            next.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        };
        match polled {
            Poll::Ready(Some(outcome)) => seen.push(outcome.index),
            Poll::Ready(None) => break,
            Poll::Pending => sleep(Duration::from_millis(1)).await,
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..50).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn shutdown_at_any_time_finishes_each_accepted_item_and_returns_all_reservations() {
    for millis in (0..3_000).step_by(37) {
        let set = LimitSet::new([Limit::per_hour("tpm", 10_000), Limit::resource("connections", 3)]).unwrap();
        let batch = Batch::new().workers(6).cooldown(without_jitter()).account_with("blue", set.clone());
        let work = (0..40_u64).map(|at| Item::new(at.to_string(), at).tokens(10));
        let run = batch.demand(|tokens| Demand::new().with("tpm", tokens)).run(
            work,
            |call: ItemAttempt<u64>| async move {
                sleep(Duration::from_millis(150)).await;
                if call.number() == 1 && call.payload().is_multiple_of(7) {
                    throttled(1)
                } else {
                    succeeded(()).usage(TokenUsage::Known(10))
                }
            },
        );
        let stopper = run.stopper();
        let stop = async move {
            sleep(Duration::from_millis(millis)).await;
            stopper.shut_down();
        };
        let (collected, ()) = tokio::join!(run.collect(), stop);
        let (outcomes, summary) = collected.unwrap();
        assert_eq!(outcomes.len() as u64, summary.progress.accepted, "at {millis}");
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(set.peek().await.unwrap().limit("connections").unwrap().available(), 3, "at {millis}");
    }
}

#[tokio::test]
async fn an_observer_that_panics_leaves_no_reader_waiting() {
    let mut run = Batch::new()
        .observer(|event: &tollgate_batch::BatchEvent<'_>| {
            if matches!(event, tollgate_batch::BatchEvent::Finished { .. }) {
                panic!("on purpose");
            }
        })
        .run(items(3), |_: ItemAttempt<u64>| async { succeeded(()) });
    while run.next().await.is_some() {}
    assert!(run.finish().await.is_err());
}

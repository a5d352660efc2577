//! Cooldowns that batches share through a store.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{items, succeeded, throttled, without_jitter};
use tokio::time::{Instant, sleep};
use tollgate::store::records::Records;
use tollgate::{ManualClock, Memory, Span, Tick};
use tollgate_batch::{Batch, ItemAttempt, SharedCooldown};
use tollgate_store::Mutex;

const SECOND: Duration = Duration::from_secs(1);

fn memory(clock: &ManualClock) -> Arc<dyn Records> {
    Arc::new(Memory::builder().clock(clock.clock()).build())
}

/// Advances the clock of the store along with the runtime's.
async fn advance(clock: ManualClock) {
    let began = Instant::now();
    loop {
        sleep(Duration::from_millis(10)).await;
        clock.set(Tick::from_secs(1_000) + Span::covering(began.elapsed()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_in_one_batch_stops_the_others() {
    let clock = ManualClock::at(Tick::from_secs(1_000));
    let advancing = tokio::spawn(advance(clock.clone()));
    let shared = SharedCooldown::new(memory(&clock), "test").clock(clock.clock());
    let began = Instant::now();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&starts);
    // The second batch meets no 429 itself: it calls once a second.
    let second = Batch::new().workers(1).cooldown(without_jitter()).share(shared.clone()).run(
        items(60),
        move |_: ItemAttempt<u64>| {
            recorded.lock().push(began.elapsed());
            async {
                sleep(SECOND).await;
                succeeded(())
            }
        },
    );
    let first = Batch::new().workers(1).cooldown(without_jitter()).share(shared).run(
        items(1),
        |call: ItemAttempt<u64>| async move {
            sleep(5 * SECOND).await;
            if call.number() == 1 { throttled(30) } else { succeeded(()) }
        },
    );
    let (first, second) = tokio::join!(first.finish(), second.finish());
    advancing.abort();
    assert_eq!((first.unwrap().progress.done, second.as_ref().unwrap().progress.done), (1, 60));
    assert_eq!(second.unwrap().counters.generations, 1);
    let starts = starts.lock();
    let during = |from: u64, to: u64| {
        let (from, to) = (Duration::from_millis(from), Duration::from_millis(to));
        starts.iter().filter(|at| **at > from && **at < to).count()
    };
    assert!(during(0, 5_000) >= 4, "{starts:?}");
    // Written at 5 s, read within 100 ms, over at 35 s.
    assert_eq!(during(5_150, 34_900), 0, "{starts:?}");
    assert!(during(34_900, 60_000) > 20, "{starts:?}");
}

#[tokio::test]
async fn the_longest_of_many_cooldowns_at_once_holds_and_no_write_is_lost() {
    let clock = ManualClock::at(Tick::from_secs(1_000));
    let shared = SharedCooldown::new(memory(&clock), "test").clock(clock.clock());
    let mut tasks = tokio::task::JoinSet::new();
    for seconds in 1..=50_u64 {
        let shared = shared.clone();
        tasks.spawn(async move { shared.cool_down("openai", Duration::from_secs(seconds)).await.unwrap() });
    }
    while let Some(cooling) = tasks.join_next().await {
        assert_eq!(cooling.unwrap().generation, 1);
    }
    let names: [Arc<str>; 2] = ["openai".into(), "other".into()];
    assert_eq!(shared.remaining(&names).await.unwrap(), [Some(Duration::from_secs(50)), None]);
    clock.advance(Span::from_secs(50));
    assert_eq!(shared.remaining(&names).await.unwrap(), [None, None]);
    assert_eq!(shared.cool_down("openai", SECOND).await.unwrap().generation, 2);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_leaves_the_batch_to_itself() {
    struct UnavailableRecords;
    use tollgate::store::records::{Index, Item, ItemKey, Page, Query, RecordsError, Write};
    use tollgate::store::{Reply, StoreError};
    fn unavailable<T>() -> Result<T, RecordsError> {
        Err(RecordsError::Store(StoreError::Unavailable(SECOND, "it is not reachable".into())))
    }
    impl Records for UnavailableRecords {
        fn get_many<'a>(&'a self, _: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
            Reply::ready(unavailable())
        }
        fn write<'a>(&'a self, _: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
            Reply::ready(unavailable())
        }
        fn query<'a>(&'a self, _: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
            Reply::ready(unavailable())
        }
        fn find<'a>(&'a self, _: Index, _: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
            Reply::ready(unavailable())
        }
    }
    let shared = SharedCooldown::new(Arc::new(UnavailableRecords), "test");
    let run = Batch::new().share(shared).run(items(20), |call: ItemAttempt<u64>| async move {
        sleep(SECOND).await;
        if call.number() == 1 { throttled(2) } else { succeeded(()) }
    });
    assert_eq!(run.finish().await.unwrap().progress.done, 20);
}

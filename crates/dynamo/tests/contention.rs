//! Several processes write to one bucket at once: one that has missed looks again before it writes.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::HttpClient;
use common::raw::Meanwhile;
use tollgate::catalog::Level;
use tollgate::{Limit, Limiter, Limits, demand};
use tollgate_dynamo_local::Engine;
use tollgate_store::Clock;

/// How many writes of ours another process is quicker than. The first of them are made again at once, the others after a
/// pause.
const MISSES: u64 = 8;

fn limiter(client: impl HttpClient + 'static) -> Limiter {
    let store = common::builder(Clock::system()).http_client(client).build().wait();
    let store = Arc::new(store.expect("the engine has what it takes"));
    Limiter::open(store, "default").wait().expect("it answers")
}

async fn take(limiter: &Limiter) {
    let lease = limiter.acquire("user", "api", demand! { slots: 1 }).await.expect("there is enough");
    lease.commit().await.expect("it answers");
}

#[tokio::test]
async fn after_a_pause_a_writer_looks_before_it_writes_again() {
    let engine = Engine::in_memory().expect("there is memory for an engine");
    let other = limiter(engine.http_client());
    let limits = Limits::new([Limit::resource("slots", 100)]).expect("it is valid");
    other.catalog().set_limits(Level::System, &limits).await.expect("it answers");
    take(&other).await;
    let (asked, misses) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
    let (log, left) = (Arc::clone(&asked), Arc::clone(&misses));
    let meanwhile = move |operation: &str| {
        log.lock().expect("no test has failed").push(operation.to_owned());
        let is_beaten = operation == "UpdateItem"
            && left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok();
        let other = other.clone();
        // In a task of its own: one call within another would need a deep stack.
        is_beaten.then_some(async move {
            tokio::spawn(async move { take(&other).await }).await.expect("there is enough");
        })
    };
    let ours = limiter(Meanwhile::new(engine.http_client(), meanwhile));
    take(&ours).await;
    asked.lock().expect("no test has failed").clear();
    misses.store(MISSES, Ordering::Release);
    take(&ours).await;
    let asked = asked.lock().expect("no test has failed");
    let writes: Vec<usize> = (0..asked.len()).filter(|at| asked[*at] == "UpdateItem").collect();
    assert_eq!(writes.len() as u64, MISSES + 2, "{asked:?}");
    // A write that comes after a pause.
    for write in &writes[3..MISSES as usize + 1] {
        assert_eq!(asked[write - 1], "GetItem", "{asked:?}");
    }
}

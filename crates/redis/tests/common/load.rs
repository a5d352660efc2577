//! Threads that take one at a time from a bucket that is never refilled, so that what is left says how many were taken.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use tollgate_core::{Limit, Limits, demand};
use tollgate_redis::RedisStore;
use tollgate_store::{BucketRef, Key, Op, OpId, Step, Store, StoreError, Transaction, TxnOutcome};

/// More than is ever taken.
pub(crate) const PLENTY: i64 = 1_000_000;

/// What came of all tries.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    taken: Mutex<i64>,
    more: Condvar,
    /// Whether it was taken is not known.
    unknown: AtomicU64,
}

impl Tally {
    pub(crate) fn taken(&self) -> i64 {
        *self.taken.lock().expect("nobody panicked")
    }

    fn take(&self) {
        *self.taken.lock().expect("nobody panicked") += 1;
        self.more.notify_all();
    }

    pub(crate) fn unknown(&self) -> i64 {
        self.unknown.load(Ordering::Relaxed) as i64
    }
}

pub(crate) fn limits() -> Limits {
    let day = Duration::from_secs(86_400);
    Limits::new([Limit::quota("calls", PLENTY as u64, day), Limit::resource("slots", 1_000)])
        .expect("they are valid")
}

/// Takes one; `None` if it is not known whether it was taken.
pub(crate) fn take(store: &RedisStore, limits: &Limits) -> Option<()> {
    let key = Key::new(&["entity", "resource"]);
    let costs = limits.costs(&demand! { calls: 1, slots: 0 }).expect("it fits");
    let place = BucketRef { namespace: "storm", key: &key, limits };
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    let id = Some(OpId(store.new_holder_id()));
    match store.apply(&Transaction { id, steps: &steps, metered: true }).wait() {
        Ok(TxnOutcome::Done(_)) => Some(()),
        Ok(other) => panic!("a take came to {other:?}"),
        Err(StoreError::Unavailable(..)) => None,
        Err(error) => panic!("a take failed: {error}"),
    }
}

pub(crate) fn left(store: &RedisStore, limits: &Limits) -> i64 {
    let key = Key::new(&["entity", "resource"]);
    let place = BucketRef { namespace: "storm", key: &key, limits };
    store.peek(&place).wait().expect("the server is there")[0].available()
}

/// Lets threads take while `meanwhile` does its worst, and until each has taken so many after that.
pub(crate) fn under_load(store: &RedisStore, more: u64, meanwhile: impl FnOnce(&Tally)) -> Tally {
    let (tally, is_over, limits) = (Tally::default(), AtomicBool::new(false), limits());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut after = 0;
                while !is_over.load(Ordering::Acquire) || after < more {
                    after += u64::from(is_over.load(Ordering::Acquire));
                    match take(store, &limits) {
                        Some(()) => tally.take(),
                        None => drop(tally.unknown.fetch_add(1, Ordering::Relaxed)),
                    }
                }
            });
        }
        // Also if it panics: those who take would go on for good.
        let _over = Over(&is_over);
        meanwhile(&tally);
    });
    tally
}

/// Says that it is over when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Waits until so many more were taken.
pub(crate) fn until_taken(tally: &Tally, more: i64) {
    let taken = tally.taken.lock().expect("nobody panicked");
    let until = *taken + more;
    drop(tally.more.wait_while(taken, |taken| *taken < until).expect("nobody panicked"));
}

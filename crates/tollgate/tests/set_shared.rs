//! Two stores on one file, as two processes have them: one set, one cooldown.

#[cfg(target_os = "linux")]
mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use tollgate::file::{Durability, FileStore};
use tollgate::store::Backend;
use tollgate::{Clock, Limit, LimitSet, ManualClock, Reach, Span, Tick, demand};

const START: Tick = Tick::from_micros(1_767_225_599_123_457);

/// Two sets, each on a store of its own, in one file.
fn two(file: &str, hands: &ManualClock) -> [LimitSet; 2] {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("shared-{file}.db"));
    for suffix in ["", "-wal", "-shm"] {
        // What an earlier run left behind, if it did.
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    [(), ()].map(|()| {
        let store = FileStore::builder(&path).clock(hands.clock()).durability(Durability::Off).build();
        let store: Arc<dyn Backend> = Arc::new(store.expect("the file can be opened"));
        let limits = [Limit::per_minute("rpm", 10), Limit::resource("slots", 1)];
        LimitSet::builder().limits(limits).store(store).name("shared").build().expect("it is valid")
    })
}

fn takes(set: &LimitSet) -> bool {
    match set.try_acquire(demand! { rpm: 1 }).wait().expect("it is valid").admitted() {
        Some(lease) => lease.settle(demand! { rpm: 1 }).wait().map(|()| true).expect("it is valid"),
        None => false,
    }
}

#[test]
fn both_take_of_one_set_and_either_cools_it_down_for_both() {
    let hands = ManualClock::at(START);
    let [one, other] = two("cooldown", &hands);
    assert_eq!(one.reach(), Reach::Host);
    let taken = (0..20).filter(|index| takes([&one, &other][index % 2])).count();
    assert_eq!(taken, 10);
    hands.advance(Span::from_secs(60));
    one.cool_down(Duration::from_secs(5)).wait().expect("the file is there");
    assert!(!takes(&other) && !takes(&one));
    hands.advance(Span::from_micros(4_999_999));
    assert!(!takes(&other));
    hands.advance(Span::from_micros(1));
    assert!(takes(&other) && takes(&one));
}

/// The clock stands still, so no waiter polls.
#[cfg(target_os = "linux")]
#[test]
fn who_waits_is_notified_of_what_the_other_gave_back() {
    let hands = ManualClock::at(START);
    let [one, other] = two("notified", &hands);
    let held = one.try_acquire(demand! { rpm: 1 }).wait().expect("valid").admitted().expect("it is free");
    let mut waiting = Box::pin(other.acquire(demand! { rpm: 1 }).into_future());
    let mut poll = || waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let real = Clock::system();
    let given_up = real.now() + Span::from_secs(300);
    while other.peek().wait().expect("the file is there").waiting == 0 {
        assert!(poll().is_pending() && real.now() < given_up);
        thread::yield_now();
    }
    held.settle(demand! { rpm: 1 }).wait().expect("it is valid");
    let lease = loop {
        match poll() {
            Poll::Ready(lease) => break lease,
            Poll::Pending => assert!(real.now() < given_up, "it was not notified"),
        }
        thread::yield_now();
    };
    drop(lease.expect("it is free"));
}

/// Limits hold without a queue beside the file, so the store opens; that waiters have no order is a warning.
#[cfg(target_os = "linux")]
#[test]
fn a_queue_that_cannot_be_opened_is_a_warning_that_names_it() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("shared-no-queue.db");
    let in_the_way = PathBuf::from(format!("{}-queue", path.display()));
    std::fs::create_dir_all(&in_the_way).expect("a folder can be made");
    let warnings = support::Warnings::during(|| {
        let store = FileStore::open(&path).expect("the file can be opened");
        assert!(!store.wait_queues().is_shared());
    });
    let [warning] = &warnings[..] else { panic!("one warning, not {warnings:?}") };
    let queue = in_the_way.display().to_string();
    assert!(warning.contains(&queue) && warning.contains("is a folder"), "{warning}");
}

#[test]
fn who_waits_hears_of_what_the_other_gave_back_when_it_looks_again() {
    let hands = ManualClock::at(START);
    let [one, other] = two("waiting", &hands);
    let held = one.try_acquire(demand! { rpm: 1 }).wait().expect("valid").admitted().expect("it is free");
    let mut waiting = Box::pin(other.acquire(demand! { rpm: 1 }).into_future());
    let mut poll = || waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let stands = || other.peek().wait().expect("the file is there").waiting == 1;
    while !stands() {
        assert!(poll().is_pending());
        thread::yield_now();
    }
    held.commit().wait().expect("the file is there");
    // Where processes share a queue beside the file, the release notifies the waiter; elsewhere it polls, at most
    // 200 ms apart, and the clock is turned for it. The file is real and takes real time, so the manual clock waits for
    // it: twenty polls stay well below the time after which a store is given up.
    let real = Clock::system();
    let lease = (0..20).find_map(|_| {
        hands.advance(Span::from_millis(200));
        let given_up = real.now() + Span::from_millis(250);
        loop {
            match poll() {
                Poll::Ready(lease) => break Some(lease),
                Poll::Pending if real.now() > given_up => break None,
                Poll::Pending => thread::yield_now(),
            }
        }
    });
    drop(lease.expect("it looks again").expect("it is free"));
}

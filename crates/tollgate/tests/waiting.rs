//! Waiting: one queue for threads and tasks, whichever waiter gives up, whatever changes meanwhile.

mod support;

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use support::{
    START, advance_ms, answer, available, builder, count, hands, poll, set, spend, try_take, until,
};
use tollgate::{
    AcquireError, Checker, Level, Limit, LimitPool, Limiter, Limits, Memory, Priority, Span, demand,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_and_tasks_wait_in_one_queue_in_the_order_they_came() {
    let hands = hands();
    let set = set(&hands, [Limit::per_second("rps", 1)]);
    spend(&set, demand! { rps: 1 });
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (mut threads, mut tasks) = (Vec::new(), Vec::new());
    for index in 0..10 {
        let (shared, heard) = (set.clone(), Arc::clone(&order));
        if index % 2 == 0 {
            threads.push(thread::spawn(move || {
                let lease = shared.acquire(demand! { rps: 1 }).wait().unwrap();
                heard.lock().unwrap().push(index);
                drop(lease);
            }));
        } else {
            tasks.push(tokio::spawn(async move {
                let lease = shared.acquire(demand! { rps: 1 }).await.unwrap();
                heard.lock().unwrap().push(index);
                drop(lease);
            }));
        }
        until("it stands in the queue", || set.peek().wait().unwrap().waiting == index + 1);
    }
    for granted in 1..=10 {
        advance_ms(&hands, 1_000);
        until("the next was admitted", || order.lock().unwrap().len() == granted);
    }
    assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for task in tasks {
        task.await.unwrap();
    }
}

#[test]
fn a_wait_dropped_after_any_number_of_polls_loses_nothing_and_wakes_the_next() {
    for (polls, others) in (0..4).flat_map(|polls| (1..4).map(move |others| (polls, others))) {
        let hands = hands();
        let set = set(&hands, [Limit::per_second("rps", 1), Limit::resource("slots", 4)]);
        spend(&set, demand! { rps: 1 });
        let mut dropped = set.acquire(demand! { rps: 1 }).into_future();
        let mut next: Vec<_> = (0..others).map(|_| set.acquire(demand! { rps: 1 }).into_future()).collect();
        for step in 0..polls {
            // The last of these polls comes when it has been granted, and is left out: the waiter never learns of it.
            if step < 2 {
                assert!(poll(&mut dropped).is_pending());
            }
            next.iter_mut().for_each(|waiting| assert!(poll(waiting).is_pending()));
        }
        next.iter_mut().for_each(|waiting| assert!(poll(waiting).is_pending()));
        if polls == 3 {
            advance_ms(&hands, 1_000);
            assert_eq!(set.peek().wait().unwrap().waiting, others, "the first was granted");
        }
        drop(dropped);
        if polls < 3 {
            advance_ms(&hands, 1_000);
        }
        let mut leases = Vec::new();
        for waiting in &mut next {
            leases.push(answer(waiting).unwrap());
            advance_ms(&hands, 1_000);
        }
        assert_eq!(available(&set, "slots"), 4 - others as i64, "{polls} polls, {others} others");
        drop((leases, next));
        assert_eq!(
            (set.peek().wait().unwrap().waiting, available(&set, "rps"), available(&set, "slots")),
            (0, 1, 4)
        );
    }
}

#[test]
fn of_10_000_waits_that_are_dropped_nothing_is_left() {
    let hands = hands();
    let set = set(&hands, [Limit::per_second("rps", 1)]);
    spend(&set, demand! { rps: 1 });
    let mut waits: Vec<_> = (0..10_000).map(|_| set.acquire(demand! { rps: 1 }).into_future()).collect();
    waits.iter_mut().for_each(|waiting| assert!(poll(waiting).is_pending()));
    assert_eq!(set.peek().wait().unwrap().waiting, 10_000);
    drop(waits);
    assert_eq!(set.peek().wait().unwrap().waiting, 0);
    advance_ms(&hands, 1_000);
    assert_eq!(count(&set, demand! { rps: 1 }), 1);
}

#[test]
fn a_large_demand_at_the_head_is_not_starved_by_small_ones() {
    let hands = hands();
    let set = set(&hands, [Limit::per_second("rps", 1).burst(100)]);
    spend(&set, demand! { rps: 100 });
    let mut large = set.acquire(demand! { rps: 50 }).into_future();
    assert!(poll(&mut large).is_pending());
    let mut small: Vec<_> = (0..1_000).map(|_| set.acquire(demand! { rps: 1 }).into_future()).collect();
    small.iter_mut().for_each(|waiting| assert!(poll(waiting).is_pending()));
    advance_ms(&hands, 49_999);
    assert!(!set.try_acquire(demand! { rps: 1 }).wait().unwrap().is_admitted(), "nobody overtakes");
    assert!(poll(&mut large).is_pending());
    advance_ms(&hands, 1);
    assert_eq!(answer(&mut large).unwrap().waited(), Some(50 * SECOND));
    advance_ms(&hands, 1_000_000);
    assert!(small.iter_mut().all(|waiting| answer(waiting).is_ok()));
}

#[test]
fn who_is_in_a_hurry_goes_first_and_nobody_is_passed_over_beyond_its_patience() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 1)]);
    spend(&set, demand! { rpm: 1 });
    let wait = |priority| {
        let mut waiting = set.acquire(demand! { rpm: 1 }).priority(priority).into_future();
        assert!(poll(&mut waiting).is_pending());
        waiting
    };
    let mut batch = wait(Priority::Batch);
    let mut normal = wait(Priority::Normal);
    let mut interactive = wait(Priority::Interactive);
    advance_ms(&hands, 5_001);
    // A normal one has patience for 5 s, a batch for a minute: who is in a hurry now comes after the first.
    let mut late = wait(Priority::Interactive);
    for (minute, waiting) in [&mut interactive, &mut normal, &mut late, &mut batch].into_iter().enumerate() {
        hands.set(START + Span::from_secs(60 * (minute as u64 + 1)));
        assert!(answer(waiting).is_ok(), "in minute {minute}");
    }
}

#[test]
fn a_wait_that_cannot_fit_is_told_at_once_with_the_wait_it_would_have_taken() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 1)]);
    spend(&set, demand! { rpm: 1 });
    let mut first = set.acquire(demand! { rpm: 1 }).timeout(60 * SECOND).into_future();
    assert!(poll(&mut first).is_pending(), "60 s is just enough");
    // Those ahead count: the second would be admitted after 120 s.
    for early in [
        set.acquire(demand! { rpm: 1 }).timeout(Duration::from_micros(119_999_999)),
        set.acquire(demand! { rpm: 1 }).timeout(Duration::from_secs(119)),
        set.acquire(demand! { rpm: 1 }).timeout(Duration::ZERO),
    ] {
        let AcquireError::TimedOut { denial, waited } = early.wait().unwrap_err() else {
            panic!("another error")
        };
        assert_eq!((denial.wait(), waited), (Some(120 * SECOND), Duration::ZERO));
    }
    assert_eq!(set.peek().wait().unwrap().waiting, 1);
    advance_ms(&hands, 60_000);
    assert!(answer(&mut first).is_ok());
}

#[test]
fn a_wait_for_a_resource_is_told_at_its_deadline_and_takes_nothing() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 5), Limit::resource("slots", 1)]);
    let held = try_take(&set, demand! { rpm: 1 }).unwrap();
    let mut waiting = set.acquire(demand! { rpm: 1 }).timeout(3 * SECOND).into_future();
    advance_ms(&hands, 0);
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 2_999);
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 1);
    let AcquireError::TimedOut { denial, waited } = answer(&mut waiting).unwrap_err() else {
        panic!("another error")
    };
    assert_eq!((denial.wait(), waited), (None, 3 * SECOND));
    drop(held);
    assert_eq!(
        (available(&set, "rpm"), available(&set, "slots"), set.peek().wait().unwrap().waiting),
        (4, 1, 0)
    );
}

#[test]
fn a_refund_or_a_release_lets_the_head_pass_at_once() {
    let hands = hands();
    let set = set(&hands, [Limit::per_hour("tph", 100), Limit::resource("slots", 1)]);
    let holder = try_take(&set, demand! { tph: 100 }).unwrap();
    let mut waiting = set.acquire(demand! { tph: 40 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    holder.settle(demand! { tph: 60 }).wait().unwrap();
    let lease = answer(&mut waiting).unwrap();
    assert_eq!(lease.waited(), Some(Duration::ZERO));
    let mut next = set.acquire(demand! { tph: 0 }).into_future();
    assert!(poll(&mut next).is_pending());
    drop(lease);
    assert!(answer(&mut next).is_ok());
}

#[test]
fn more_than_may_wait_are_turned_away() {
    let hands = hands();
    let set = builder(&hands, [Limit::per_minute("rpm", 1)]).waiters_max(2).build().unwrap();
    spend(&set, demand! { rpm: 1 });
    let mut waits =
        [set.acquire(demand! { rpm: 1 }).into_future(), set.acquire(demand! { rpm: 1 }).into_future()];
    assert!(waits.iter_mut().all(|waiting| poll(waiting).is_pending()));
    let error = set.acquire(demand! { rpm: 1 }).wait().unwrap_err();
    assert_eq!(error, AcquireError::QueueFull(tollgate::store::QueueFull { waiting: 2, max: 2 }));
    advance_ms(&hands, 60_000);
    assert!(matches!(poll(&mut waits[0]), Poll::Ready(Ok(_))));
}

#[test]
fn a_wait_ends_at_its_timeout_or_its_deadline_whichever_is_earlier_wherever_it_waits() {
    let hands = hands();
    let memory = Arc::new(Memory::builder().clock(hands.clock()).build());
    let rate = || [Limit::per_minute("rpm", 60)];
    let set = set(&hands, rate());
    let pool = LimitPool::new([set.clone()]).unwrap();
    let limiter = Limiter::open(memory.clone(), "default").wait().unwrap();
    let limits = Limits::new(rate()).unwrap();
    limiter.catalog().set_limits(Level::System, &limits).wait().unwrap();
    let checker = Checker::in_memory(&memory, "checks");
    let costs = demand! { rpm: 60 };
    set.acquire(&costs).wait().unwrap().commit().wait().unwrap();
    limiter.acquire("user", "gpt", &costs).wait().unwrap().commit().wait().unwrap();
    checker.acquire("user", "gpt", &costs, &limits).wait().unwrap();
    let (now, hour) = (hands.clock().instant_at(START), Duration::from_secs(3_600));
    macro_rules! check {
        ($acquire:expr) => {{
            for (timeout, deadline) in
                [(Some(Duration::from_secs(9)), None), (None, Some(now)), (Some(hour), Some(now))]
            {
                let acquire = $acquire;
                let acquire = timeout.into_iter().fold(acquire, |acquire, timeout| acquire.timeout(timeout));
                let acquire = deadline.into_iter().fold(acquire, |acquire, at| acquire.deadline(at));
                let error = tollgate::Error::from(acquire.wait().unwrap_err());
                assert_eq!(error.retry_after(), Some(Duration::from_secs(10)), "{error}");
            }
            let mut waiting = $acquire.timeout(hour).deadline(now + hour).into_future();
            assert!(poll(&mut waiting).is_pending(), "there is time enough");
        }};
    }
    check!(set.acquire(demand! { rpm: 10 }));
    check!(pool.acquire(demand! { rpm: 10 }));
    check!(limiter.acquire("user", "gpt", demand! { rpm: 10 }));
    check!(checker.acquire("user", "gpt", demand! { rpm: 10 }, &limits));
}

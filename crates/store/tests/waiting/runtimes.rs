//! Threads and tasks in one queue, on the clock of the system.
//!
//! Nothing here sleeps or measures: each step waits for the one before it to have happened.

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use tollgate_core::{Costs, Limit, Limits, Span, Tick, Usage, demand};
use tollgate_store::{Alarm, BucketCell, Clock, Key, ManualClock, Priority, WaitError, WaitRequest};

fn slots(capacity: u64) -> (Arc<BucketCell>, Clock, Limits) {
    let limits = Limits::new([Limit::resource("slots", capacity)]).unwrap();
    let clock = Clock::system();
    (BucketCell::new(Key::new(&["shared"]), limits.clone(), clock.now()), clock, limits)
}

fn one(limits: &Limits) -> Costs {
    limits.costs(&demand! {}).unwrap()
}

fn release(cell: &Arc<BucketCell>, clock: &Clock, limits: &Limits) {
    let usage = Usage { at: clock.now(), reserved: &one(limits), used: &[0], holder: None };
    cell.settle(clock, limits, &usage);
}

/// Comes back when `count` stand in the queue.
fn until_waiting(cell: &BucketCell, count: usize) {
    while cell.waiting() != count {
        thread::yield_now();
    }
}

#[test]
fn threads_and_tasks_wait_in_one_queue_and_pass_in_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (cell, clock, limits) = slots(1);
    cell.try_take(&clock, &one(&limits), None, Priority::default()).unwrap();
    let (passed, order) = mpsc::channel();
    let mut threads = Vec::new();
    let mut tasks = Vec::new();
    for number in 0..8 {
        let (cell_too, clock, request, passed) =
            (Arc::clone(&cell), clock.clone(), WaitRequest::of(one(&limits)), passed.clone());
        if number % 2 == 0 {
            threads.push(thread::spawn(move || {
                cell_too.acquire(&clock, request).wait().unwrap();
                passed.send(number).unwrap();
            }));
        } else {
            tasks.push(runtime.spawn(async move {
                cell_too.acquire(&clock, request).await.unwrap();
                passed.send(number).unwrap();
            }));
        }
        until_waiting(&cell, number + 1);
    }
    for number in 0..8 {
        release(&cell, &clock, &limits);
        assert_eq!(order.recv().unwrap(), number);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    assert_eq!(cell.waiting(), 0);
}

#[test]
fn a_task_that_is_aborted_leaves_the_queue_and_the_next_passes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (cell, clock, limits) = slots(1);
    cell.try_take(&clock, &one(&limits), None, Priority::default()).unwrap();
    let wait = |place| {
        let (cell_too, clock, request) = (Arc::clone(&cell), clock.clone(), WaitRequest::of(one(&limits)));
        let task = runtime.spawn(async move { cell_too.acquire(&clock, request).await });
        until_waiting(&cell, place);
        task
    };
    let (first, second) = (wait(1), wait(2));
    first.abort();
    assert!(runtime.block_on(first).unwrap_err().is_cancelled());
    assert_eq!(cell.waiting(), 1);
    release(&cell, &clock, &limits);
    runtime.block_on(second).unwrap().unwrap();
    assert_eq!(cell.waiting(), 0);
}

#[test]
fn a_waiter_on_the_clock_of_the_system_is_woken_by_its_timer() {
    let clock = Clock::system();
    let limits = Limits::new([Limit::per_second("rps", 500)]).unwrap();
    let cell = BucketCell::new(Key::new(&["timer"]), limits.clone(), clock.now());
    let all = limits.costs(&demand! { rps: 500 }).unwrap();
    let taken = cell.try_take(&clock, &all, None, Priority::default()).unwrap().at;
    let ten = limits.costs(&demand! { rps: 10 }).unwrap();
    let mut last = taken;
    for _ in 0..5 {
        // Each takes what comes in within 20 ms, so there is a wait unless the machine stalls for as long.
        let granted = cell.acquire(&clock, WaitRequest::of(ten.clone())).wait().unwrap();
        assert!(granted.taken.at >= last, "granted before the one before it");
        last = granted.taken.at;
    }
    assert!(last >= taken + Span::from_millis(100), "50 take at least 100 ms to come in");
}

#[test]
fn a_thread_that_waits_in_vain_is_told_by_the_timer() {
    let (cell, clock, limits) = slots(1);
    cell.try_take(&clock, &one(&limits), None, Priority::default()).unwrap();
    let deadline = clock.now() + Span::from_millis(5);
    let request = WaitRequest { deadline: Some(deadline), ..WaitRequest::of(one(&limits)) };
    match cell.acquire(&clock, request).wait() {
        Err(WaitError::TimedOut { .. }) => assert!(clock.now() >= deadline),
        other => panic!("{other:?}"),
    }
    assert_eq!(cell.waiting(), 0);
}

struct Ring(mpsc::SyncSender<Tick>);

impl Alarm for Ring {
    fn ring(self: Arc<Self>, _: Tick, clock: &Clock) {
        self.0.send(clock.now()).unwrap();
    }
}

#[test]
fn alarms_of_cells_that_are_gone_do_nothing_and_those_after_them_ring() {
    let (_, clock, limits) = slots(1);
    let soon = clock.now() + Span::from_millis(2);
    for _ in 0..100 {
        let cell = BucketCell::new(Key::new(&["gone"]), limits.clone(), clock.now());
        cell.try_take(&clock, &one(&limits), None, Priority::default()).unwrap();
        let request =
            WaitRequest { deadline: Some(soon + Span::from_secs(1)), ..WaitRequest::of(one(&limits)) };
        let mut wait = pin!(cell.acquire(&clock, request));
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        clock.alarm(soon, Weak::<Ring>::new());
    }
    let (rung, heard) = mpsc::sync_channel(1);
    let ring: Arc<dyn Alarm> = Arc::new(Ring(rung));
    clock.alarm(soon + Span::from_millis(2), Arc::downgrade(&ring));
    assert!(heard.recv().unwrap() >= soon);
}

#[test]
fn a_cell_that_is_dropped_takes_its_alarm_with_it() {
    let hands = ManualClock::at(Tick::from_secs(1_000));
    let clock = hands.clock();
    let limits = Limits::new([Limit::per_second("rps", 1)]).unwrap();
    let cell = BucketCell::new(Key::new(&["gone"]), limits.clone(), clock.now());
    let one = limits.costs(&demand! { rps: 1 }).unwrap();
    cell.try_take(&clock, &one, None, Priority::default()).unwrap();
    let mut wait = Box::pin(cell.acquire(&clock, WaitRequest::of(one)));
    assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(wait);
    let watch = Arc::downgrade(&cell);
    drop(cell);
    assert_eq!(watch.strong_count(), 0, "an alarm keeps no cell alive");
    hands.advance(Span::covering(Duration::from_secs(60)));
}

#[test]
fn an_alarm_that_rings_a_tick_early_because_the_clock_stepped_back_is_set_again() {
    let due = Tick::from_secs(1_001);
    let limits = Limits::new([Limit::per_second("rps", 1)]).unwrap();
    let one = limits.costs(&demand! { rps: 1 }).unwrap();
    let clock = ManualClock::at(Tick::from_secs(1_000)).clock();
    let cell = BucketCell::new(Key::new(&["early"]), limits, clock.now());
    cell.try_take(&clock, &one, None, Priority::default()).unwrap();
    let mut wait = pin!(cell.acquire(&clock, WaitRequest::of(one)));
    let mut context = Context::from_waker(Waker::noop());
    assert!(wait.as_mut().poll(&mut context).is_pending());
    let stepped_back = ManualClock::at(due - Span::from_micros(1));
    Arc::clone(&cell).ring(due, &stepped_back.clock());
    assert!(wait.as_mut().poll(&mut context).is_pending());
    stepped_back.set(due);
    assert!(wait.as_mut().poll(&mut context).is_ready(), "nobody looked again");
}

#[test]
fn short_waits_beside_a_long_one_pile_up_no_alarms() {
    let hands = ManualClock::at(Tick::from_secs(1_000));
    let clock = hands.clock();
    let limits = Limits::new([Limit::resource("slots", 1)]).unwrap();
    let one = limits.costs(&demand! { slots: 1 }).unwrap();
    let cell = BucketCell::new(Key::new(&["pile"]), limits, clock.now());
    cell.try_take(&clock, &one, None, Priority::default()).unwrap();
    let until = |seconds| WaitRequest {
        deadline: Some(clock.now() + Span::from_secs(seconds)),
        ..WaitRequest::of(one.clone())
    };
    let mut context = Context::from_waker(Waker::noop());
    let mut long = Box::pin(cell.acquire(&clock, until(10_000)));
    assert!(long.as_mut().poll(&mut context).is_pending());
    for _ in 0..1_000 {
        let mut short = Box::pin(cell.acquire(&clock, until(1)));
        assert!(short.as_mut().poll(&mut context).is_pending());
        hands.advance(Span::from_secs(2));
        assert!(short.as_mut().poll(&mut context).is_ready());
    }
    assert!(hands.alarms() <= 2, "{} alarms are set", hands.alarms());
}

//! Workers: who does what, in which order, and what comes of it when things go wrong.

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use support::{advance_ms, hands, try_take, until};
use tollgate::workers::{
    Balance, Bar, Handle, JobError, JobTally, ProgressObserver, Shutdown, SubmitError, Worker, WorkerPool,
    WorkersError,
};
use tollgate::{AcquireError, Backoff, Jitter, Lease, Limit, LimitPool, LimitSet, Memory, Retry, demand};

type Answer<T> = Result<T, String>;

/// A pool whose only worker is held up until the sender is dropped.
struct HeldUp {
    pool: WorkerPool<u64, u64, String>,
    begun: mpsc::Receiver<u64>,
    go: Option<mpsc::Sender<()>>,
}

fn held_up(queue: usize) -> HeldUp {
    let (tell, begun) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let pool = WorkerPool::threads(1).queue(queue).build(move |_, number: u64| {
        let _ = tell.send(number);
        let _ = wait.lock().expect("nobody panics").recv();
        Ok(number)
    });
    HeldUp { pool: pool.expect("it can be built"), begun, go: Some(go) }
}

fn fine<T: std::fmt::Debug, E: std::fmt::Debug>(results: Vec<Result<T, E>>) -> Vec<T> {
    results.into_iter().map(|result| result.expect("it is done")).collect()
}

#[test]
fn of_10_000_jobs_over_8_workers_none_is_lost_and_none_is_done_twice() {
    let done: Arc<Vec<AtomicUsize>> = Arc::new((0..10_000).map(|_| AtomicUsize::new(0)).collect());
    for balance in [Balance::RoundRobin, Balance::Random, Balance::LeastActive, Balance::LeastTotal] {
        let count = Arc::clone(&done);
        let pool = WorkerPool::threads(8).balance(balance).queue(16).build(move |_, number: usize| {
            count[number].fetch_add(1, Ordering::SeqCst);
            Answer::Ok(number)
        });
        let results = fine(pool.unwrap().gather(0..10_000).wait());
        assert!(results.into_iter().eq(0..10_000), "{balance:?}");
    }
    assert!(done.iter().all(|times| times.load(Ordering::SeqCst) == 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_do_the_same() {
    let pool = WorkerPool::tasks(8).queue(16).build_async(|worker, number: usize| async move {
        tokio::task::yield_now().await;
        Answer::Ok((number, worker.index()))
    });
    let results = fine(pool.unwrap().gather(0..10_000).await);
    assert!(results.iter().map(|(number, _)| *number).eq(0..10_000));
    let mut counts = BTreeMap::new();
    results.iter().for_each(|(_, worker)| *counts.entry(*worker).or_insert(0) += 1);
    assert_eq!(counts.len(), 8);
}

#[test]
fn a_worker_does_its_jobs_in_the_order_they_were_handed_in() {
    let order: Arc<Mutex<Vec<u64>>> = Arc::default();
    let seen = Arc::clone(&order);
    let pool = WorkerPool::threads(1).queue(4).build(move |_, number: u64| {
        seen.lock().unwrap().push(number);
        Answer::Ok(())
    });
    fine(pool.unwrap().gather(0..500).wait());
    assert!(order.lock().unwrap().iter().copied().eq(0..500));
}

#[test]
fn a_full_line_turns_away_and_lets_those_in_first_who_waited_first() {
    let mut held = held_up(2);
    let first = held.pool.try_submit(0).unwrap();
    assert_eq!(held.begun.recv(), Ok(0));
    let inside = [held.pool.try_submit(1).unwrap(), held.pool.try_submit(2).unwrap()];
    assert_eq!(held.pool.try_submit(3).map(drop), Err(SubmitError::Full(3)));
    // Three wait outside; the second gives up.
    let mut outside: Vec<_> = (3..6).map(|number| held.pool.submit(number)).collect();
    let mut context = Context::from_waker(Waker::noop());
    let mut is_pending =
        |reply: &mut tollgate::Reply<'_, _>| std::pin::Pin::new(reply).poll(&mut context).is_pending();
    assert!(outside.iter_mut().all(&mut is_pending));
    drop(outside.remove(1));
    assert_eq!(held.pool.waiting(), 2);
    held.go = None;
    let results: Vec<u64> = [first].into_iter().chain(inside).map(|handle| handle.wait().unwrap()).collect();
    let late: Vec<u64> = outside.into_iter().map(|reply| reply.wait().unwrap().wait().unwrap()).collect();
    assert_eq!((results, late), (vec![0, 1, 2], vec![3, 5]));
    assert_eq!(held.begun.try_iter().collect::<Vec<_>>(), [1, 2, 3, 5], "in the order of arrival");
}

#[test]
fn a_panic_is_an_error_in_the_handle_and_the_worker_goes_on_with_a_new_job() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let pool = WorkerPool::threads(1).build_with(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let mut calls = 0;
        move |_: &Worker, number: u64| {
            calls += 1;
            assert!(number != 2, "number {number} is bad");
            Answer::Ok(calls)
        }
    });
    let results = pool.unwrap().gather([1, 1, 2, 1]).wait();
    let panicked = Err(JobError::Panicked("number 2 is bad".into()));
    assert_eq!(results, [Ok(1), Ok(2), panicked, Ok(1)], "what it counted is gone with it");
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

#[test]
fn a_worker_that_dies_is_replaced_and_one_that_always_dies_gives_its_jobs_up() {
    let deaths = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&deaths);
    let pool = WorkerPool::threads(1).build_with(move |_| {
        assert!(count.fetch_add(1, Ordering::SeqCst) >= 3, "it dies before it is born");
        |_: &Worker, number: u64| Answer::Ok(number)
    });
    assert_eq!(pool.unwrap().gather([7]).wait(), [Ok(7)]);
    let never = |_: &Worker| -> fn(&Worker, u64) -> Answer<u64> { panic!("it always dies") };
    let pool = WorkerPool::threads(1).build_with(never).unwrap();
    match pool.submit(1).wait() {
        Ok(handle) => assert_eq!(handle.wait(), Err(JobError::Lost)),
        Err(error) => assert_eq!(error, SubmitError::Closed(1)),
    }
    until("its line is closed", || pool.try_submit(1).map(drop) == Err(SubmitError::Closed(1)));
    pool.shutdown(Shutdown::Drain).wait();
}

#[test]
fn the_runtime_of_a_worker_may_end_and_whoever_waits_is_told() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (pool, running, queued) = runtime.block_on(async {
        let pool = WorkerPool::tasks(1).build_async(|_, (): ()| async {
            std::future::pending::<()>().await;
            Answer::Ok(())
        });
        let pool = pool.unwrap();
        let (running, queued) = (pool.try_submit(()).unwrap(), pool.try_submit(()).unwrap());
        tokio::task::yield_now().await;
        (pool, running, queued)
    });
    drop(runtime);
    assert_eq!((running.wait(), queued.wait()), (Err(JobError::Lost), Err(JobError::Lost)));
    assert!(matches!(pool.submit(()).wait(), Err(SubmitError::Closed(()))));
    pool.shutdown(Shutdown::Drain).wait();
    let nowhere = WorkerPool::<(), (), String>::tasks(1).build(|_, ()| Ok(()));
    assert!(matches!(nowhere, Err(WorkersError::NoRuntime)));
}

#[test]
fn a_job_is_called_off_while_it_waits_while_it_runs_and_while_it_pauses() {
    let mut held = held_up(8);
    let (running, queued) = (held.pool.try_submit(0).unwrap(), held.pool.try_submit(1).unwrap());
    assert_eq!(held.begun.recv(), Ok(0));
    queued.cancel();
    running.cancel();
    assert!(queued.is_finished(), "told at once");
    assert_eq!((queued.wait(), running.wait()), (Err(JobError::Cancelled), Err(JobError::Cancelled)));
    held.go = None;
    assert_eq!(held.pool.submit(2).wait().unwrap().wait(), Ok(2));
    assert_eq!(held.begun.try_iter().collect::<Vec<_>>(), [2], "1 was never begun");

    let hands = hands();
    let retry = Retry::attempts(6).pause(Duration::from_secs(3_600)).jitter(Jitter::None);
    let tries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tries);
    let pool = WorkerPool::threads(1).clock(hands.clock()).retry(retry).build(move |_, number: u64| {
        count.fetch_add(1, Ordering::SeqCst);
        if number == 0 { Err("not now".to_owned()) } else { Ok(number) }
    });
    let pool = pool.unwrap();
    let pausing = pool.submit(0).wait().unwrap();
    until("it was tried", || tries.load(Ordering::SeqCst) == 1);
    pausing.cancel();
    assert_eq!(pool.submit(5).wait().unwrap().wait(), Ok(5), "the worker does not wait for the pause");
}

#[test]
fn an_asynchronous_job_that_is_called_off_is_dropped_where_it_is_and_gives_back_what_it_holds() {
    let set = LimitSet::new([Limit::resource("slots", 1)]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let _here = runtime.enter();
    for pool in [WorkerPool::tasks(1), WorkerPool::threads(1)] {
        let pool = pool.limits(set.clone()).build_async(|worker: Worker, (): ()| async move {
            let _held = worker.limits().acquire(demand! {}).await.map_err(|error| error.to_string())?;
            std::future::pending::<()>().await;
            Answer::Ok(())
        });
        let pool = pool.unwrap();
        let handle = pool.submit(()).wait().unwrap();
        until("it holds the slot", || support::available(&set, "slots") == 0);
        handle.cancel();
        until("it was dropped", || support::available(&set, "slots") == 1);
        assert_eq!(handle.wait(), Err(JobError::Cancelled));
    }
}

/// An error that takes the lease along.
struct StillHeld(#[allow(dead_code, reason = "it only has to be there")] Lease<'static>);

#[test]
fn limits_are_free_between_tries_even_if_the_error_holds_them() {
    let hands = hands();
    let set = support::set(&hands, [Limit::resource("slots", 1)]);
    let retry = Retry::attempts(2).pause(Duration::from_secs(10)).jitter(Jitter::None);
    let builder = WorkerPool::threads(1).limits(set.clone()).clock(hands.clock()).retry(retry);
    let pool = builder.build(|worker, (): ()| {
        let lease = worker.limits().acquire(demand! {}).wait().unwrap_or_else(|error| panic!("{error}"));
        let lease = lease_of(lease);
        if worker.tries() == 1 { Err(StillHeld(lease)) } else { Ok(worker.tries()) }
    });
    let pool = pool.unwrap();
    let Ok(handle) = pool.submit(()).wait() else { panic!("it is open") };
    // While it pauses, another caller can have the slot.
    until("it pauses", || hands.alarms() > 0);
    let taken = try_take(&set, demand! {}).expect("nobody holds it");
    advance_ms(&hands, 10_000);
    assert!(!handle.is_finished(), "the second try waits for the slot");
    drop(taken);
    assert!(matches!(handle.wait(), Ok(2)));
}

fn lease_of(lease: Lease<'_>) -> Lease<'static> {
    lease.into_owned()
}

#[test]
fn pauses_are_as_long_as_the_backoff_says_by_the_clock_of_the_pool() {
    for (backoff, pauses) in
        [(Backoff::Linear, [1, 2, 3]), (Backoff::Exponential, [1, 2, 4]), (Backoff::Fibonacci, [1, 1, 2])]
    {
        let hands = hands();
        let tries = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&tries);
        let retry = Retry::attempts(4).backoff(backoff).jitter(Jitter::None);
        let pool = WorkerPool::threads(1).clock(hands.clock()).retry(retry).build(move |worker, (): ()| {
            count.store(worker.tries() as usize, Ordering::SeqCst);
            Result::<(), _>::Err(format!("try {}", worker.tries()))
        });
        let pool = pool.unwrap();
        let handle = pool.submit(()).wait().unwrap();
        for (tried, pause) in pauses.into_iter().enumerate() {
            until("it was tried", || tries.load(Ordering::SeqCst) == tried + 1);
            until("it pauses", || hands.alarms() > 0);
            advance_ms(&hands, pause * 1_000 - 1);
            assert_eq!(tries.load(Ordering::SeqCst), tried + 1, "{backoff:?} a millisecond early");
            advance_ms(&hands, 1);
        }
        assert_eq!(handle.wait(), Err(JobError::Failed("try 4".into())));
    }
}

#[test]
fn what_is_not_worth_another_try_gets_none_and_what_is_not_valid_does() {
    let retry = || Retry::attempts(3).pause(Duration::ZERO);
    let tries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tries);
    let answer = move |_: &Worker, number: u64| {
        let tries = count.fetch_add(1, Ordering::SeqCst) as u64;
        if number == 9 { Err("no".to_owned()) } else { Ok(number + tries) }
    };
    let pool = WorkerPool::threads(1)
        .retry(retry())
        .retry_if(|error: &String| error != "no")
        .retry_until(|value: &u64| *value >= 2)
        .build(answer)
        .unwrap();
    let once = |number| {
        tries.store(0, Ordering::SeqCst);
        let result = pool.submit(number).wait().unwrap().wait();
        (result, tries.load(Ordering::SeqCst))
    };
    assert_eq!(once(9), (Err(JobError::Failed("no".into())), 1));
    assert_eq!(once(5), (Ok(5), 1));
    assert_eq!(once(0), (Ok(2), 3), "valid at the third try");
    let strict = WorkerPool::threads(1).retry(retry()).retry_until(|_: &u64| false);
    let strict = strict.build(|_, number: u64| Answer::Ok(number)).unwrap();
    assert_eq!(strict.submit(1).wait().unwrap().wait(), Err(JobError::Invalid(3)));
}

#[test]
fn workers_made_on_demand_are_made_for_one_job_bounded_and_count_their_index_on() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, peak) = (Arc::clone(&now), Arc::clone(&most));
    let pool = WorkerPool::threads(3).on_demand().queue(4).build(move |worker, (): ()| {
        peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::yield_now();
        running.fetch_sub(1, Ordering::SeqCst);
        Answer::Ok(worker.index())
    });
    let pool = pool.unwrap();
    let mut indices = fine(pool.gather(std::iter::repeat_n((), 200)).wait());
    indices.sort_unstable();
    assert!(indices.into_iter().eq(0..200));
    assert!(most.load(Ordering::SeqCst) <= 3);
    pool.shutdown(Shutdown::Drain).wait();
    assert!(matches!(pool.try_submit(()), Err(SubmitError::Closed(()))));
}

#[test]
fn every_worker_has_limits_of_its_own_over_the_same_sets() {
    let account = |name: &str| {
        LimitSet::builder().limits([Limit::per_day("rpd", 100)]).config("account", name).build().unwrap()
    };
    let sets = vec![account("a"), account("b")];
    let pool =
        WorkerPool::threads(2).limits(LimitPool::new(sets.clone()).unwrap()).build(|worker, (): ()| {
            let lease = worker.limits().acquire(demand! { rpd: 1 }).wait()?;
            Ok::<_, AcquireError>((worker.index(), lease.config()["account"].clone()))
        });
    let results = fine(pool.unwrap().gather([(), (), (), ()]).wait());
    let of = |index| {
        results.iter().filter(move |(worker, _)| *worker == index).map(|(_, account)| account.as_str())
    };
    assert_eq!((of(0).collect::<Vec<_>>(), of(1).collect::<Vec<_>>()), (vec!["a", "b"], vec!["b", "a"]));
    assert_eq!(sets.iter().map(|set| support::available(set, "rpd")).sum::<i64>(), 196);

    let takes = |worker: &Worker, (): ()| {
        worker.limits().try_acquire(demand! { rpd: 1 }).wait().map(|attempt| attempt.is_admitted())
    };
    let limits = || [Limit::per_day("rpd", 1)];
    let admitted = |pool: WorkerPool<(), bool, AcquireError>| {
        fine(pool.gather([(), (), ()]).wait()).into_iter().filter(|is| *is).count()
    };
    let builder = || WorkerPool::threads(2);
    assert_eq!(admitted(builder().build(takes).unwrap()), 3, "from nothing: an empty set");
    assert_eq!(admitted(builder().limits(limits()).build(takes).unwrap()), 1, "from a list of limits");
    assert_eq!(admitted(builder().limits(limits().to_vec()).build(takes).unwrap()), 1);
    assert_eq!(admitted(builder().limits(LimitSet::new(limits()).unwrap()).build(takes).unwrap()), 1);
    let two = vec![LimitSet::new(limits()).unwrap(), LimitSet::new(limits()).unwrap()];
    assert_eq!(admitted(builder().limits(two).build(takes).unwrap()), 2, "from several sets");
}

#[test]
fn what_cannot_be_is_refused_with_what_would_be_right() {
    let build = |count| WorkerPool::threads(count).build(|_, (): ()| Answer::Ok(()));
    assert_eq!(build(0).unwrap_err().to_string(), "the pool is to have 0 workers, but must have 1 to 4096");
    assert!(build(4_097).is_err());
    let bad = WorkerPool::threads(1).limits([Limit::per_day("rpd", 0)]).build(|_, (): ()| Answer::Ok(()));
    assert!(matches!(bad, Err(WorkersError::Limits(_))));
    let here = LimitSet::new([Limit::per_day("rpd", 1)]).unwrap();
    let shared = WorkerPool::threads(1).limits(here).across_processes().build(|_, (): ()| Answer::Ok(()));
    let error = shared.unwrap_err().to_string();
    assert!(error.contains("set 0") && error.contains("LimitSet::builder().store(..).name(..)"), "{error}");
    let memory = LimitSet::builder().limits([Limit::per_day("rpd", 1)]).store(Arc::new(Memory::default()));
    let memory = memory.name("hidden").build().unwrap();
    let shared = WorkerPool::threads(1).limits(memory).across_processes().build(|_, (): ()| Answer::Ok(()));
    assert!(matches!(shared, Err(WorkersError::NotShared(0))), "memory is a store that others do not see");
}

#[test]
fn a_pool_that_is_drained_does_what_it_has_and_one_that_is_cancelled_does_not() {
    let mut held = held_up(8);
    let handles: Vec<Handle<_, _>> = (0..4).map(|number| held.pool.try_submit(number).unwrap()).collect();
    let drained = held.pool.shutdown(Shutdown::Drain);
    assert_eq!(held.pool.try_submit(9).map(drop), Err(SubmitError::Closed(9)));
    assert!(matches!(held.pool.submit(9).wait(), Err(SubmitError::Closed(9))));
    held.go = None;
    drained.wait();
    held.pool.shutdown(Shutdown::Drain).wait();
    assert_eq!(fine(handles.into_iter().map(Handle::wait).collect()), [0, 1, 2, 3]);

    let mut held = held_up(8);
    let handles: Vec<Handle<_, _>> = (0..4).map(|number| held.pool.try_submit(number).unwrap()).collect();
    assert_eq!(held.begun.recv(), Ok(0));
    let cancelled = held.pool.shutdown(Shutdown::Cancel);
    assert!(handles.into_iter().all(|handle| handle.wait() == Err(JobError::Cancelled)));
    held.go = None;
    cancelled.wait();
    assert_eq!(held.begun.try_iter().count(), 0, "the others were not begun");
}

#[test]
fn a_pool_that_is_shut_down_under_load_leaves_nobody_waiting() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let pool = WorkerPool::threads(4).queue(2).build(|_, number: u64| Answer::Ok(number)).unwrap();
        let (finished, turned) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let started = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..2_000 {
                        match pool.submit(number).wait() {
                            Ok(handle) => {
                                let result = handle.wait();
                                assert!(matches!(result, Ok(_) | Err(JobError::Cancelled)), "{result:?}");
                                finished.fetch_add(1, Ordering::SeqCst);
                                started.store(true, Ordering::SeqCst);
                            }
                            Err(error) => {
                                assert_eq!(error, SubmitError::Closed(number));
                                turned.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    }
                });
            }
            until("some are done", || started.load(Ordering::SeqCst));
            pool.shutdown(how).wait();
        });
        assert_eq!(finished.into_inner() + turned.into_inner(), 8_000);
    }
}

#[test]
fn a_dropped_pool_waits_for_nothing_and_calls_off_what_is_left() {
    let HeldUp { pool, begun, go } = held_up(8);
    let handles: Vec<Handle<_, _>> = (0..3).map(|number| pool.try_submit(number).unwrap()).collect();
    assert_eq!(begun.recv(), Ok(0));
    drop(pool);
    assert!(handles.into_iter().all(|handle| handle.wait() == Err(JobError::Cancelled)));
    drop(go);
}

#[test]
fn results_come_as_they_are_done_and_only_so_many_inputs_are_taken_as_there_is_room_for() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let pool = WorkerPool::threads(2).queue(1).build(move |_, number: u64| {
        if number == 0 {
            let _ = wait.lock().unwrap().recv();
        }
        Answer::Ok(number)
    });
    let pool = pool.unwrap();
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    let inputs = (0..1_000_000).inspect(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let mut completed = pool.as_completed(inputs);
    let first = completed.next_result().wait().unwrap();
    assert_ne!(first.0, 0, "0 is held up");
    assert!(taken.load(Ordering::SeqCst) <= 8, "{taken:?}");
    drop(completed);
    drop(go);
}

#[test]
fn a_gathering_tells_how_it_goes_on() {
    let pool = WorkerPool::threads(1).build(
        |_, number: u64| {
            if number == 1 { Err("bad".to_owned()) } else { Ok(number) }
        },
    );
    let mut heard = Vec::new();
    let results = pool.unwrap().gather_with(0..3, |tally: JobTally| heard.push(tally)).wait();
    assert_eq!(results, [Ok(0), Err(JobError::Failed("bad".into())), Ok(2)]);
    let tally = |done, failed| JobTally { done, failed, total: Some(3) };
    assert_eq!(heard, [tally(0, 0), tally(1, 0), tally(2, 1), tally(3, 1)]);
    // Where standard error is no terminal, nothing is drawn; where it is, it does no harm.
    Bar::stderr().observe(JobTally { done: 1, failed: 0, total: None });
}

#[test]
fn a_gathering_that_is_dropped_at_any_poll_leaves_the_workers_free() {
    for polls in 0..6 {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let begun = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&begun);
            let pool = WorkerPool::tasks(2).queue(1).build_async(move |_, (): ()| {
                count.fetch_add(1, Ordering::SeqCst);
                async {
                    std::future::pending::<()>().await;
                    Answer::Ok(())
                }
            });
            let pool = pool.unwrap();
            let mut gathering = pool.gather([(), (), (), (), ()]);
            for _ in 0..polls {
                let mut context = Context::from_waker(Waker::noop());
                assert!(matches!(std::pin::Pin::new(&mut gathering).poll(&mut context), Poll::Pending));
                tokio::task::yield_now().await;
            }
            drop(gathering);
            pool.shutdown(Shutdown::Drain).await;
            assert!(begun.load(Ordering::SeqCst) <= 2);
        });
    }
}

/// A pool of two whose job 0 runs until the sender is dropped. Answers which worker did a job.
fn slow_first(balance: Balance) -> (WorkerPool<u64, usize, String>, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (tell, begun) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let pool = WorkerPool::threads(2).balance(balance).build(move |worker, number: u64| {
        if number == 0 {
            let _ = tell.send(());
            let _ = wait.lock().expect("no job panics").recv();
        }
        Ok(worker.index())
    });
    (pool.expect("it can be built"), begun, go)
}

#[test]
fn no_job_waits_behind_a_slow_one_while_another_worker_is_idle() {
    for balance in [Balance::Random, Balance::LeastActive, Balance::LeastTotal] {
        let (pool, begun, go) = slow_first(balance);
        let slow = pool.try_submit(0).unwrap();
        begun.recv().unwrap();
        let quick: Vec<_> = (1..=20).map(|number| pool.try_submit(number).unwrap()).collect();
        let other: Vec<usize> = quick.into_iter().map(|handle| handle.wait().unwrap()).collect();
        assert!(!slow.is_finished(), "{balance:?}");
        drop(go);
        let first = slow.wait().unwrap();
        assert!(other.iter().all(|worker| *worker == 1 - first), "{balance:?}");
    }
}

#[test]
fn in_turn_each_worker_does_the_jobs_that_are_its_own() {
    let (pool, begun, go) = slow_first(Balance::RoundRobin);
    let handles: Vec<_> = (0..4).map(|number| pool.try_submit(number).unwrap()).collect();
    begun.recv().unwrap();
    until("the other worker did its own", || handles[1].is_finished() && handles[3].is_finished());
    assert!(!handles[2].is_finished(), "it is for the worker that is busy");
    drop(go);
    assert_eq!(fine(handles.into_iter().map(Handle::wait).collect()), [0, 1, 0, 1]);
}

#[test]
fn a_worker_that_always_dies_leaves_its_jobs_to_those_it_shares_the_line_with() {
    let deaths = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&deaths);
    let pool = WorkerPool::threads(2).balance(Balance::LeastActive).build_with(move |worker| {
        let dies = worker.index() == 0;
        if dies {
            count.fetch_add(1, Ordering::SeqCst);
        }
        assert!(!dies, "it always dies");
        |worker: &Worker, _: u64| Answer::Ok(worker.index())
    });
    let pool = pool.unwrap();
    until("it is not replaced any more", || pool.stats().alive == 1 && deaths.load(Ordering::SeqCst) == 8);
    assert!(fine(pool.gather(0..100).wait()).into_iter().all(|worker| worker == 1));
    assert!(!pool.is_closed());
}

#[test]
fn a_pool_says_how_it_stands() {
    let (pool, begun, go) = slow_first(Balance::LeastTotal);
    let slow = pool.try_submit(0).unwrap();
    begun.recv().unwrap();
    fine(pool.gather(1..5).wait());
    until("the others are done", || pool.stats().running == 1);
    let stats = pool.stats();
    assert_eq!((pool.len(), pool.queue_max(), stats.alive, stats.waiting), (2, 2 * 1_024, 2, 0));
    let mut totals: Vec<_> = stats.workers.iter().map(|worker| (worker.active, worker.total)).collect();
    totals.sort_unstable();
    assert_eq!(totals, [(0, 4), (1, 1)]);
    assert_eq!((pool.limits().len(), pool.is_closed()), (1, false));
    drop(go);
    slow.wait().unwrap();
    pool.shutdown(Shutdown::Drain).wait();
    assert!(pool.is_closed());
    assert_eq!(pool.stats().alive, 0);
}

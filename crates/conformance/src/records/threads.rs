//! Records that several threads write.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_store::Clock;
use tollgate_store::records::{Change, Item, ItemKey, Records, RecordsError, Test, Write};

use super::{get, key, put, write};
use crate::fixture::open_at_start;

const THREADS: usize = 8;
const ROUNDS: usize = 50;

/// How often two records are read while other threads write them.
const LOOKS: usize = 300;

pub(super) fn run<R: Records>(open: &impl Fn(Clock) -> R) {
    eight_threads_lose_no_addition(open);
    a_bound_is_never_passed(open);
    one_of_many_threads_makes_a_record_that_must_be_absent(open);
    a_transfer_is_never_seen_half_done(open);
}

/// Runs `run` in threads that start together, and returns what they return.
fn together<T: Send>(threads: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        let spawn = |number| {
            let (start, run) = (&start, &run);
            scope.spawn(move || {
                start.wait();
                run(number)
            })
        };
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread of the suite panicked")).collect()
    })
}

fn add(at: &ItemKey, amount: i64, tests: Vec<Test>) -> Write {
    Write::Change(at.clone(), vec![Change::Add("n".into(), amount)], tests)
}

fn number<R: Records>(store: &R, at: &ItemKey) -> i64 {
    get(store, at).and_then(|item| item.int("n")).unwrap_or(0)
}

fn eight_threads_lose_no_addition<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let at = key("ns/A", "counter");
    together(THREADS, |thread| {
        for _ in 0..ROUNDS {
            let other = key("ns/A", &thread.to_string());
            write(&store, &[add(&at, 1, vec![]), add(&other, 1, vec![])]);
        }
    });
    assert_eq!(number(&store, &at), (THREADS * ROUNDS) as i64);
    for thread in 0..THREADS {
        assert_eq!(number(&store, &key("ns/A", &thread.to_string())), ROUNDS as i64);
    }
}

fn a_bound_is_never_passed<R: Records>(open: &impl Fn(Clock) -> R) {
    const BOUND: i64 = 20;
    let store = open_at_start(open);
    let at = key("ns/A", "bounded");
    let made = together(THREADS, |_| {
        let add_below = || store.write(&[add(&at, 1, vec![Test::AtMost("n".into(), BOUND - 1)])]).wait();
        let outcomes = (0..ROUNDS / 2).map(|_| add_below());
        outcomes
            .filter(|outcome| match outcome {
                Ok(()) => true,
                Err(RecordsError::Failed(0)) => false,
                Err(error) => panic!("{error}"),
            })
            .count()
    });
    assert_eq!(made.into_iter().sum::<usize>(), BOUND as usize);
    assert_eq!(number(&store, &at), BOUND);
}

fn one_of_many_threads_makes_a_record_that_must_be_absent<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    for round in 0..10 {
        let at = key("ns/A", &round.to_string());
        let claim = |thread: usize| Item::new(at.clone()).with("n", thread as i64);
        let won = together(THREADS, |thread| {
            store.write(&[Write::Put(claim(thread), vec![Test::Absent])]).wait().is_ok()
        });
        let winners: Vec<usize> = (0..THREADS).filter(|thread| won[*thread]).collect();
        assert_eq!(winners.len(), 1, "one of them was first");
        assert_eq!(get(&store, &at), Some(claim(winners[0])));
    }
}

fn a_transfer_is_never_seen_half_done<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let accounts = [key("ns/A", "1"), key("ns/B", "2")];
    write(&store, &accounts.clone().map(|at| put(Item::new(at).with("n", 100))));
    let looks = AtomicUsize::new(0);
    together(3, |thread| match thread {
        0 => {
            while looks.fetch_add(1, Ordering::SeqCst) < LOOKS {
                let found = store.get_many(&accounts).wait().expect("the store answers");
                let sum: i64 = found.iter().flatten().filter_map(|item| item.int("n")).sum();
                // The threads that wait for the reads are released before this one fails.
                if sum != 200 {
                    looks.store(LOOKS, Ordering::SeqCst);
                    panic!("a transfer was seen half done: {sum} in all");
                }
            }
        }
        _ => {
            let sign = if thread == 1 { 1 } else { -1 };
            for amount in (1..).map(|amount| sign * amount) {
                write(&store, &[add(&accounts[0], -amount, vec![]), add(&accounts[1], amount, vec![])]);
                if looks.load(Ordering::SeqCst) >= LOOKS {
                    break;
                }
            }
        }
    });
    assert_eq!(accounts.each_ref().map(|at| number(&store, at)).iter().sum::<i64>(), 200);
}

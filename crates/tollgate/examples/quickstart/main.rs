//! Threads and tasks share one limit set, and a table shows who is admitted, waits and is denied.
//!
//! `cargo run --release -p tollgate --example quickstart`; with `TOLLGATE_EXAMPLE_QUICK=1` it takes less than a second.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod board;
mod books;

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use board::{Board, Row, State};
use books::Books;
use tollgate::{AcquireError, Lease, Limit, LimitSet, Span, Tick, demand};

/// What every worker needs.
struct Office {
    set: LimitSet,
    board: Board,
    books: Books,
    ends: Tick,
}

/// How long a caller in a hurry will wait.
const HURRY: Duration = Duration::from_millis(250);

fn main() -> Result<(), Box<dyn Error>> {
    let quick = std::env::var_os("TOLLGATE_EXAMPLE_QUICK").is_some();
    let lasts = Duration::from_millis(if quick { 500 } else { 6_000 });

    // Fourteen requests and 3,000 tokens a second, and never more than four calls at once.
    let set = LimitSet::new([
        Limit::per_minute("rpm", 840).burst(6),
        Limit::per_minute("tpm", 180_000).burst(1_500),
        Limit::resource("connections", 4),
    ])?;
    let rows = ["ann", "ben", "cem", "dot", "eve", "fay", "gil", "hal"];
    let rows = rows
        .iter()
        .enumerate()
        .map(|(index, name)| Row::new(name, if index < 4 { "thread" } else { "task" }, index % 2 == 1));
    let ends = set.clock().now() + Span::covering(lasts);
    let books = Books::new(set.clock().clone());
    let office = Arc::new(Office { board: Board::new(rows.collect(), lasts), books, set, ends });

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let threads: Vec<_> = (0..4).map(|row| in_thread(Arc::clone(&office), row)).collect();
    let tasks: Vec<_> = (4..8).map(|row| runtime.spawn(in_task(Arc::clone(&office), row))).collect();
    office.board.show_until(&office.set, || {
        threads.iter().all(|thread| thread.is_finished()) && tasks.iter().all(|task| task.is_finished())
    });
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    for task in tasks {
        runtime.block_on(task)?;
    }
    office.board.summarise();
    office.books.prove(&office.set)
}

/// A worker with a thread of its own: it waits with no runtime.
fn in_thread(office: Arc<Office>, row: usize) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let (mut dice, row) = (Dice(row as u64 + 1), &office.board.rows[row]);
        while office.is_open() {
            let estimate = dice.roll(100, 500);
            row.show(State::Waiting);
            let asked = office.set.clock().now();
            let acquire = office.set.acquire(demand! { rpm: 1, tpm: estimate });
            let acquire = acquire.timeout(if row.hurried { HURRY } else { office.left() });
            match acquire.wait() {
                Ok(lease) => {
                    let call = office.begin(row, asked, &lease);
                    pause(dice.roll(60, 240));
                    office.end(row, call, lease, dice.roll(40, 95) * estimate / 100);
                }
                Err(error) => pause(office.back_off(row, &error)),
            }
        }
        row.show(State::Gone);
    })
}

/// A worker that is a task. The same queue, the same words, with `.await` for `.wait()`.
async fn in_task(office: Arc<Office>, row: usize) {
    let (mut dice, row) = (Dice(row as u64 + 1), &office.board.rows[row]);
    while office.is_open() {
        let estimate = dice.roll(100, 500);
        row.show(State::Waiting);
        let asked = office.set.clock().now();
        let acquire = office.set.acquire(demand! { rpm: 1, tpm: estimate });
        let acquire = acquire.timeout(if row.hurried { HURRY } else { office.left() });
        match acquire.await {
            Ok(lease) => {
                let call = office.begin(row, asked, &lease);
                tokio::time::sleep(Duration::from_millis(dice.roll(60, 240))).await;
                office.end(row, call, lease, dice.roll(40, 95) * estimate / 100);
            }
            Err(error) => tokio::time::sleep(Duration::from_millis(office.back_off(row, &error))).await,
        }
    }
    row.show(State::Gone);
}

impl Office {
    fn is_open(&self) -> bool {
        !self.left().is_zero()
    }

    /// How long it is still open.
    fn left(&self) -> Duration {
        self.ends.since(self.set.clock().now()).to_duration()
    }

    fn begin(&self, row: &Row, asked: Tick, lease: &Lease<'_>) -> books::Call {
        let waited = lease.waited().unwrap_or_default();
        row.admitted(waited);
        self.books.begin(asked + Span::covering(waited))
    }

    /// The call is over: what it did not use goes back, and its connection is free.
    fn end(&self, row: &Row, call: books::Call, lease: Lease<'_>, used: u64) {
        row.done(used);
        self.books.end(call, used);
        let settled = lease.settle(demand! { rpm: 1, tpm: used }).wait();
        settled.expect("what was used is an amount, and was asked for");
    }

    /// How many milliseconds to stay away after a refusal, which says how long it would have taken.
    fn back_off(&self, row: &Row, error: &AcquireError) -> u64 {
        if self.is_open() && row.hurried {
            row.denied();
        }
        let wait = error.denial().and_then(|denial| denial.wait()).unwrap_or(HURRY);
        wait.clamp(HURRY, 2 * HURRY).min(self.left()).as_millis() as u64 + 1
    }
}

/// Waits for the simulated API.
fn pause(millis: u64) {
    let clock = tollgate::Clock::system();
    let until = clock.now() + Span::from_millis(millis);
    while clock.now() < until {
        thread::park_timeout(until.since(clock.now()).to_duration());
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, least: u64, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + (self.0 >> 33) % (most - least + 1)
    }
}

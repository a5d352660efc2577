//! Workers in several processes share one limit set through a store, while processes are killed and started again at
//! random; a table shows who does what, and in the end the joint history is held against the limits.
//!
//! `cargo run --release -p tollgate --example workers -- file:/tmp/workers.db`; without an argument the file is one of its own. With
//! `TOLLGATE_EXAMPLE_QUICK=1` it takes a second or two.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

mod child;
mod history;
mod store;
mod table;

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use history::History;
use table::{Row, Table};
use tollgate::{Clock, Span};

/// How many processes there are at a time.
const PROCESSES: usize = 4;

/// The limits that all of them share: so many calls a second, of which so many at once, and so many that run together.
pub(crate) const RATE: u64 = 150;
pub(crate) const BURST: u64 = 15;
pub(crate) const SLOTS: u64 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(address) = child::address() {
        return child::run(&address);
    }
    let quick = std::env::var_os("TOLLGATE_EXAMPLE_QUICK").is_some();
    let lasts = Duration::from_millis(if quick { 1_500 } else { 5_000 });
    let address = store::Address::given()?;
    let (table, history) = (Arc::new(Table::new(PROCESSES)), Arc::new(Mutex::new(History::default())));

    let clock = Clock::system();
    let (began, mut dice) = (clock.now(), Dice(clock.now().as_micros() | 1));
    let ends = began + Span::covering(lasts);
    let mut next_kill = began + Span::from_millis(300);
    let mut family: Vec<Kin> = (0..PROCESSES)
        .map(|index| Kin::start(&address, index, &table, &history))
        .collect::<Result<_, _>>()?;
    while clock.now() < ends {
        table.show(clock.now().since(began).to_duration(), lasts);
        rest(&clock, 50);
        if clock.now() >= next_kill {
            let victim = dice.roll(0, PROCESSES as u64 - 1) as usize;
            family[victim].kill();
            family[victim] = Kin::start(&address, victim, &table, &history)?;
            table.rows[victim].killed();
            next_kill = next_kill + Span::from_millis(dice.roll(150, 600));
        }
    }
    family.iter_mut().for_each(Kin::say_that_it_is_over);
    let ended: Vec<_> = family.into_iter().map(Kin::finish).collect();
    table.finish(lasts);
    ended.into_iter().collect::<Result<(), _>>()?;
    let history = history.lock().map_err(|_| "a reader panicked")?;
    println!("{}", history.prove()?);
    Ok(())
}

/// A process of workers, and the thread that listens to it.
struct Kin {
    child: Child,
    reader: Option<JoinHandle<()>>,
}

impl Kin {
    fn start(
        address: &store::Address,
        index: usize,
        table: &Arc<Table>,
        history: &Arc<Mutex<History>>,
    ) -> Result<Kin, Box<dyn Error>> {
        let mut child = Command::new(std::env::current_exe()?)
            .env(child::ADDRESS, address.text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().ok_or("a child has no output")?;
        let (table, history) = (Arc::clone(table), Arc::clone(history));
        table.rows[index].started(child.id());
        let reader = thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut line = String::new();
            // A line that was cut off by a kill was not said.
            while out.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
                if let (Some(call), Ok(mut history)) = (history::Call::read(line.trim_end()), history.lock())
                {
                    table.rows[index].called();
                    history.add(call);
                }
                line.clear();
            }
        });
        Ok(Kin { child, reader: Some(reader) })
    }

    /// With no warning, and whatever it holds.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.listen_to_the_end();
    }

    /// Asks it to end, by closing its input.
    fn say_that_it_is_over(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until it has ended by itself.
    fn finish(mut self) -> Result<(), Box<dyn Error>> {
        let status = self.child.wait()?;
        self.listen_to_the_end();
        if status.success() { Ok(()) } else { Err(format!("a process of workers failed: {status}").into()) }
    }

    fn listen_to_the_end(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// However this ends, no process outlives it.
impl Drop for Kin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits, as the API would, or a viewer.
pub(crate) fn rest(clock: &Clock, millis: u64) {
    let until = clock.now() + Span::from_millis(millis);
    while clock.now() < until {
        thread::park_timeout(until.since(clock.now()).to_duration());
    }
}

/// Numbers that look random.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, least: u64, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + (self.0 >> 33) % (most - least + 1)
    }
}

impl Row {
    fn started(&self, pid: u32) {
        self.pid.store(pid, std::sync::atomic::Ordering::Relaxed);
    }
}

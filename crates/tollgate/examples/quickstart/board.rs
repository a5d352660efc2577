//! The table: one row for each worker, one bar for each limit; redrawn on a terminal, printed in lines elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tollgate::{LimitSet, SetStatus, Span, Tick};

pub(crate) struct Board {
    pub(crate) rows: Vec<Row>,
    lasts: Duration,
}

/// One worker.
pub(crate) struct Row {
    name: &'static str,
    kind: &'static str,
    pub(crate) hurried: bool,
    state: AtomicU8,
    calls: AtomicU64,
    waited_ms: AtomicU64,
    denied: AtomicU64,
    tokens: AtomicU64,
}

#[derive(Clone, Copy)]
pub(crate) enum State {
    Waiting,
    Admitted,
    Denied,
    Gone,
}

/// Words and colours that read well on dark and on light. Yellow and cyan do not.
const STATES: [(&str, &str); 4] = [("waiting", "35"), ("admitted", "32"), ("denied", "31"), ("done", "2")];

impl Row {
    pub(crate) fn new(name: &'static str, kind: &'static str, hurried: bool) -> Row {
        let state = AtomicU8::new(State::Waiting as u8);
        let zero = AtomicU64::default;
        let (calls, waited_ms, denied, tokens) = (zero(), zero(), zero(), zero());
        Row { name, kind, hurried, state, calls, waited_ms, denied, tokens }
    }

    pub(crate) fn show(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    pub(crate) fn admitted(&self, waited: Duration) {
        self.waited_ms.fetch_add(waited.as_millis() as u64, Relaxed);
        self.show(State::Admitted);
    }

    pub(crate) fn done(&self, tokens: u64) {
        self.calls.fetch_add(1, Relaxed);
        self.tokens.fetch_add(tokens, Relaxed);
    }

    pub(crate) fn denied(&self) {
        self.denied.fetch_add(1, Relaxed);
        self.show(State::Denied);
    }

    fn line(&self, paint: Paint) -> String {
        let (word, colour) = STATES[usize::from(self.state.load(Relaxed))];
        let patience = if self.hurried { "250 ms" } else { "its turn" };
        let waited = self.waited_ms.load(Relaxed) as f64 / 1e3;
        format!(
            " {:<8} {:<8} {patience:<10} {} {:>7} {waited:>7.1} s {:>9} {:>8}",
            self.name,
            self.kind,
            paint.with(colour, &format!("{word:<10}")),
            self.calls.load(Relaxed),
            self.denied.load(Relaxed),
            self.tokens.load(Relaxed),
        )
    }
}

impl Board {
    pub(crate) fn new(rows: Vec<Row>, lasts: Duration) -> Board {
        Board { rows, lasts }
    }

    /// Shows the table until `done`: ten times a second on a terminal, else a line each second.
    pub(crate) fn show_until(&self, set: &LimitSet, done: impl Fn() -> bool) {
        let began = set.clock().now();
        let live = std::io::stdout().is_terminal();
        let mut lines_above = 0;
        let mut next_line = began;
        loop {
            let over = done();
            let elapsed = set.clock().now().since(began);
            if live {
                lines_above = self.redraw(&self.table(set, elapsed, Paint::of_terminal()), lines_above);
            } else if over || set.clock().now() >= next_line {
                println!("{}", self.in_one_line(set, elapsed));
                next_line = next_line + Span::from_secs(1);
            }
            if over {
                return;
            }
            rest_until(set, set.clock().now() + Span::from_millis(if live { 100 } else { 20 }));
        }
    }

    /// Draws over what was drawn before, and says how many lines it were.
    fn redraw(&self, table: &[String], lines_above: usize) -> usize {
        let mut frame = if lines_above > 0 { format!("\x1b[{lines_above}A") } else { String::new() };
        table.iter().for_each(|line| frame.push_str(&format!("{line}\x1b[K\n")));
        let mut out = std::io::stdout().lock();
        // The terminal may be gone: that is no reason to stop.
        let _ = out.write_all(frame.as_bytes()).and_then(|()| out.flush());
        table.len()
    }

    fn table(&self, set: &LimitSet, elapsed: Span, paint: Paint) -> Vec<String> {
        let status = set.peek().wait().expect("memory answers");
        let elapsed = elapsed.to_duration().min(self.lasts).as_secs_f64();
        let clock = format!("{elapsed:.1} of {:.1} s", self.lasts.as_secs_f64());
        let mut lines = vec![format!(" {} {clock:>62}", paint.with("1", "tollgate")), String::new()];
        lines.extend(bars(&status, paint));
        lines.push(format!(" {:<12} {} in the queue", "waiting", status.waiting));
        lines.push(String::new());
        lines.push(paint.with("1", HEAD));
        lines.extend(self.rows.iter().map(|row| row.line(paint)));
        lines
    }

    fn in_one_line(&self, set: &LimitSet, elapsed: Span) -> String {
        let status = set.peek().wait().expect("memory answers");
        let limits = status.limits.iter().map(|limit| {
            format!("{} {}/{}", limit.limit().name(), limit.available(), limit.limit().capacity())
        });
        let (elapsed, waiting) = (elapsed.to_duration().as_secs_f64(), status.waiting);
        let [calls, denied] = [self.sum(|row| &row.calls), self.sum(|row| &row.denied)];
        format!(
            "{elapsed:4.1} s  {}  done {calls}  waiting {waiting}  denied {denied}",
            limits.collect::<Vec<_>>().join("  ")
        )
    }

    fn sum(&self, of: impl Fn(&Row) -> &AtomicU64) -> u64 {
        self.rows.iter().map(|row| of(row).load(Relaxed)).sum()
    }

    /// What it came to, over all workers.
    pub(crate) fn summarise(&self) {
        if !std::io::stdout().is_terminal() {
            println!();
            println!("{HEAD}");
            self.rows.iter().for_each(|row| println!("{}", row.line(Paint(false))));
        }
        let waited = self.sum(|row| &row.waited_ms) as f64 / 1e3;
        let [calls, denied, tokens] =
            [self.sum(|row| &row.calls), self.sum(|row| &row.denied), self.sum(|row| &row.tokens)];
        println!();
        println!(" {calls} calls were admitted and used {tokens} tokens; they waited {waited:.1} s in all.");
        println!(" {denied} were denied, because their turn would have come too late.");
    }
}

const HEAD: &str = " worker   kind     waits for  state        calls    waited   denied   tokens";

fn bars(status: &SetStatus, paint: Paint) -> Vec<String> {
    const WIDTH: u64 = 24;
    let bar = |limit: &tollgate::Status| {
        let (left, capacity) = (limit.available().max(0) as u64, limit.limit().capacity());
        let full = (left * WIDTH).div_ceil(capacity) as usize;
        let drawn = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH as usize - full));
        let colour = if left == 0 { "31" } else { "32" };
        let name = limit.limit().name();
        // `rpm: 840 per 60s, burst 6`, of which the name stands at the left.
        let rule = limit.limit().to_string();
        let rule = rule.split_once(": ").map_or("", |(_, rule)| rule);
        format!(" {name:<12} {} {:>5} of {capacity:<6} {rule}", paint.with(colour, &drawn), limit.available())
    };
    status.limits.iter().map(bar).collect()
}

/// Whether to use colours.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    /// As <https://no-color.org> has it.
    fn of_terminal() -> Paint {
        Paint(std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
    }

    fn with(self, colour: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.into() }
    }
}

fn rest_until(set: &LimitSet, until: Tick) {
    while set.clock().now() < until {
        thread::park_timeout(until.since(set.clock().now()).to_duration());
    }
}

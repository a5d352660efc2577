//! Books that the limits know nothing of: what the API saw, and whether that was ever too much.

use std::error::Error;
use std::sync::Mutex;

use tollgate::{Clock, LimitSet, Tick};

/// What the API saw.
pub(crate) struct Books {
    clock: Clock,
    opened: Tick,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// For each call the earliest and the latest instant at which it may have been admitted.
    calls: Vec<(Tick, Tick)>,
    /// For each call when it had ended, and how many tokens it had used.
    ends: Vec<(Tick, u64)>,
    at_once: u64,
    at_once_max: u64,
}

/// A call that has begun.
#[must_use = "a call that has begun ends"]
pub(crate) struct Call(());

impl Books {
    pub(crate) fn new(clock: Clock) -> Books {
        Books { opened: clock.now(), clock, seen: Mutex::default() }
    }

    /// A call begins, which was not admitted before `earliest`.
    pub(crate) fn begin(&self, earliest: Tick) -> Call {
        let mut seen = self.seen.lock().expect("nobody panics over the books");
        seen.calls.push((earliest, self.clock.now()));
        seen.at_once += 1;
        seen.at_once_max = seen.at_once_max.max(seen.at_once);
        Call(())
    }

    pub(crate) fn end(&self, Call(()): Call, tokens: u64) {
        let mut seen = self.seen.lock().expect("nobody panics over the books");
        seen.ends.push((self.clock.now(), tokens));
        seen.at_once -= 1;
    }

    /// Prints, for each limit, the moment that came closest to it.
    ///
    /// Requests are counted in every interval between two of them. Tokens are counted from the start, because
    /// a call takes what it may need and gives back the rest, so only what was used up is comparable.
    pub(crate) fn prove(&self, set: &LimitSet) -> Result<(), Box<dyn Error>> {
        let seen = self.seen.lock().expect("nobody panics over the books");
        let allowed = |name: &str, micros: u64| {
            let status = set.peek().wait().expect("memory answers");
            let limit = status.limit(name).expect("the set has it").limit().clone();
            let period = limit.period().map_or(u64::MAX, |period| period.as_micros());
            limit.capacity() + limit.amount() * micros / period
        };
        let requests = seen.calls.iter().flat_map(|(from, _)| {
            let mut until: Vec<Tick> = seen
                .calls
                .iter()
                .filter(|(earliest, _)| earliest >= from)
                .map(|(_, latest)| *latest)
                .collect();
            until.sort();
            until.into_iter().zip(1..).map(|(until, count)| (count, until.since(*from).as_micros()))
        });
        let mut sum = 0;
        let tokens = seen.ends.iter().map(|(at, tokens)| {
            sum += tokens;
            (sum, at.since(self.opened).as_micros())
        });
        println!();
        println!(" The moments that came closest to the limits, by the books of the API:");
        let kept = [
            closest("rpm", requests.map(|(count, micros)| (count, allowed("rpm", micros), micros))),
            closest("tpm", tokens.map(|(sum, micros)| (sum, allowed("tpm", micros), micros))),
            closest("connections", [(seen.at_once_max, allowed("connections", 0), 0)].into_iter()),
        ];
        if kept.contains(&false) {
            return Err("a limit was exceeded".into());
        }
        println!(" No limit was exceeded.");
        Ok(())
    }
}

/// Prints the moment with the least room left, and says whether it was within the limit.
fn closest(name: &str, moments: impl Iterator<Item = (u64, u64, u64)>) -> bool {
    let least_room = moments.min_by_key(|(used, allowed, _)| *allowed as i64 - *used as i64);
    let (used, allowed, micros) = least_room.unwrap_or_default();
    let during = if micros == 0 { "at once".into() } else { format!("in {:.3} s", micros as f64 / 1e6) };
    let verdict = if used <= allowed { "kept" } else { "EXCEEDED" };
    println!("   {name:<12} {used:>6} of at most {allowed:>6} {during:<12} {verdict}");
    used <= allowed
}

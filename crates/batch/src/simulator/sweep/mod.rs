//! Families of simulated providers: how long a batch takes with each, compared with the best
//! possible time.

mod limits;
mod noise;

use tollgate::{Span, Tick};

use super::{SimProvider, simulate, simulate_without_waiting};

pub use limits::{at_once, burst_of_one, calls_and_tokens, changes, clean, small_bursts, windows};
pub use noise::{advice_of_a_minute, false_headers, noise, stress};

/// A batch, and the time that it is compared with.
#[derive(Clone, Debug)]
pub(super) struct Case {
    provider: SimProvider,
    sizes: ItemSizes,
    workers: u64,
    seed: u64,
    best: Best,
}

/// The items of a batch.
#[derive(Clone, Debug)]
enum ItemSizes {
    /// This many items, whose tokens are not counted.
    Calls(u64),
    /// One item for each number of tokens.
    Tokens(Vec<u64>),
}

/// The best possible time.
#[derive(Clone, Debug)]
enum Best {
    /// The time of a caller that knows the limits.
    Takes(Span),
    /// The time of the same batch with a provider that refuses nothing at random.
    With(Box<SimProvider>),
    /// The time of a caller that retries every refused call at once.
    AtOnce,
}

/// A family of providers.
#[derive(Clone, Debug)]
pub struct Family {
    /// The name of the family.
    pub name: String,
    cases: Vec<Case>,
}

/// The median, the 90th percentile and the maximum, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepSpread {
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The maximum.
    pub worst: u64,
}

/// The results of a family.
#[derive(Clone, Debug)]
pub struct SweepSummary {
    /// How many batches ran.
    pub cases: usize,
    /// The durations, in thousandths of the best possible time.
    pub took: SweepSpread,
    /// How many of a thousand calls were refused.
    pub refused: SweepSpread,
    /// The case that took longest.
    pub slowest: String,
}

impl SweepSpread {
    fn of(mut values: Vec<u64>) -> SweepSpread {
        values.sort_unstable();
        let at = |part: usize| values.get((values.len() * part / 10).min(values.len().saturating_sub(1)));
        let at = |part| at(part).copied().unwrap_or(0);
        SweepSpread { p50: at(5), p90: at(9), worst: at(10) }
    }
}

impl Family {
    fn new(name: impl Into<String>, cases: Vec<Case>) -> Family {
        Family { name: name.into(), cases }
    }

    /// Returns the number of cases.
    pub fn cases(&self) -> usize {
        self.cases.len()
    }

    /// Runs every `nth` case, or a few more: the cases form a pattern, and a sample must not select
    /// one side of it.
    pub fn run(&self, nth: usize) -> SweepSummary {
        let nth = (1..=nth).rev().find(|nth| gcd(*nth, self.cases.len()) == 1).unwrap_or(1);
        let (mut took, mut refused, mut slowest) = (Vec::new(), Vec::new(), (0, String::new()));
        for case in self.cases.iter().step_by(nth) {
            let (time, of_thousand) = case.run();
            took.push(time);
            refused.push(of_thousand);
            if time >= slowest.0 {
                slowest = (time, format!("{case:?}"));
            }
        }
        SweepSummary {
            cases: took.len(),
            took: SweepSpread::of(took),
            refused: SweepSpread::of(refused),
            slowest: slowest.1,
        }
    }
}

impl Case {
    /// Returns the case of a batch whose calls are refused independent of its pace, compared with
    /// one where they are not.
    fn beside(best: SimProvider, provider: SimProvider, items: u64, workers: u64, seed: u64) -> Case {
        let best = Best::With(Box::new(best));
        Case { provider, sizes: ItemSizes::Calls(items), workers, seed, best }
    }

    /// Runs the case. Returns its duration and its refused calls, both in thousandths.
    fn run(&self) -> (u64, u64) {
        let sizes = match &self.sizes {
            ItemSizes::Calls(count) => vec![0; usize::try_from(*count).unwrap_or(usize::MAX)],
            ItemSizes::Tokens(sizes) => sizes.clone(),
        };
        let workers = usize::try_from(self.workers).unwrap_or(usize::MAX);
        let best = match &self.best {
            Best::Takes(span) => *span,
            Best::With(provider) => simulate(&mut provider.as_ref().clone(), &sizes, workers, self.seed)
                .makespan
                .since(Tick::ZERO),
            Best::AtOnce => {
                simulate_without_waiting(&mut self.provider.clone(), &sizes, workers).since(Tick::ZERO)
            }
        };
        let simulated = simulate(&mut self.provider.clone(), &sizes, workers, self.seed);
        let took = simulated.makespan.as_micros() * 1_000 / best.as_micros().max(1);
        (took, simulated.rejected * 1_000 / simulated.calls.max(1))
    }
}

fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

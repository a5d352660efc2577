//! Many providers, by family: how long a batch takes with each, compared with the best there is.

mod limits;
mod noise;

use tollgate::{Span, Tick};

use super::{SimProvider, play, play_at_once};

pub use limits::{at_once, burst_of_one, calls_and_tokens, changes, clean, small_bursts, windows};
pub use noise::{advice_of_a_minute, headers_that_lie, noise, stress};

/// A batch, and what its time is compared with.
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
    /// So many, whose tokens are not counted.
    Calls(u64),
    /// One of so many tokens each.
    Tokens(Vec<u64>),
}

/// The best time there is.
#[derive(Clone, Debug)]
enum Best {
    /// That of a caller that knows everything.
    Takes(Span),
    /// That of the same batch with a provider that refuses nothing without reason.
    With(Box<SimProvider>),
    /// That of a caller that calls again at once, whatever is refused.
    AtOnce,
}

/// Providers that have something in common.
#[derive(Clone, Debug)]
pub struct Family {
    /// What they have in common.
    pub name: String,
    cases: Vec<Case>,
}

/// The median, the ninth tenth and the worst, each of a thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepSpread {
    /// Half of the cases are not above it.
    pub p50: u64,
    /// Nine tenths of them are not.
    pub p90: u64,
    /// None is.
    pub worst: u64,
}

/// How the batches of a family went.
#[derive(Clone, Debug)]
pub struct SweepSummary {
    /// How many they were.
    pub cases: usize,
    /// How long they took, of a thousandth of the best time.
    pub took: SweepSpread,
    /// How many calls were refused, of a thousand.
    pub refused: SweepSpread,
    /// The one that took longest.
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

    /// How many cases there are.
    pub fn cases(&self) -> usize {
        self.cases.len()
    }

    /// Plays each `nth` of the cases, or a few more: they come in a pattern of which a sample must not choose one side.
    pub fn play(&self, nth: usize) -> SweepSummary {
        let nth = (1..=nth).rev().find(|nth| gcd(*nth, self.cases.len()) == 1).unwrap_or(1);
        let (mut took, mut refused, mut slowest) = (Vec::new(), Vec::new(), (0, String::new()));
        for case in self.cases.iter().step_by(nth) {
            let (time, of_thousand) = case.play();
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
    /// A batch whose calls are refused for no reason that its pace could change, compared with one where they are not.
    fn beside(best: SimProvider, provider: SimProvider, items: u64, workers: u64, seed: u64) -> Case {
        let best = Best::With(Box::new(best));
        Case { provider, sizes: ItemSizes::Calls(items), workers, seed, best }
    }

    /// How long it took, and how many calls were refused, both of a thousand.
    fn play(&self) -> (u64, u64) {
        let sizes = match &self.sizes {
            ItemSizes::Calls(count) => vec![0; usize::try_from(*count).unwrap_or(usize::MAX)],
            ItemSizes::Tokens(sizes) => sizes.clone(),
        };
        let workers = usize::try_from(self.workers).unwrap_or(usize::MAX);
        let best = match &self.best {
            Best::Takes(span) => *span,
            Best::With(provider) => {
                play(&mut provider.as_ref().clone(), &sizes, workers, self.seed).makespan.since(Tick::ZERO)
            }
            Best::AtOnce => play_at_once(&mut self.provider.clone(), &sizes, workers).since(Tick::ZERO),
        };
        let played = play(&mut self.provider.clone(), &sizes, workers, self.seed);
        let took = played.makespan.as_micros() * 1_000 / best.as_micros().max(1);
        (took, played.rejected * 1_000 / played.calls.max(1))
    }
}

fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

//! What is learned about a model, and how well its estimates did.

use super::Estimate;
use super::histogram::SizeHistogram;
use crate::Tokens;

/// So many calls of a model must be known before its estimates go by them.
const CALLS_MIN: u32 = 8;

/// Ratios are in thousandths.
const ONE: u64 = 1_000;

/// What is learned about a model.
#[derive(Debug)]
pub(super) struct LearnedModel {
    /// How much was used for what was counted, in thousandths.
    ratio: SizeHistogram,
    /// How long answers were.
    output: SizeHistogram,
    pub(super) accuracy: Accuracy,
}

impl Default for LearnedModel {
    fn default() -> Self {
        Self { ratio: SizeHistogram::new(), output: SizeHistogram::new(), accuracy: Accuracy::default() }
    }
}

impl LearnedModel {
    pub(super) fn add(&mut self, estimate: &Estimate, used: Tokens) {
        // A reply that does not say what its input was says nothing about it.
        if used.input > 0 && estimate.counted > 0 {
            let ratio = u128::from(used.input) * u128::from(ONE) / u128::from(estimate.counted);
            self.ratio.add(u64::try_from(ratio).unwrap_or(u64::MAX));
        }
        // Embeddings have no answers, and teach nothing about their length.
        if let Some(each) = used.output.checked_div(estimate.answers) {
            self.output.add(each);
        }
        self.accuracy.add(estimate.total(), used.total);
    }

    /// What an input comes to that was counted as so much.
    pub(super) fn input(&self, counted: u64, cover: u16) -> u64 {
        match self.ratio.quantile(cover).filter(|_| self.ratio.count() >= CALLS_MIN) {
            Some(ratio) => {
                let input = (u128::from(counted) * u128::from(ratio)).div_ceil(u128::from(ONE));
                u64::try_from(input).unwrap_or(u64::MAX)
            }
            None => counted,
        }
    }

    /// How long an answer is to be expected, once enough have been seen.
    pub(super) fn output(&self, cover: u16) -> Option<u64> {
        self.output.quantile(cover).filter(|_| self.output.count() >= CALLS_MIN)
    }
}

/// How well estimates did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accuracy {
    /// Calls that were learned from.
    pub calls: u64,
    /// Tokens that they were estimated to use.
    pub estimated: u64,
    /// Tokens that they used.
    pub used: u64,
    /// Tokens that were estimated and not used: others could have had them.
    pub wasted: u64,
    /// Tokens that were used beyond the estimate: a limit may have been overrun by them.
    pub overshot: u64,
    /// Calls that used more than was estimated.
    pub overshot_calls: u64,
}

impl Accuracy {
    fn add(&mut self, estimated: u64, used: u64) {
        let overshot = used.saturating_sub(estimated);
        *self = self.plus(&Accuracy {
            calls: 1,
            estimated,
            used,
            wasted: estimated.saturating_sub(used),
            overshot,
            overshot_calls: u64::from(overshot > 0),
        });
    }

    pub(super) fn plus(&self, other: &Accuracy) -> Accuracy {
        Accuracy {
            calls: self.calls.saturating_add(other.calls),
            estimated: self.estimated.saturating_add(other.estimated),
            used: self.used.saturating_add(other.used),
            wasted: self.wasted.saturating_add(other.wasted),
            overshot: self.overshot.saturating_add(other.overshot),
            overshot_calls: self.overshot_calls.saturating_add(other.overshot_calls),
        }
    }
}

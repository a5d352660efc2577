//! Statistics about a model, and the accuracy of its estimates.

use super::Estimate;
use super::histogram::SizeHistogram;
use crate::Tokens;

/// The number of calls of a model after which estimates use its statistics.
const CALLS_MIN: u32 = 8;

/// Ratios are in thousandths.
const ONE: u64 = 1_000;

/// Statistics about a model.
#[derive(Debug)]
pub(super) struct LearnedModel {
    /// The used input tokens for each counted one, in thousandths.
    ratio: SizeHistogram,
    /// The lengths of answers.
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
        // A reply without input usage has no information about it.
        if used.input > 0 && estimate.counted > 0 {
            let ratio = u128::from(used.input) * u128::from(ONE) / u128::from(estimate.counted);
            self.ratio.add(u64::try_from(ratio).unwrap_or(u64::MAX));
        }
        // Embeddings have no answers, so they have no information about their length.
        if let Some(each) = used.output.checked_div(estimate.answers) {
            self.output.add(each);
        }
        self.accuracy.add(estimate.total(), used.total);
    }

    /// Returns the expected input tokens for `counted` tokens.
    pub(super) fn input(&self, counted: u64, cover: u16) -> u64 {
        match self.ratio.quantile(cover).filter(|_| self.ratio.count() >= CALLS_MIN) {
            Some(ratio) => {
                let input = (u128::from(counted) * u128::from(ratio)).div_ceil(u128::from(ONE));
                u64::try_from(input).unwrap_or(u64::MAX)
            }
            None => counted,
        }
    }

    /// Returns the expected length of an answer, once enough calls are known.
    pub(super) fn output(&self, cover: u16) -> Option<u64> {
        self.output.quantile(cover).filter(|_| self.output.count() >= CALLS_MIN)
    }
}

/// The accuracy of estimates.
///
/// ```
/// use serde_json::json;
/// use tollgate_provider::{Estimator, Tokens};
///
/// let estimator = Estimator::new();
/// let estimate = estimator.estimate(&json!({"prompt": "How far is it?", "max_tokens": 50}));
/// estimator.learn(&estimate, Tokens::new(estimate.input, 60));
/// let accuracy = estimator.accuracy();
/// assert_eq!((accuracy.calls, accuracy.overshot, accuracy.overshot_calls), (1, 10, 1));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accuracy {
    /// The number of calls.
    pub calls: u64,
    /// The sum of estimated tokens.
    pub estimated: u64,
    /// The sum of used tokens.
    pub used: u64,
    /// The estimated tokens that were not used, which other calls could have had.
    pub wasted: u64,
    /// The used tokens beyond the estimate, which may have exceeded a limit.
    pub overshot: u64,
    /// The number of calls that used more than estimated.
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

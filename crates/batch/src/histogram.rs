//! A histogram of durations: percentiles in a few kilobytes, in integers.

use std::time::Duration;

/// Steps per power of two, which makes a percentile exact to 1/16.
const STEPS: u64 = 16;
const STEP_BITS: u32 = 4;

/// A histogram of durations.
///
/// ```
/// use std::time::Duration;
/// use tollgate_batch::Histogram;
///
/// let mut calls = Histogram::default();
/// (1..=100).for_each(|millis| calls.record(Duration::from_millis(millis)));
/// assert_eq!(calls.count(), 100);
/// let median = calls.per_mille(500).as_millis();
/// assert!((50..=53).contains(&median), "{median}");
/// ```
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    most: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; ((64 - STEP_BITS as usize) + 1) * STEPS as usize], count: 0, most: 0 }
    }
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.counts[slot(micros)] += 1;
        self.count += 1;
        self.most = self.most.max(micros);
    }

    /// Returns how many durations were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the longest duration.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.most)
    }

    /// Returns the duration that `per_mille` of a thousand recorded durations do not exceed: 500
    /// for the median. It is at most a sixteenth too long.
    pub fn per_mille(&self, per_mille: u64) -> Duration {
        let rank = u128::from(self.count) * u128::from(per_mille.min(1_000));
        let rank = u64::try_from(rank.div_ceil(1_000)).unwrap_or(u64::MAX).max(1);
        let mut seen = 0;
        for (slot, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_micros(upper_bound(slot).min(self.most));
            }
        }
        Duration::ZERO
    }
}

/// Returns the index of the counter for a number.
fn slot(micros: u64) -> usize {
    if micros < STEPS {
        return micros as usize;
    }
    let shift = 63 - micros.leading_zeros() - STEP_BITS;
    let step = (micros >> shift) - STEPS;
    (u64::from(shift + 1) * STEPS + step) as usize
}

/// Returns the largest number that a counter counts.
fn upper_bound(slot: usize) -> u64 {
    let (row, step) = (slot as u64 / STEPS, slot as u64 % STEPS);
    match row {
        0 => step,
        _ => {
            let shift = row - 1;
            let next = u128::from(STEPS + step + 1) << shift;
            u64::try_from(next - 1).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_never_too_short_and_hardly_too_long() {
        let mut histogram = Histogram::default();
        (1..=10_000).for_each(|millis| histogram.record(Duration::from_millis(millis)));
        for per_mille in [1, 500, 900, 990, 1_000] {
            let exact = Duration::from_millis(per_mille * 10);
            let reported = histogram.per_mille(per_mille);
            assert!(reported >= exact && reported <= exact + exact / 16, "{per_mille}: {reported:?}");
        }
    }

    #[test]
    fn every_number_has_the_slot_whose_upper_bound_is_the_next() {
        for micros in [0, 1, 15, 16, 17, 31, 32, 1_000, u64::MAX / 3, u64::MAX] {
            let slot = slot(micros);
            assert!(upper_bound(slot) >= micros, "{micros}");
            assert!(slot == 0 || upper_bound(slot - 1) < micros, "{micros}");
        }
    }
}

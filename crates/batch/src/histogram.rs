//! Percentiles in a few kilobytes, in integers.

use std::time::Duration;

/// Each power of two is divided into this many steps, so that a percentile is exact to 1/16.
const STEPS: u64 = 16;
const STEP_BITS: u32 = 4;

/// How many durations there were of about which length, in microseconds.
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
        self.counts[place(micros)] += 1;
        self.count += 1;
        self.most = self.most.max(micros);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.most)
    }

    /// The duration that so many of a thousand do not exceed: 500 for the median. At most a sixteenth too long.
    pub fn per_mille(&self, per_mille: u64) -> Duration {
        let rank = u128::from(self.count) * u128::from(per_mille.min(1_000));
        let rank = u64::try_from(rank.div_ceil(1_000)).unwrap_or(u64::MAX).max(1);
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_micros(last_of(place).min(self.most));
            }
        }
        Duration::ZERO
    }
}

/// Where a number is counted.
fn place(micros: u64) -> usize {
    if micros < STEPS {
        return micros as usize;
    }
    let shift = 63 - micros.leading_zeros() - STEP_BITS;
    let step = (micros >> shift) - STEPS;
    (u64::from(shift + 1) * STEPS + step) as usize
}

/// The largest number that is counted there.
fn last_of(place: usize) -> u64 {
    let (row, step) = (place as u64 / STEPS, place as u64 % STEPS);
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
            let told = histogram.per_mille(per_mille);
            assert!(told >= exact && told <= exact + exact / 16, "{per_mille}: {told:?}");
        }
    }

    #[test]
    fn every_number_has_a_place_that_ends_at_or_after_it() {
        for micros in [0, 1, 15, 16, 17, 31, 32, 1_000, u64::MAX / 3, u64::MAX] {
            let place = place(micros);
            assert!(last_of(place) >= micros, "{micros}");
            assert!(place == 0 || last_of(place - 1) < micros, "{micros}");
        }
    }
}

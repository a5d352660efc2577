//! Histograms: quantiles of whole numbers in constant memory.
//!
//! A number is stored by its leading bits: exactly below 16, and to one part in sixteen above. Old
//! numbers fade, so that estimates follow a model that changes.

/// The number of leading bits that are stored, besides the first.
const BITS: u32 = 4;
const SUB: usize = 1 << BITS;

/// The maximum number of bits; larger numbers are clamped.
const WIDTH: u32 = 24;
const BINS: usize = SUB * (WIDTH - BITS + 1) as usize;

/// The count at which all counts are halved.
const FADE_AT: u32 = 1_024;

/// Counts numbers in bins.
#[derive(Clone, Debug)]
pub(crate) struct SizeHistogram {
    bins: Box<[u32; BINS]>,
    count: u32,
}

impl SizeHistogram {
    pub(crate) fn new() -> Self {
        Self { bins: Box::new([0; BINS]), count: 0 }
    }

    /// Returns how many numbers the histogram has, after fading.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn add(&mut self, number: u64) {
        if self.count >= FADE_AT {
            self.bins.iter_mut().for_each(|bin| *bin /= 2);
            self.count = self.bins.iter().sum();
        }
        self.bins[bin(number)] += 1;
        self.count += 1;
    }

    /// Returns a number that `permille` thousandths of all numbers do not exceed: the upper edge of
    /// their bin. `None` if the histogram is empty.
    pub(crate) fn quantile(&self, permille: u16) -> Option<u64> {
        let wanted = (u64::from(self.count) * u64::from(permille.min(1_000))).div_ceil(1_000).max(1);
        let mut seen = 0_u64;
        let at = self.bins.iter().position(|&bin| {
            seen += u64::from(bin);
            seen >= wanted
        })?;
        Some(upper(at))
    }
}

fn bin(number: u64) -> usize {
    let number = number.min((1 << WIDTH) - 1);
    let small = usize::try_from(number).unwrap_or(usize::MAX);
    if small < SUB {
        return small;
    }
    let width = u64::BITS - number.leading_zeros();
    let shift = width - 1 - BITS;
    (shift as usize) * SUB + (small >> shift)
}

/// Returns the largest number of a bin.
fn upper(bin: usize) -> u64 {
    if bin < SUB {
        return bin as u64;
    }
    let shift = bin / SUB - 1;
    let lead = (bin % SUB + SUB) as u64;
    ((lead + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_in_its_bin(number in prop_oneof![0..(1_u64 << WIDTH), 0..200_u64]) {
            let edge = upper(bin(number));
            prop_assert!(number <= edge && edge <= number + number / 16, "{} {}", number, edge);
            prop_assert_eq!(bin(edge), bin(number));
        }

        #[test]
        fn a_quantile_is_at_most_one_sixteenth_above_the_true_one(
            numbers in prop::collection::vec(0..5_000_u64, 1..300),
            permille in 1..=1_000_u16,
        ) {
            let mut histogram = SizeHistogram::new();
            numbers.iter().for_each(|&number| histogram.add(number));
            let mut sorted = numbers;
            sorted.sort_unstable();
            let rank = (sorted.len() * usize::from(permille)).div_ceil(1_000).max(1);
            let exact = sorted[rank - 1];
            let read = histogram.quantile(permille).unwrap();
            prop_assert!(exact <= read && read <= exact + exact / 16, "{} {}", exact, read);
        }
    }

    #[test]
    fn the_largest_number_is_clamped_and_an_empty_histogram_has_no_quantile() {
        let mut histogram = SizeHistogram::new();
        assert_eq!(histogram.quantile(500), None);
        histogram.add(u64::MAX);
        assert_eq!(histogram.quantile(500), Some((1 << WIDTH) - 1));
    }

    #[test]
    fn old_numbers_fade() {
        let mut histogram = SizeHistogram::new();
        (0..10_000).for_each(|_| histogram.add(1_000));
        (0..5_000).for_each(|_| histogram.add(10));
        assert_eq!(histogram.quantile(990), Some(10));
        assert!(histogram.count() <= FADE_AT);
    }
}

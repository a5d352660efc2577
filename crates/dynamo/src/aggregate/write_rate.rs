//! Write rate of an item.

/// Writes of one item in a second from which on its bucket is split: four fifths of what a partition bears.
const HOT: u64 = 800;

/// The write rate of an item, as far as a batch shows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriteRate {
    first: Option<WriteSample>,
    last: Option<WriteSample>,
}

#[derive(Clone, Copy, Debug)]
struct WriteSample {
    revision: u64,
    at: i64,
}

impl WriteRate {
    /// Adds a sample: the item had this revision at this time, in seconds.
    pub(super) fn add(&mut self, revision: u64, at: Option<i64>) {
        let Some(at) = at else { return };
        let sample = WriteSample { revision, at };
        if self.first.is_none_or(|first| revision < first.revision) {
            self.first = Some(sample);
        }
        if self.last.is_none_or(|last| revision > last.revision) {
            self.last = Some(sample);
        }
    }

    /// Returns whether it is written nearly as often as a partition bears. Times are whole seconds, so one more is counted than
    /// lies between them: the rate is never overestimated.
    pub(super) fn is_hot(&self) -> bool {
        let (Some(first), Some(last)) = (self.first, self.last) else { return false };
        let seconds = last.at.abs_diff(first.at) + 1;
        (last.revision - first.revision) / seconds >= HOT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_hot(samples: &[(u64, i64)]) -> bool {
        let mut rate = WriteRate::default();
        samples.iter().for_each(|(revision, at)| rate.add(*revision, Some(*at)));
        rate.is_hot()
    }

    #[test]
    fn an_item_is_hot_from_four_fifths_of_what_a_partition_bears() {
        assert!(is_hot(&[(10, 100), (810, 100)]));
        assert!(!is_hot(&[(10, 100), (809, 100)]));
        assert!(is_hot(&[(1_610, 101), (10, 100)]), "in whatever order they come");
        assert!(!is_hot(&[(10, 100), (1_609, 101)]));
        assert!(!is_hot(&[(5_000, 100)]), "one sample shows no rate");
        assert!(!is_hot(&[]));
    }
}

//! The line numbers of the items of a batch.

use std::collections::VecDeque;

/// The maximum number of jumps. A batch asks for the line of an item when it takes the item, so one would suffice.
const JUMPS_MAX: usize = 4_096;

/// The lines of the last items. Most lines are items, so only the exceptions are stored.
#[derive(Debug, Default)]
pub(super) struct LineNumbers {
    /// An item and its line, where the distance between the two changes.
    jumps: VecDeque<(u64, u64)>,
    items: u64,
}

impl LineNumbers {
    /// Adds the line of the next item.
    pub(super) fn add(&mut self, line: u64) {
        let expected = self.jumps.back().map(|(item, first)| first + (self.items - item));
        if expected != Some(line) {
            if self.jumps.len() == JUMPS_MAX {
                self.jumps.pop_front();
            }
            self.jumps.push_back((self.items, line));
        }
        self.items += 1;
    }

    /// Returns the line of an item, which is counted from 0; `None` if that was too long ago.
    pub(super) fn line_of(&self, item: u64) -> Option<u64> {
        let after = self.jumps.partition_point(|(first, _)| *first <= item);
        let (first, line) = self.jumps.get(after.checked_sub(1)?)?;
        (item < self.items).then(|| line + (item - first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_an_item_are_skipped() {
        let mut numbers = LineNumbers::default();
        let lines = [1, 2, 3, 5, 9, 10];
        for line in lines {
            numbers.add(line);
        }
        let found: Vec<u64> = (0..6).filter_map(|item| numbers.line_of(item)).collect();
        assert_eq!((found.as_slice(), numbers.line_of(6)), (&lines[..], None));
        assert_eq!(numbers.jumps.len(), 3);
    }

    #[test]
    fn a_blank_line_after_each_request_takes_bounded_memory() {
        let mut numbers = LineNumbers::default();
        for item in 0..100_000 {
            numbers.add(2 * item + 1);
            assert_eq!(numbers.line_of(item), Some(2 * item + 1));
        }
        assert!(numbers.jumps.capacity() <= JUMPS_MAX, "{}", numbers.jumps.capacity());
        let oldest = 100_000 - JUMPS_MAX as u64;
        assert_eq!((numbers.line_of(oldest), numbers.line_of(oldest - 1)), (Some(2 * oldest + 1), None));
    }
}

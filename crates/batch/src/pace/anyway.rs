//! Refusals that have nothing to do with the pace.
//!
//! Some providers refuse a part of the calls whatever the pace: what all their callers share is used up. A refusal measures
//! nothing then, and to go slower each time would mean to fall for ever. What shows it is that going slower does not help:
//! calls are refused again and again below what was just measured. From then on the pace rises with every refusal, for as
//! long as more passes that way. If it does not, there is a limit as well, and that is measured.

use super::Rate;

/// After so many refusals in a row below what is thought to be the limit it is not the pace that is refused.
const BELOW_MAX: u32 = 10;

/// How often it is seen whether going faster pays, in refusals.
const SEEN_EVERY: u32 = 4;

/// How much more must pass for that, of a thousand.
const PAYS: u64 = 1_080;

/// What speaks for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Anyway {
    /// How often in a row a call was refused below what is thought to be the limit.
    below: u32,
    /// What the limits were thought to be before the first of those, until that is taken back.
    before: [Option<Rate>; 2],
    /// What passed when it was last seen.
    passed: Option<Rate>,
}

impl Anyway {
    /// Counts a refusal, which was below the limits that are thought to be `found` or not.
    pub(super) fn count(&mut self, is_below: bool, found: [Option<Rate>; 2]) {
        match (is_below, self.below) {
            (false, _) => *self = Anyway::default(),
            (true, 0) => *self = Anyway { below: 1, before: found, passed: None },
            (true, _) => self.below = self.below.saturating_add(1),
        }
    }

    /// Whether it may be so.
    pub(super) fn is_likely(&self) -> bool {
        self.below > BELOW_MAX / 2
    }

    /// Whether it is so.
    pub(super) fn is_sure(&self) -> bool {
        self.below > BELOW_MAX
    }

    /// Whether the refusal that was counted last measures nothing.
    pub(super) fn is_in_vain(&self) -> bool {
        self.is_sure() && !self.below.is_multiple_of(SEEN_EVERY)
    }

    /// Whether more passes than when it was last seen. The first time nobody knows, and it is tried.
    pub(super) fn pays(&mut self, passed: Rate) -> bool {
        let before = self.passed.replace(passed);
        let pays = before.is_none_or(|before| passed > before.scaled(PAYS, 1_000));
        if !pays {
            // It goes on from lower down, where less passes.
            self.passed = None;
        }
        pays
    }

    /// What the limits were thought to be before going slower did not help; once.
    pub(super) fn take_back(&mut self) -> [Option<Rate>; 2] {
        std::mem::take(&mut self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(calls: u64) -> Rate {
        Rate::of(calls, tollgate::Span::from_secs(1))
    }

    #[test]
    fn only_many_refusals_in_a_row_below_the_limit_show_it() {
        let mut anyway = Anyway::default();
        let found = [Some(rate(10)), None];
        for refusal in 1..=BELOW_MAX {
            anyway.count(true, if refusal == 1 { found } else { [Some(rate(1)), None] });
            assert!(!anyway.is_sure() && !anyway.is_in_vain());
        }
        anyway.count(true, [Some(rate(1)), None]);
        assert!(anyway.is_sure() && anyway.is_in_vain());
        assert_eq!((anyway.take_back(), anyway.take_back()), (found, [None; 2]));
        anyway.count(false, found);
        assert!(!anyway.is_likely());
    }

    #[test]
    fn going_faster_is_tried_first_and_pays_if_more_passes() {
        let mut anyway = Anyway::default();
        assert!(anyway.pays(rate(100)) && anyway.pays(rate(120)));
        assert!(!anyway.pays(rate(121)), "that is no more");
        assert!(anyway.pays(rate(90)), "seen anew");
    }
}

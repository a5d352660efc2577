//! Noise: refusals that do not depend on the pace.
//!
//! Providers refuse some calls at any pace, because capacity that all their callers share is used
//! up. A limit refuses a larger share of the calls the faster they come; noise refuses the same
//! share at any pace, and costs only itself. One refusal does not show which of them it is. So
//! refusals are weighed by a CUSUM test: each is evidence for a limit, and each call that passes is
//! evidence against it, by as much as the known share of noise allows.

use super::history::History;

/// The weight of one refusal.
const WHOLE: u64 = 1_000;

/// By how much the share of refused calls must exceed the noise to be evidence for a limit, in
/// thousandths.
const MARGIN: u64 = 20;

/// The most calls that the share is measured from: noise comes and goes.
const CALLS_MAX: u64 = 1_000 * WHOLE;

/// After this many calls without a limit the share is updated.
const CALLS_LEARNED: u64 = 200;

/// A larger share than this is not noise.
const SHARE_MAX: u64 = 550;

/// The prior: a quarter of a refusal in fifty calls.
const FIRST_CALLS: u64 = 50 * WHOLE;
const FIRST_REFUSED: u64 = WHOLE / 4;

/// The known share of noise, and the evidence for a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoiseRate {
    calls: u64,
    refused: u64,
    /// The evidence for a limit.
    score: u64,
    /// The number of the first call whose refusal is in the evidence.
    first: u64,
    /// The number of the first call that the share does not include yet.
    since: u64,
    /// How many calls had started when the last refusal was weighed.
    last: u64,
}

impl Default for NoiseRate {
    fn default() -> NoiseRate {
        NoiseRate { calls: FIRST_CALLS, refused: FIRST_REFUSED, score: 0, first: 0, since: 0, last: 0 }
    }
}

impl NoiseRate {
    /// Returns how many of a thousand calls are refused at any pace.
    pub(super) fn share(&self) -> u64 {
        (self.refused * WHOLE / self.calls).min(SHARE_MAX)
    }

    /// Returns the number of the first call whose refusal is in the evidence.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Weighs the refusal of the call with the number `before`. Returns true if the evidence for a
    /// limit suffices.
    pub(super) fn weigh(&mut self, before: u64, history: &History) -> bool {
        let share = self.share();
        let passed = before.saturating_sub(self.last);
        self.last = self.last.max(before + 1);
        let each = share + MARGIN + share / 3;
        self.score = self.score.saturating_sub(passed.saturating_mul(each));
        if self.score == 0 {
            self.first = before;
            if before >= self.since + CALLS_LEARNED {
                self.learn(history.refused(self.since..before));
                self.since = before;
            }
        }
        self.score += WHOLE.saturating_sub(each);
        // Where hardly any noise is known, one refusal suffices.
        self.score >= (WHOLE / 2 + 200 * share).min(5 * WHOLE / 2) + (60 * share).min(5 * WHOLE)
    }

    /// Ignores the refusal of this call and of those before it.
    pub(super) fn skip(&mut self, number: u64) {
        (self.last, self.since) = (self.last.max(number + 1), self.since.max(number + 1));
    }

    /// Records that a limit is suspected; the call with this number is the first that goes slower.
    /// If that is news, the refusals before the first in the evidence were noise.
    pub(super) fn met(&mut self, history: &History, number: u64, is_news: bool) {
        if is_news {
            self.learn(history.refused(self.since..self.first));
        }
        self.forget(number);
    }

    /// Records that it was a limit: so many of so many calls were refused that went slowly enough
    /// for it.
    pub(super) fn was_limit(&mut self, slow: (u64, u64), number: u64) {
        self.learn_anew(slow);
        self.forget(number);
    }

    /// Records that it was noise: so many of so many calls were refused, slow and fast.
    pub(super) fn was_noise(&mut self, (refused, calls): (u64, u64), number: u64) {
        if refused * WHOLE / calls.max(1) > 2 * self.share() + 50 {
            // So much more than before that earlier calls do not count.
            (self.calls, self.refused) = (0, 0);
        }
        self.learn((refused, calls.max(1)));
        self.forget(number);
    }

    /// Drops the evidence. The call with this number is the next that counts.
    fn forget(&mut self, number: u64) {
        (self.score, self.last, self.since) = (0, number, number);
    }

    /// Learns from calls that count as much as all before.
    fn learn_anew(&mut self, (refused, calls): (u64, u64)) {
        while self.calls > 2 * calls.max(1) * WHOLE {
            (self.calls, self.refused) = (self.calls / 2, self.refused / 2);
        }
        self.learn((refused, calls));
    }

    /// Counts calls, and refusals that were noise.
    fn learn(&mut self, (refused, calls): (u64, u64)) {
        self.refused += refused * WHOLE;
        self.calls += calls * WHOLE;
        while self.calls > CALLS_MAX {
            (self.calls, self.refused) = (self.calls / 2, self.refused / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weighs refusals of every `nth` call, and returns the call at which a limit was met.
    fn met_at(noise: &mut NoiseRate, nth: u64) -> Option<u64> {
        let history = History::default();
        (0..2_000).step_by(nth as usize).find(|number| noise.weigh(*number, &history))
    }

    #[test]
    fn a_few_refusals_suffice_at_first_one_where_there_is_no_noise_and_a_known_share_never_does() {
        assert_eq!(met_at(&mut NoiseRate::default(), 10), Some(20));
        let mut none = NoiseRate::default();
        none.was_limit((0, 1_000), 0);
        assert_eq!(met_at(&mut none, 10), Some(0));
        let mut known = NoiseRate::default();
        known.was_noise((100, 1_000), 0);
        assert!((90..=100).contains(&known.share()), "{}", known.share());
        assert_eq!(met_at(&mut known, 10), None);
    }

    #[test]
    fn a_larger_share_than_the_known_one_is_a_limit() {
        let mut known = NoiseRate::default();
        known.was_noise((100, 1_000), 0);
        let met = met_at(&mut known, 3).expect("a third is more than a tenth");
        assert!(met < 200, "{met}");
    }
}

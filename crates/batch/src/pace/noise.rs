//! Refusals that have nothing to do with the pace.
//!
//! Providers refuse some calls whatever the pace: what all their callers share is used up. A limit refuses a larger share of
//! the calls the faster they come; noise refuses the same share at any pace, and costs only itself. One refusal does not say
//! which of them it is. So refusals are weighed (a CUSUM test): each speaks for a limit, and each call that passes speaks
//! against it, by as much as the share that is known to be noise allows.

use super::history::History;

/// What weighs the same as one refusal.
const WHOLE: u64 = 1_000;

/// How much larger a share of refused calls must be than the noise to speak for a limit, of a thousand.
const MARGIN: u64 = 20;

/// How many calls a share is measured from at most: noise comes and goes.
const CALLS_MAX: u64 = 1_000 * WHOLE;

/// After how many calls something is learned of them while nothing happens.
const CALLS_LEARNED: u64 = 200;

/// A larger share than this is no noise.
const SHARE_MAX: u64 = 550;

/// What is thought before anything is known: a quarter of a refusal in fifty calls.
const FIRST_CALLS: u64 = 50 * WHOLE;
const FIRST_REFUSED: u64 = WHOLE / 4;

/// What is known of the noise.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoiseRate {
    calls: u64,
    refused: u64,
    /// What speaks for a limit.
    score: u64,
    /// The number of the call whose refusal was the first of those that are weighed.
    first: u64,
    /// The number of the first call of which nothing has been learned.
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
    /// How many of a thousand calls are refused whatever the pace.
    pub(super) fn share(&self) -> u64 {
        (self.refused * WHOLE / self.calls).min(SHARE_MAX)
    }

    /// The number of the call whose refusal was the first of those that are weighed.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Weighs the refusal of a call before which so many had started. Returns whether a limit was met.
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
        // Where hardly any noise is known, one refusal is enough.
        self.score >= (WHOLE / 2 + 200 * share).min(5 * WHOLE / 2) + (60 * share).min(5 * WHOLE)
    }

    /// The refusal of this call and of those before it says nothing.
    pub(super) fn skip(&mut self, number: u64) {
        (self.last, self.since) = (self.last.max(number + 1), self.since.max(number + 1));
    }

    /// A limit seems to be met; the call with this number is the first that goes slower. If that is news, what was refused before
    /// the first of its refusals was noise.
    pub(super) fn met(&mut self, history: &History, number: u64, is_news: bool) {
        if is_news {
            self.learn(history.refused(self.since..self.first));
        }
        self.forget(number);
    }

    /// It was a limit: so many of so many calls were refused that went slowly enough for it.
    pub(super) fn was_limit(&mut self, slow: (u64, u64), number: u64) {
        self.learn_anew(slow);
        self.forget(number);
    }

    /// It was noise: so many of so many calls were refused, slow and fast.
    pub(super) fn was_noise(&mut self, (refused, calls): (u64, u64), number: u64) {
        if refused * WHOLE / calls.max(1) > 2 * self.share() + 50 {
            // So much more than before that nothing before it counts.
            (self.calls, self.refused) = (0, 0);
        }
        self.learn((refused, calls.max(1)));
        self.forget(number);
    }

    /// The call with this number is the next that counts.
    fn forget(&mut self, number: u64) {
        (self.score, self.last, self.since) = (0, number, number);
    }

    /// Learns from calls that count for as much as all before.
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

    /// Weighs refusals of every `nth` call, and says at which call a limit was met.
    fn met_at(noise: &mut NoiseRate, nth: u64) -> Option<u64> {
        let history = History::default();
        (0..2_000).step_by(nth as usize).find(|number| noise.weigh(*number, &history))
    }

    #[test]
    fn a_few_refusals_are_enough_at_first_one_where_none_ever_came_and_a_known_share_is_never_too_much() {
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

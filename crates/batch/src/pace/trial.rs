//! Whether what was met is a limit.
//!
//! A limit refuses what comes too fast, so that calls pass once they come slower. Noise refuses the same share of them at any
//! pace. So a limit that seems to be met is heeded at once, and the calls that go slower then decide what it was.

use super::history::History;

/// From how many calls a share is measured at least.
const CALLS_MIN: u64 = 3;

/// From how many it is measured well.
const CALLS_MANY: u64 = 15;

/// So many trials in a row find the limit to be lower, unless more of the calls are refused each time, or more than this
/// share of a thousand.
const DEPTH_MAX: u32 = 2;
const DEPTH_MAX_ADVISED: u32 = 6;
const NOISE_BESIDE: u64 = 500;

/// From how many calls at the last pace what passes in a second is measured.
const LAST_MIN: u64 = 10;

/// How many calls decide, at least and at most.
const DECIDE_MIN: u64 = 10;
const DECIDE_MAX: u64 = 40;

/// So many refusals that all came in a row are no noise, whatever the trial says so far.
const IN_A_ROW: u64 = 6;

/// A share from this on, of a thousand, wants more calls: one in two is refused by chance and by a bucket of one alike.
const SHARE_LARGE: u64 = 350;

/// A larger share than this, of a thousand, is no noise.
pub(super) const NOISE_MAX: u64 = 700;

const UPPER: u64 = 300;

/// Calls that go hardly slower do not say what it was.
pub(super) const SLOWER_MIN: u64 = 1_050;

/// Calls that go slower since a limit seemed to be met.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowTrial {
    /// The number of the call whose refusal was the first.
    pub(super) first: u64,
    /// The number of the call whose refusal was too many.
    pub(super) alarm: u64,
    /// The number of the first of the calls that went too fast last, at one pace.
    pub(super) last: u64,
    /// The number of the first call that goes slower.
    pub(super) until: u64,
    /// The number of the first that goes as slowly as it seems right.
    pub(super) from: u64,
    /// How many times slower they go than those that went too fast, in thousandths.
    pub(super) slower: u64,
    /// And than calls went before the first of several trials in a row.
    pub(super) slower_in_all: u64,
    /// How many trials went before that found the limit to be lower.
    pub(super) depth: u32,
    /// Whether replies said how long to wait: a batch that waits until there is room for one call is refused the next,
    /// at any pace.
    pub(super) is_advised: bool,
    /// The calls that went too fast.
    pub(super) fast: Option<Fast>,
}

/// How many of the calls that went too fast were refused, and how many they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fast {
    all: (u64, u64),
    /// Of those that went too fast last, at one pace.
    last: (u64, u64),
}

/// What calls that go slower say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialVerdict {
    /// Too few of them have been answered.
    Open,
    /// It is a limit, and this is the share of calls that were refused all the same: so many of so many.
    Limit(u64, u64),
    /// It is noise, and this is the share.
    Noise(u64, u64),
    /// The limit is lower than thought.
    Lower,
}

impl SlowTrial {
    /// Counts the calls that went too fast, as long as all of them are kept.
    fn count_fast(&mut self, history: &History) -> Fast {
        if let Some(fast) = self.fast.filter(|_| !history.keeps(self.first + 1)) {
            return fast;
        }
        // Those after the refusal that spoke for a limit, or after the first one: what was waited for says nothing of the share.
        let after_alarm = history.refused(self.alarm + 1..self.until);
        let all = if after_alarm.1 >= CALLS_MANY {
            after_alarm
        } else {
            history.refused(self.first + 1..self.until)
        };
        *self.fast.insert(Fast { all, last: history.refused(self.last..self.until) })
    }

    /// How many times slower calls must go to tell noise from a limit, in thousandths. A bucket of one refuses half of the calls
    /// that come hardly too fast.
    fn enough(share: u64) -> u64 {
        SLOWER_MIN.max(1_120 * 1_000 / (1_000 - share.min(900)))
    }

    /// Judges by the calls before the number `decided`, where the share of a thousand is known to be noise.
    pub(super) fn judge(&mut self, history: &History, decided: u64, noise: u64) -> TrialVerdict {
        if decided < self.until {
            return TrialVerdict::Open;
        }
        let Fast { all: (fast_refused, fast_calls), last: (last_refused, last_calls) } =
            self.count_fast(history);
        let share = fast_refused * 1_000 / fast_calls.max(1);
        let known = noise + 10;
        if fast_calls >= CALLS_MANY && share <= known + (noise / 3).max(10) {
            return TrialVerdict::Noise(fast_refused, fast_calls);
        }
        if decided < self.from + CALLS_MIN {
            return TrialVerdict::Open;
        }
        // Until the first passes, they pay for those that went too fast.
        let Some(first) = history.first_passed(self.from..decided) else {
            let is_lower = decided >= self.from + IN_A_ROW;
            return if is_lower { TrialVerdict::Lower } else { TrialVerdict::Open };
        };
        let (refused, calls) = history.refused(first + 1..decided);
        // What a limit refuses of them if it is as low as what passed says.
        let passes = (1_000 - share.min(1_000)) * self.slower_in_all / 1_000;
        let by_limit = 1_000_u64.saturating_sub(passes).clamp(known, 1_000);
        let is_slow_enough =
            fast_calls >= CALLS_MIN && self.slower_in_all >= Self::enough(share) && !self.is_advised;
        // What passes in a second is the same at any pace above a limit.
        let last_share = last_refused * 1_000 / last_calls.max(1);
        let last_by_limit =
            1_000_u64.saturating_sub((1_000 - last_share) * self.slower / 1_000).clamp(known, 1_000);
        let may_be_noise = is_slow_enough
            && (last_calls < LAST_MIN || refused * 2_000 > calls * (last_share + last_by_limit))
            && share < NOISE_MAX
            && refused >= if share < SHARE_LARGE { 3 } else { 6 }
            && refused * 1_000 <= calls * (share * 2 + 150).min(share + UPPER);
        let noise = TrialVerdict::Noise(refused + fast_refused, calls + fast_calls);
        if may_be_noise && refused * 1_000 >= calls * share && refused * 2_000 > calls * (share + by_limit) {
            return noise;
        }
        let decide = if share < SHARE_LARGE { 6_000 / share.max(1) } else { 14 };
        let decide = decide.clamp(DECIDE_MIN, DECIDE_MAX);
        match calls >= decide {
            false => TrialVerdict::Open,
            true if may_be_noise && refused * 2_000 > calls * (share + by_limit) => noise,
            true if refused < 2 || refused * 1_000 <= calls * (known + 50) => {
                TrialVerdict::Limit(refused, calls)
            }
            // However slowly calls go, about as many are refused: that much is noise beside a limit.
            true if self.depth >= if self.is_advised { DEPTH_MAX_ADVISED } else { DEPTH_MAX }
                && refused * 1_000 <= calls * NOISE_BESIDE.min(last_share + 150) =>
            {
                TrialVerdict::Limit(refused, calls)
            }
            true => TrialVerdict::Lower,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::Tick;

    /// What a trial says of 100 calls, and of as many at half the pace, of which every so-manyth is refused.
    fn judged(fast: u64, slow: u64) -> TrialVerdict {
        let mut history = History::default();
        for number in 0..200_u64 {
            history.start(Tick::from_secs(number), false);
            let nth = if number < 100 { fast } else { slow };
            if number % nth == nth - 1 {
                history.refuse(number);
            }
        }
        let mut trial = SlowTrial {
            first: 0,
            alarm: 0,
            last: 0,
            until: 100,
            from: 100,
            slower: 2_000,
            slower_in_all: 2_000,
            depth: 0,
            is_advised: false,
            fast: None,
        };
        trial.judge(&history, 200, 0)
    }

    #[test]
    fn what_is_refused_at_half_the_pace_as_well_is_noise() {
        assert!(matches!(judged(5, 5), TrialVerdict::Noise(..)), "{:?}", judged(5, 5));
        assert!(matches!(judged(3, 3), TrialVerdict::Noise(..)), "{:?}", judged(3, 3));
    }

    #[test]
    fn what_passes_at_half_the_pace_was_a_limit() {
        assert!(matches!(judged(3, 1_000), TrialVerdict::Limit(0, _)), "{:?}", judged(3, 1_000));
    }

    #[test]
    fn where_nearly_all_are_refused_the_limit_is_lower() {
        assert_eq!(judged(2, 1), TrialVerdict::Lower);
    }
}

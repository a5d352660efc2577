//! The trial: whether refusals were caused by a limit.
//!
//! A limit refuses calls that come too fast, so that calls pass once they come slower. Noise
//! refuses the same share at any pace. So the pace respects a suspected limit at once, and the
//! slower calls then decide whether it is one.

use super::history::History;

/// The least calls that a share is measured from.
const CALLS_MIN: u64 = 3;

/// The number of calls from which a share is measured well.
const CALLS_MANY: u64 = 15;

/// This many trials in a row lower the limit, unless more of the calls are refused each time, or
/// more than this share, in thousandths.
const DEPTH_MAX: u32 = 2;
const DEPTH_MAX_ADVISED: u32 = 6;
const NOISE_BESIDE: u64 = 500;

/// The number of calls at the last pace from which the rate of passed calls is measured.
const LAST_MIN: u64 = 10;

/// How many calls decide a trial, at least and at most.
const DECIDE_MIN: u64 = 10;
const DECIDE_MAX: u64 = 40;

/// This many refusals in a row are not noise, whatever the trial shows so far.
const IN_A_ROW: u64 = 6;

/// A share from this on, in thousandths, needs more calls: noise and a bucket of one both refuse
/// every second call.
const SHARE_LARGE: u64 = 350;

/// A larger share than this, in thousandths, is not noise.
pub(super) const NOISE_MAX: u64 = 700;

/// How much larger the share of slow calls may be than that of fast ones to be noise, in
/// thousandths.
const UPPER: u64 = 300;

/// Calls that are hardly slower decide nothing.
pub(super) const SLOWER_MIN: u64 = 1_050;

/// Calls that go slower since a limit was suspected.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowTrial {
    /// The number of the call with the first refusal.
    pub(super) first: u64,
    /// The number of the call whose refusal raised the suspicion.
    pub(super) alarm: u64,
    /// The number of the first of the last calls that went too fast, at one pace.
    pub(super) last: u64,
    /// The number of the first call that goes slower.
    pub(super) until: u64,
    /// The number of the first call at the final slower pace.
    pub(super) from: u64,
    /// How many times slower they go than those that went too fast, in thousandths.
    pub(super) slower: u64,
    /// And than calls went before the first of several trials in a row.
    pub(super) slower_in_all: u64,
    /// How many earlier trials lowered the limit.
    pub(super) depth: u32,
    /// True if replies advised how long to wait: a batch that waits until there is room for one
    /// call is refused the next, at any pace.
    pub(super) is_advised: bool,
    /// The calls that went too fast.
    pub(super) fast: Option<Fast>,
}

/// How many of the calls that went too fast were refused, and how many there were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fast {
    all: (u64, u64),
    /// Of the last of them, at one pace.
    last: (u64, u64),
}

/// The verdict of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialVerdict {
    /// Too few slower calls have been answered.
    Open,
    /// The refusals were caused by a limit; so many of so many slower calls were refused all the
    /// same.
    Limit(u64, u64),
    /// The refusals were noise, with this share.
    Noise(u64, u64),
    /// The limit is lower than estimated.
    Lower,
}

impl SlowTrial {
    /// Counts the calls that went too fast, as long as all of them are in the history.
    fn count_fast(&mut self, history: &History) -> Fast {
        if let Some(fast) = self.fast.filter(|_| !history.contains(self.first + 1)) {
            return fast;
        }
        // Only the calls after the refusal that raised the suspicion, or after the first one: a
        // call that was waited for biases the share.
        let after_alarm = history.refused(self.alarm + 1..self.until);
        let all = if after_alarm.1 >= CALLS_MANY {
            after_alarm
        } else {
            history.refused(self.first + 1..self.until)
        };
        *self.fast.insert(Fast { all, last: history.refused(self.last..self.until) })
    }

    /// Returns how many times slower calls must go to distinguish noise from a limit, in
    /// thousandths. A bucket of one refuses half of the calls that come hardly too fast.
    fn enough(share: u64) -> u64 {
        SLOWER_MIN.max(1_120 * 1_000 / (1_000 - share.min(900)))
    }

    /// Judges by the calls before the number `decided`, where `noise` is the known share of noise
    /// in thousandths.
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
        // Until the first of them passes, they pay for those that went too fast.
        let Some(first) = history.first_passed(self.from..decided) else {
            let is_lower = decided >= self.from + IN_A_ROW;
            return if is_lower { TrialVerdict::Lower } else { TrialVerdict::Open };
        };
        let (refused, calls) = history.refused(first + 1..decided);
        // The share that a limit would refuse of them if it is as low as the passed calls indicate.
        let passes = (1_000 - share.min(1_000)) * self.slower_in_all / 1_000;
        let by_limit = 1_000_u64.saturating_sub(passes).clamp(known, 1_000);
        let is_slow_enough =
            fast_calls >= CALLS_MIN && self.slower_in_all >= Self::enough(share) && !self.is_advised;
        // Above a limit, the rate of passed calls is the same at any pace.
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
            // However slowly calls go, about as many are refused: that share is noise beside a
            // limit.
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

    /// Returns the verdict on 100 calls, and as many at half the pace, of which every nth is
    /// refused.
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
    fn refusals_at_half_the_pace_as_well_are_noise() {
        assert!(matches!(judged(5, 5), TrialVerdict::Noise(..)), "{:?}", judged(5, 5));
        assert!(matches!(judged(3, 3), TrialVerdict::Noise(..)), "{:?}", judged(3, 3));
    }

    #[test]
    fn refusals_that_end_at_half_the_pace_were_a_limit() {
        assert!(matches!(judged(3, 1_000), TrialVerdict::Limit(0, _)), "{:?}", judged(3, 1_000));
    }

    #[test]
    fn a_limit_is_lower_if_nearly_all_slower_calls_are_refused() {
        assert_eq!(judged(2, 1), TrialVerdict::Lower);
    }
}

//! The pace: how fast calls start against a provider whose limits are not known.
//!
//! Refusals are weighed before the pace reacts (`noise.rs`): providers refuse some calls at any
//! pace. If refusals indicate a limit, it is measured (`estimate.rs`), calls go slower, and those
//! calls are a trial (`trial.rs`): if as many of them are refused as before, it was noise, and the
//! earlier pace is restored.

mod advertised;
mod estimate;
mod gauge;
mod history;
mod noise;
mod ramp;
mod rate;
mod saturation;
mod trial;

use tollgate::{Span, Tick};
use tollgate_provider::LimitReading;

use estimate::LimitEstimate;
use history::History;
use noise::NoiseRate;
use saturation::StartCounts;
use trial::{SlowTrial, TrialVerdict};

pub use rate::PaceRate;

/// How late a timer may fire. Starts that were due meanwhile happen then; otherwise a thousand a
/// second would be the most.
const TIMER: Span = Span::from_millis(2);

/// If more than this share is refused, in thousandths, calls go at this part of the measured limit
/// until the trial has confirmed it: so few calls determine the rate.
const MANY_REFUSED: u64 = 150;
const HELD_IF_MANY: u64 = 820;

/// By how much the noise must exceed the known noise, in thousandths, for an earlier measurement to
/// be doubted.
const NOISE_NEWS: u64 = 10;

/// From this share on, in thousandths, noise is tested repeatedly, by calls that go so many times
/// slower.
const NOISE_DOUBTED: u64 = 150;
const DOUBTED_SLOWER: u64 = 3;

/// The number of calls between two such tests, at first and at most.
const DOUBTED_FIRST: u64 = 120;
const DOUBTED_LAST: u64 = 2_000;

/// The most noise that calls on trial compensate for, in thousandths.
const NOISE_ON_TRIAL: u64 = 100;

/// This many calls after the first ones determine why some of the first were refused.
const OPENING_CALLS: u64 = 8;

/// If this many of the first calls are refused, all at their end, a bucket was empty.
const OPENING_REST: u64 = 3;

/// This many calls determine whether nearly all pass.
const PASSING_CALLS: u64 = 8;

/// If this many calls in a row are refused, every call is.
const RUN: u64 = 6;

/// If that lasts this long, it is not evidence about the pace: a window of the provider may be
/// shorter.
const RUN_LASTS: Span = Span::from_secs(2);

/// If it lasted this long before calls pass again, it was an outage.
const OUTAGE_LASTS: Span = Span::from_secs(5);

/// After an outage this many calls must pass before another one is recognised.
const RECOVERED_CALLS: u64 = 300;

/// The load of a call on its provider: one call, and its tokens.
///
/// ```
/// use tollgate_batch::pace::Load;
///
/// assert!(Load::tokens(2_000) > Load::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load {
    tokens: u64,
}

impl Load {
    /// Returns the load of one call of about this many tokens; 0 if the number is not known.
    pub const fn tokens(tokens: u64) -> Load {
        Load { tokens }
    }

    fn sums(self) -> StartCounts {
        [1, self.tokens]
    }
}

/// A call that has started, to be passed back with its reply.
///
/// # Examples
///
/// ```
/// use tollgate::Tick;
/// use tollgate_batch::pace::{Load, Pace};
///
/// let mut pace = Pace::default();
/// let start = pace.start(Tick::from_secs(10), Load::tokens(500), false);
/// assert_eq!((start.load(), pace.in_flight()), (Load::tokens(500), 1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PaceStart {
    at: Tick,
    before: StartCounts,
    load: Load,
    /// How often a limit had been met before the call.
    epoch: u64,
}

impl PaceStart {
    /// Returns the load of the call.
    pub fn load(&self) -> Load {
        self.load
    }

    /// Returns the number of the call, which is how many started before it.
    fn number(&self) -> u64 {
        self.before[0]
    }
}

/// The pace of one scope.
///
/// ```
/// use tollgate::{Span, Tick};
/// use tollgate_batch::pace::{Load, Pace};
///
/// let (mut pace, now, load) = (Pace::default(), Tick::from_secs(10), Load::tokens(500));
/// assert_eq!(pace.ready(now, load), now);
/// let start = pace.start(now, load, false);
/// pace.accepted(now + Span::from_secs(2), &start, &[]);
/// assert_eq!(pace.latency(), Some(Span::from_secs(2)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pace {
    estimate: LimitEstimate,
    noise: NoiseRate,
    history: History,
    /// The trial of slower calls, and the estimate from before it.
    trial: Option<(SlowTrial, Box<LimitEstimate>)>,
    /// True if some of the first calls, which started together, were refused and it is not known
    /// yet why.
    is_opening: bool,
    /// The number of the first call of a run of refusals, and the length of the run.
    run: Option<(u64, u64)>,
    /// True if the reply to one of them advised how long to wait.
    is_run_advised: bool,
    /// How many calls had passed when the last outage was over.
    recovered: u64,
    /// The number of the call at which much noise is tested, and the number of calls until the next
    /// test.
    doubted: Option<(u64, u64)>,
    /// How often a limit was met.
    epoch: u64,
    accepted: u64,
    /// How long a refusal takes to arrive.
    refusal: Span,
    /// The pace at which the limit was met.
    too_fast: Option<PaceRate>,
    /// That pace at the first of several times in a row.
    at_first: Option<PaceRate>,
}

impl Pace {
    /// Returns the estimated limit of calls, once a refusal has shown one.
    pub fn calls(&self) -> Option<PaceRate> {
        self.estimate.calls()
    }

    /// Returns the estimated limit of tokens, once a refusal has shown one.
    pub fn tokens(&self) -> Option<PaceRate> {
        self.estimate.tokens()
    }

    /// Returns how many calls are in flight.
    pub fn in_flight(&self) -> u64 {
        self.estimate.in_flight()
    }

    /// Returns the average latency of calls that pass, if it is known.
    pub fn latency(&self) -> Option<Span> {
        self.estimate.latency()
    }

    /// Returns when a call may start, which may be now.
    pub fn ready(&mut self, now: Tick, load: Load) -> Tick {
        self.estimate.ready(now, load)
    }

    /// Starts a call, which may be the first after a cooldown.
    pub fn start(&mut self, now: Tick, load: Load, after_cooldown: bool) -> PaceStart {
        self.judge(now);
        self.doubt_noise();
        let start = PaceStart { at: now, before: self.estimate.started(), load, epoch: self.epoch };
        self.history.start(now, after_cooldown);
        // Noise takes nothing from a limit, so more calls may start; but calls on trial are to show
        // whether it is noise.
        let noise =
            if self.trial.is_some() { self.noise.share().min(NOISE_ON_TRIAL) } else { self.noise.share() };
        self.estimate.start(now, load, noise);
        start
    }

    /// Delays calls until `until`, for a reason that is not evidence about the pace.
    pub fn pause(&mut self, until: Tick) {
        self.estimate.pause(until);
    }

    /// Records that a call ended without any evidence.
    pub fn ended(&mut self) {
        self.estimate.ended();
    }

    /// Records that a call passed.
    pub fn accepted(&mut self, now: Tick, start: &PaceStart, meters: &[LimitReading]) {
        self.accepted += 1;
        if let Some((first, _)) = self.run.take_if(|(first, _)| start.number() >= *first) {
            self.recover(first, start.number());
        }
        self.estimate.accepted(now, start, meters);
    }

    /// Records that a call was refused, because of a limit or an overload. Returns true if the
    /// evidence for a limit suffices.
    pub fn refused(
        &mut self,
        now: Tick,
        start: &PaceStart,
        meters: &[LimitReading],
        is_advised: bool,
    ) -> bool {
        let took = now.since(start.at).max(Span::from_millis(1)).as_micros();
        let known = self.refusal.as_micros();
        self.refusal = Span::from_micros(if known == 0 { took } else { (known * 3 + took) / 4 });
        self.history.refuse(start.number());
        self.estimate.refused(now, start, meters);
        self.count_run(start.number());
        self.is_run_advised = is_advised || self.is_run_advised && self.run() > 1;
        if self.is_refusing_all() && self.run_lasts(start.number()) >= RUN_LASTS {
            self.noise.skip(start.number());
            self.estimate.discount(start);
            return false;
        }
        if start.epoch != self.epoch {
            if self.estimate.met_again(start)
                && let Some((trial, _)) = &mut self.trial
            {
                let pace = self.estimate.pace();
                (trial.slower, trial.slower_in_all) =
                    (slower(self.too_fast, pace), slower(self.at_first, pace));
                trial.from = self.estimate.started()[0];
            }
            return false;
        }
        if is_advised && let Some((trial, _)) = &mut self.trial {
            trial.is_advised = true;
        }
        if !is_advised && self.trial.is_none() && self.estimate.is_in_first_burst(start) {
            self.is_opening = true;
        }
        if self.is_opening {
            match self.judge_opening(now) {
                TrialVerdict::Lower => return true,
                TrialVerdict::Limit(..) => {}
                TrialVerdict::Open | TrialVerdict::Noise(..) => {
                    self.estimate.discount(start);
                    return false;
                }
            }
        }
        let is_over = self.noise.weigh(start.number(), &self.history);
        let is_met = match self.judge(now) {
            Some(TrialVerdict::Noise(..) | TrialVerdict::Open) => false,
            Some(TrialVerdict::Lower) => true,
            Some(TrialVerdict::Limit(..)) | None => is_over,
        };
        if !is_met {
            self.estimate.discount(start);
        }
        is_met
    }

    /// Records that a call passed after all calls since the number `first` were refused. If that
    /// took long, it was an outage, and the earlier pace is restored, unless the provider advised
    /// how long to wait. That may be wrong where hardly any call passes, so it is not done again
    /// soon.
    fn recover(&mut self, first: u64, number: u64) {
        if self.history.span(first, number) < OUTAGE_LASTS || self.accepted < self.recovered + RECOVERED_CALLS
        {
            return;
        }
        if let Some((_, before)) =
            self.trial.take_if(|(trial, _)| trial.first + RUN >= first && !self.is_run_advised)
        {
            self.recovered = self.accepted;
            self.estimate = before.resume(&self.estimate);
            self.noise.skip(self.started());
        }
    }

    /// Returns true if nearly all of the last calls passed.
    pub fn is_passing(&self) -> bool {
        let number = self.started();
        let (refused, calls) = self.history.refused(number.saturating_sub(PASSING_CALLS)..number);
        self.accepted >= PASSING_CALLS && refused * 4 <= calls
    }

    /// Returns how many calls in a row were refused.
    pub fn run(&self) -> u64 {
        self.run.map_or(0, |(_, calls)| calls)
    }

    /// Returns true if every call is refused, so that the pace is not the reason.
    pub fn is_refusing_all(&self) -> bool {
        self.run() >= RUN
    }

    /// Returns the time from the start of the first refused call of the run to that of this one.
    fn run_lasts(&self, number: u64) -> Span {
        self.run.map_or(Span::ZERO, |(first, _)| self.history.span(first, number))
    }

    /// Ends the run of refusals: it is not known any more that every call is refused.
    pub fn end_run(&mut self) {
        if let Some((first, _)) = self.run.take() {
            self.recover(first, self.started().saturating_sub(1));
        }
    }

    /// Counts a refusal in the run. A call that started between the first of the run and this one,
    /// and was not refused by now, has passed: refusals all take about as long.
    fn count_run(&mut self, number: u64) {
        let (first, calls) = self.run.unwrap_or((number, 0));
        let between = self.history.refused(first + 1..number);
        self.run = Some(if between.1 > between.0 { (number, 1) } else { (first, calls + 1) });
    }

    /// Records that the refusal of a call met a limit. The scope cools down for `cooldown`, and the
    /// provider advised to wait for `advice`.
    pub fn met(&mut self, now: Tick, start: &PaceStart, cooldown: Span, advice: Span) {
        let first = self.noise.first().min(start.number());
        let is_news = self.trial.is_none();
        let chain = self.trial.as_ref().map(|(trial, _)| *trial);
        let before = self.trial.take().map_or_else(|| Box::new(self.estimate.clone()), |(_, before)| before);
        let was = self.running_at();
        self.too_fast = was;
        if is_news {
            self.at_first = was;
        }
        self.estimate.met(now, start, cooldown, advice, was, &self.history);
        let (refused, calls) = self.history.refused(first + 1..self.started());
        if refused >= 3 && refused * 1_000 > calls * MANY_REFUSED {
            self.estimate.held = Some(HELD_IF_MANY);
        }
        let pace = self.estimate.pace();
        let (slower, slower_in_all) = (slower(was, pace), slower(self.at_first, pace));
        let from = self.started();
        // If this is not the first trial, all calls before it are compared with those that follow.
        let (first, alarm) = chain.map_or((first, start.number()), |it| (it.first, it.first));
        let trial = SlowTrial {
            first,
            alarm,
            last: chain.map_or(start.number() + 1, |it| it.from),
            until: from,
            from,
            slower,
            slower_in_all,
            depth: chain.map_or(0, |it| it.depth + 1),
            is_advised: false,
            fast: None,
        };
        self.trial = (slower_in_all >= trial::SLOWER_MIN).then_some((trial, before));
        if self.trial.is_none() {
            self.estimate.held = None;
        }
        self.epoch += 1;
        self.noise.met(&self.history, self.started(), is_news);
    }

    /// Returns how many calls have started.
    fn started(&self) -> u64 {
        self.estimate.started()[0]
    }

    /// Returns the number of the first call that may still be refused: refusals all take about as
    /// long.
    fn decided(&self, now: Tick) -> u64 {
        self.history.since(now - Span::from_micros(self.refusal.as_micros() * 3 / 2))
    }

    /// Returns how fast calls start, which may be slower than the pace allows.
    fn running_at(&self) -> Option<PaceRate> {
        self.estimate.pace().map(|pace| pace.min(self.history.rate(self.started())))
    }

    /// Puts calls on trial where much is considered noise: a limit that was mistaken for noise
    /// would be met for ever.
    fn doubt_noise(&mut self) {
        let number = self.started();
        if self.noise.share() < NOISE_DOUBTED {
            self.doubted = None;
            return;
        }
        let (at, after) = *self.doubted.get_or_insert((number + DOUBTED_FIRST, DOUBTED_FIRST));
        if number < at || self.trial.is_some() {
            return;
        }
        self.doubted = Some((number + after * 2, (after * 2).min(DOUBTED_LAST)));
        let Some(was) = self.running_at() else { return };
        let before = Box::new(self.estimate.clone());
        self.estimate.set_trial_pace(was.scaled(1, DOUBTED_SLOWER));
        (self.too_fast, self.at_first) = (Some(was), Some(was));
        let first = number.saturating_sub(DOUBTED_FIRST);
        let slower = DOUBTED_SLOWER * 1_000;
        let trial = SlowTrial {
            first,
            alarm: first,
            last: first,
            until: number,
            from: number,
            slower,
            slower_in_all: slower,
            depth: 0,
            is_advised: false,
            fast: None,
        };
        self.trial = Some((trial, before));
    }

    /// Judges why some of the first calls were refused, by those that followed at no lower pace: a
    /// small bucket was empty only then, and noise refuses as many as before.
    fn judge_opening(&mut self, now: Tick) -> TrialVerdict {
        let decided = self.decided(now);
        let (before, calls_before) = self.history.refused(0..ramp::FIRST);
        let (after, calls) = self.history.refused(ramp::FIRST..decided.min(3 * ramp::FIRST));
        // A bucket lets the first of them pass and refuses the rest, which noise hardly ever does.
        let is_rest =
            before >= OPENING_REST && self.history.refused(ramp::FIRST - before..ramp::FIRST).0 == before;
        let is_sure = is_rest || before * 1_000 >= ramp::FIRST * trial::NOISE_MAX;
        if calls < OPENING_CALLS && !is_sure {
            return TrialVerdict::Open;
        }
        self.is_opening = false;
        if is_sure {
            return TrialVerdict::Lower;
        }
        let (share, share_before) = (after * 1_000 / calls, before * 1_000 / calls_before.max(1));
        if share >= trial::NOISE_MAX.min(share_before + 250) {
            return TrialVerdict::Lower;
        }
        if share * 3 < share_before {
            self.noise.skip(self.started());
            return TrialVerdict::Limit(after, calls);
        }
        self.noise.was_noise((before + after, calls_before + calls), self.started());
        TrialVerdict::Noise(before + after, calls_before + calls)
    }

    /// Ends the trial if enough calls determine its result. Returns the verdict.
    fn judge(&mut self, now: Tick) -> Option<TrialVerdict> {
        let decided = self.decided(now);
        let (trial, _) = self.trial.as_mut()?;
        let (verdict, trial) = (trial.judge(&self.history, decided, self.noise.share()), *trial);
        let number = self.started();
        match verdict {
            TrialVerdict::Open | TrialVerdict::Lower => return Some(verdict),
            TrialVerdict::Limit(refused, calls) => {
                match self.doubted {
                    Some(_) => self.estimate.trust(self.history.passed(trial.first..trial.until)),
                    None => self.estimate.settle_tail(),
                }
                self.noise.was_limit((refused, calls), number);
            }
            TrialVerdict::Noise(refused, calls) => {
                let known = self.noise.share();
                self.noise.was_noise((refused, calls), number);
                if let Some((_, before)) = self.trial.take() {
                    self.estimate = before.resume(&self.estimate);
                }
                if self.noise.share() > 2 * known + NOISE_NEWS {
                    // An earlier measurement may have been noise as well.
                    self.estimate.doubt();
                }
            }
        }
        self.estimate.held = None;
        self.trial = None;
        Some(verdict)
    }
}

/// Returns how many times slower one pace is than another, in thousandths.
fn slower(fast: Option<PaceRate>, slow: Option<PaceRate>) -> u64 {
    let times = |(fast, slow): (PaceRate, PaceRate)| {
        u128::from(fast.millionths()) * 1_000 / u128::from(slow.millionths())
    };
    fast.zip(slow).map_or(0, |paces| u64::try_from(times(paces)).unwrap_or(u64::MAX).min(1_000_000))
}

//! The pace: how fast to call a provider of whom nothing is known.
//!
//! Refusals are weighed before anything follows from them (`noise.rs`): providers refuse some calls whatever the pace. If they speak
//! for a limit, it is measured (`estimate.rs`), calls go slower, and those calls are put on trial (`trial.rs`): if as many of them are
//! refused as before, it was noise, and the pace is again what it was.

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

/// How late a timer may ring. What should have started meanwhile starts then, or a thousand a second were the most there is.
const TIMER: Span = Span::from_millis(2);

/// If more than this share is refused, of a thousand, calls go at this part of what was found until it has proved to be a limit: so
/// few calls tell the rate.
const MANY_REFUSED: u64 = 150;
const HELD_IF_MANY: u64 = 820;

/// By how much more noise there must be than was known, of a thousand, to doubt what was found before.
const NOISE_NEWS: u64 = 10;

/// From which share on, of a thousand, noise is doubted again and again, by calls that go so many times slower.
const NOISE_DOUBTED: u64 = 150;
const DOUBTED_SLOWER: u64 = 3;

/// After how many calls that is, at first and at last.
const DOUBTED_FIRST: u64 = 120;
const DOUBTED_LAST: u64 = 2_000;

/// How much noise is made up for by calls on trial, at most.
const NOISE_ON_TRIAL: u64 = 100;

/// So many calls after the first tell why some of the first were refused.
const OPENING_CALLS: u64 = 8;

/// If so many calls at the end of the first are refused, and none before them, a bucket was empty.
const OPENING_REST: u64 = 3;

/// So many calls tell whether nearly all pass.
const PASSING_CALLS: u64 = 8;

/// If so many calls in a row are refused, all are.
const RUN: u64 = 6;

/// If that goes on for this long, it says nothing of the pace: a window of the provider may be shorter.
const RUN_LASTS: Span = Span::from_secs(2);

/// If it went on for this long, and then calls pass, it was an outage.
const OUTAGE_LASTS: Span = Span::from_secs(5);

/// After an outage so many calls pass before another one is believed.
const RECOVERED_CALLS: u64 = 300;

/// What a call puts on its provider: one call, and so many tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load {
    tokens: u64,
}

impl Load {
    /// One call of about so many tokens; 0 if that is not known.
    pub const fn tokens(tokens: u64) -> Load {
        Load { tokens }
    }

    fn sums(self) -> StartCounts {
        [1, self.tokens]
    }
}

/// A call that has started, to be given back with its reply.
#[derive(Clone, Copy, Debug)]
pub struct PaceStart {
    at: Tick,
    before: StartCounts,
    load: Load,
    /// How often a limit had been met.
    epoch: u64,
}

impl PaceStart {
    /// What the call puts on its provider.
    pub fn load(&self) -> Load {
        self.load
    }

    /// How many calls had started before.
    fn number(&self) -> u64 {
        self.before[0]
    }
}

/// The pace of one scope.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    estimate: LimitEstimate,
    noise: NoiseRate,
    history: History,
    /// What calls that go slower are to show, and the estimate as it was before.
    trial: Option<(SlowTrial, Box<LimitEstimate>)>,
    /// Some of the first calls, which started together, were refused, and it is not known yet why.
    is_opening: bool,
    /// The number of the call that was the first of those in a row that were refused, and how many they are.
    run: Option<(u64, u64)>,
    /// Whether the reply to one of them said how long to wait.
    is_run_advised: bool,
    /// How many calls had passed when the last outage was over.
    recovered: u64,
    /// The number of the call at which much noise is doubted, and after how many more it is again.
    doubted: Option<(u64, u64)>,
    /// How often a limit was met.
    epoch: u64,
    accepted: u64,
    /// How long a refusal takes to come.
    refusal: Span,
    /// The pace at which the limit was met.
    too_fast: Option<PaceRate>,
    /// And at the first of several times in a row.
    at_first: Option<PaceRate>,
}

impl Pace {
    /// The rate of calls that is thought to be the limit, once a refusal has shown one.
    pub fn calls(&self) -> Option<PaceRate> {
        self.estimate.calls()
    }

    /// The rate of tokens that is thought to be the limit, once a refusal has shown one.
    pub fn tokens(&self) -> Option<PaceRate> {
        self.estimate.tokens()
    }

    /// How many calls are under way.
    pub fn in_flight(&self) -> u64 {
        self.estimate.in_flight()
    }

    /// How long a call takes that passes, as far as that is known.
    pub fn latency(&self) -> Option<Span> {
        self.estimate.latency()
    }

    /// When a call may start, which may be now.
    pub fn ready(&mut self, now: Tick, load: Load) -> Tick {
        self.estimate.ready(now, load)
    }

    /// A call starts, which may be the first after a cooldown.
    pub fn start(&mut self, now: Tick, load: Load, after_cooldown: bool) -> PaceStart {
        self.judge(now);
        self.doubt_noise();
        let start = PaceStart { at: now, before: self.estimate.started(), load, epoch: self.epoch };
        self.history.start(now, after_cooldown);
        // What is refused anyway takes nothing from a limit; but calls on trial are to show whether that is so.
        let noise =
            if self.trial.is_some() { self.noise.share().min(NOISE_ON_TRIAL) } else { self.noise.share() };
        self.estimate.start(now, load, noise);
        start
    }

    /// No call starts before `until`, for a reason that says nothing of the pace.
    pub fn pause(&mut self, until: Tick) {
        self.estimate.pause(until);
    }

    /// A call has ended, and nothing is to be learned from that.
    pub fn ended(&mut self) {
        self.estimate.ended();
    }

    /// A call was answered.
    pub fn accepted(&mut self, now: Tick, start: &PaceStart, meters: &[LimitReading]) {
        self.accepted += 1;
        if let Some((first, _)) = self.run.take_if(|(first, _)| start.number() >= *first) {
            self.recover(first, start.number());
        }
        self.estimate.accepted(now, start, meters);
    }

    /// A call was refused, because of a limit or because the provider has too much to do. Returns whether enough speaks for a
    /// limit that was met.
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
        if !is_advised && self.trial.is_none() && self.estimate.is_of_the_first(start) {
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

    /// The first call passes after all were refused since the one with the number `first`. If that took long, it was an outage,
    /// and the pace is again what it was before, unless the provider said how long to wait. That may be wrong where hardly
    /// anything passes, so it is not done again soon.
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

    /// Whether nearly all of the last calls pass.
    pub fn is_passing(&self) -> bool {
        let number = self.started();
        let (refused, calls) = self.history.refused(number.saturating_sub(PASSING_CALLS)..number);
        self.accepted >= PASSING_CALLS && refused * 4 <= calls
    }

    /// How many calls in a row were refused, with none passing in between.
    pub fn run(&self) -> u64 {
        self.run.map_or(0, |(_, calls)| calls)
    }

    /// Whether every call is refused, so that it is not the pace that is wrong.
    pub fn is_refusing_all(&self) -> bool {
        self.run() >= RUN
    }

    /// How long the calls in a row took to start, up to this one.
    fn run_lasts(&self, number: u64) -> Span {
        self.run.map_or(Span::ZERO, |(first, _)| self.history.span(first, number))
    }

    /// It is not known any more that every call is refused.
    pub fn end_run(&mut self) {
        if let Some((first, _)) = self.run.take() {
            self.recover(first, self.started().saturating_sub(1));
        }
    }

    /// Counts a refusal. What started before it and after the first of the run, and was not refused, has passed: refusals all
    /// take about as long.
    fn count_run(&mut self, number: u64) {
        let (first, calls) = self.run.unwrap_or((number, 0));
        let between = self.history.refused(first + 1..number);
        self.run = Some(if between.1 > between.0 { (number, 1) } else { (first, calls + 1) });
    }

    /// A limit was met, by a call that was refused. Those who share the scope now wait for `cooldown`, and the
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
        // All that went before is compared with what comes next, if it is not the first trial.
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

    /// How many calls have started.
    fn started(&self) -> u64 {
        self.estimate.started()[0]
    }

    /// The number of the first call that may still be refused: refusals all take about as long.
    fn decided(&self, now: Tick) -> u64 {
        self.history.since(now - Span::from_micros(self.refusal.as_micros() * 3 / 2))
    }

    /// How fast calls start, which may be slower than they might.
    fn running_at(&self) -> Option<PaceRate> {
        self.estimate.pace().map(|pace| pace.min(self.history.rate(self.started())))
    }

    /// Puts calls on trial where many are thought to be noise: a limit that was taken for noise would be run into for ever.
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
        self.estimate.try_at(was.scaled(1, DOUBTED_SLOWER));
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

    /// Judges why some of the first calls were refused, by those that followed at no lower pace: a small bucket was empty then,
    /// and noise refuses as many as before.
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

    /// Ends the trial that is on, if enough calls say what it was. Returns what they say.
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
                    // What was taken for a limit before may have been noise as well.
                    self.estimate.doubt();
                }
            }
        }
        self.estimate.held = None;
        self.trial = None;
        Some(verdict)
    }
}

/// How many times slower one pace is than another, in thousandths.
fn slower(fast: Option<PaceRate>, slow: Option<PaceRate>) -> u64 {
    let times = |(fast, slow): (PaceRate, PaceRate)| {
        u128::from(fast.millionths()) * 1_000 / u128::from(slow.millionths())
    };
    fast.zip(slow).map_or(0, |paces| u64::try_from(times(paces)).unwrap_or(u64::MAX).min(1_000_000))
}

//! The estimate of the provider's limit.
//!
//! A refusal because of a limit shows one thing exactly: the provider had nothing left when that
//! call arrived. What it let pass between two such instants is what its bucket was refilled with,
//! so that amount divided by the time is its rate, whatever the size of the bucket. So the rate is
//! measured: the pace starts a little below it, and rises slowly until the next refusal, which is
//! the next measurement. Each measurement that confirms the last makes the time until the next
//! longer. A refusal that comes early measures over a short time, and so finds at once a limit that
//! has fallen; if none comes for long, the limit has risen, and the pace rises ever faster.
//!
//! Until the first refusal the pace doubles with every round trip. Where replies advertise the
//! limits, the pace follows them instead, until the calls that pass contradict them.
//!
//! The provider does not report whether calls or tokens were too many. Both are measured, and the
//! one with the same result each time is the limit; the other one varies with the sizes of the
//! calls, and hardly delays any call.

use tollgate::{Span, Tick};
use tollgate_provider::{LimitReading, LimitUnit};

use super::gauge::{News, ProbeDelay, UnitPace};
use super::history::History;
use super::ramp::{self, Ramp};
use super::saturation::{Measured, Saturation, StartCounts};
use super::{Load, PaceRate, PaceStart};

/// Fewer calls than this are no measurement.
const CALLS_MIN: u64 = 4;

/// This many calls that passed since a burst was refused determine the rate.
const CALLS_BURST: u64 = 16;

/// This many refusals are evidence, however few calls passed.
const REFUSALS_MANY: u64 = 10;

/// How often in a row the other unit must look like the limit before it is taken for the limit.
const DOUBTS_MAX: u32 = 3;

/// The shortest term after which a faster pace is tried.
const TERM_MIN: Span = Span::from_secs(1);

/// A guess doubles no faster than in this time.
const ROUND_TRIP_MIN: Span = Span::from_millis(500);

/// Nor slower, however few calls passed: after an outage few calls are no evidence.
const ROUND_TRIP_MAX: Span = Span::from_secs(30);

/// The slowest guess, for the same reason.
const SLOWEST_GUESS: PaceRate = PaceRate::of(1, Span::from_secs(60));

/// The longest term of a limit that few calls have measured.
const TERM_UNSURE: Span = Span::from_secs(60);

/// The longest term is the maximum of this, this many round trips, and the time of this many calls.
const TERM_MAX: Span = Span::from_secs(10);
const TERM_ROUND_TRIPS: u64 = 15;
const TERM_CALLS: u64 = 170;

/// The term of a window, in round trips: each time a faster pace is tried costs all calls in
/// flight.
const TERM_WINDOW_ROUND_TRIPS: u64 = 40;

/// The part of the measured limit at which calls go on trial, in thousandths; and if an earlier
/// measurement confirms it.
const HELD: u64 = 930;
const HELD_SURE: u64 = 980;

/// The knowledge about the limits of one scope.
#[derive(Clone, Debug)]
pub(super) struct LimitEstimate {
    gauges: [UnitPace; 2],
    ramp: Option<Ramp>,
    saturation: Option<Saturation>,
    started: StartCounts,
    in_flight: u64,
    latency: Option<Span>,
    last_start: Tick,
    /// True if the pace delayed a call since the last start.
    held_back: bool,
    growth: Span,
    term: Span,
    cooldown: Span,
    first_start: Tick,
    /// The unit that is taken for the limit, and how often in a row the other one looked like it.
    suspect: usize,
    doubts: u32,
    /// How many calls had started when the last cooldown began.
    begun: u64,
    /// While the pace must not rise: the part of it at which calls go, in thousandths.
    pub(super) held: Option<u64>,
    /// The burst that the provider allows, if it is small enough to be known.
    burst: Option<u64>,
    /// True if the bucket is refilled at the end of a window, not steadily.
    is_window: bool,
}

impl Default for LimitEstimate {
    fn default() -> LimitEstimate {
        LimitEstimate {
            gauges: Default::default(),
            ramp: Some(Ramp::default()),
            saturation: None,
            started: [0; 2],
            in_flight: 0,
            latency: None,
            last_start: Tick::ZERO,
            held_back: false,
            growth: Span::ZERO,
            term: TERM_MIN,
            cooldown: Span::ZERO,
            first_start: Tick::ZERO,
            suspect: 0,
            doubts: 0,
            begun: 0,
            held: None,
            burst: None,
            is_window: false,
        }
    }
}

impl LimitEstimate {
    /// Returns the estimated limit of calls, once a refusal has shown one.
    pub(super) fn calls(&self) -> Option<PaceRate> {
        self.gauges[0].found().map(|found| found.rate)
    }

    /// Returns the estimated limit of tokens, once a refusal has shown one.
    pub(super) fn tokens(&self) -> Option<PaceRate> {
        self.gauges[1].found().map(|found| found.rate)
    }

    /// Returns how many calls are in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns what has started, in calls and in tokens.
    pub(super) fn started(&self) -> StartCounts {
        self.started
    }

    pub(super) fn latency(&self) -> Option<Span> {
        self.latency
    }

    /// Returns when a call may start.
    pub(super) fn ready(&mut self, now: Tick, load: Load) -> Tick {
        let mut at = now;
        if let Some(ramp) = &self.ramp {
            at = at.max(ramp.ready(now));
        }
        for ((gauge, load), started) in self.gauges.iter().zip(load.sums()).zip(self.started) {
            at = at.max(gauge.ready(now, started, load));
        }
        self.held_back |= at > now;
        at
    }

    /// Records the start of a call.
    pub(super) fn start(&mut self, now: Tick, load: Load, noise: u64) {
        if self.started[0] == 0 {
            self.first_start = now;
        }
        if self.started[0] == self.begun
            && self.in_flight * 10 <= self.saturation.map_or(0, |saturation| saturation.tail(0).amount)
        {
            self.settle_tail();
        }
        if self.held_back && self.held.is_none() {
            let held = now.since(self.last_start).as_micros();
            self.growth = Span::from_micros(self.growth.as_micros().saturating_add(held));
        }
        if let Some(ramp) = &mut self.ramp {
            ramp.start(now, self.latency, self.held_back);
        }
        let (growth, term, held) = (self.growth, self.term(), self.held.unwrap_or(1_000));
        for (unit, (gauge, load)) in self.gauges.iter_mut().zip(load.sums()).enumerate() {
            let pace = gauge.pace(growth, term).map(|pace| pace.scaled(held, 1_000 - noise));
            // The unit that is not taken for the limit delays only what is far beyond anything
            // seen.
            let pace = if unit == self.suspect { pace } else { pace.map(|pace| pace.scaled(2, 1)) };
            gauge.start(now, load, pace);
        }
        for (sum, load) in self.started.iter_mut().zip(load.sums()) {
            *sum = sum.saturating_add(load);
        }
        (self.last_start, self.held_back) = (now, false);
        self.in_flight += 1;
    }

    /// Delays calls until `until`, for a reason that is not evidence about the pace.
    pub(super) fn pause(&mut self, until: Tick) {
        self.last_start = self.last_start.max(until);
    }

    /// Records that a call ended without any evidence.
    pub(super) fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Records that a call passed.
    pub(super) fn accepted(&mut self, now: Tick, start: &PaceStart, meters: &[LimitReading]) {
        self.ended();
        self.record_latency(now.since(start.at));
        if let Some(ramp) = &mut self.ramp {
            ramp.reply(now, now.since(start.at));
        }
        if let Some(saturation) =
            self.saturation.as_mut().filter(|saturation| saturation.precedes(start.before))
        {
            saturation.pass(start.at);
        }
        self.read_meters(start, meters, true);
    }

    /// Records that a call was refused, before it is known whether a limit was met.
    pub(super) fn refused(&mut self, now: Tick, start: &PaceStart, meters: &[LimitReading]) {
        self.ended();
        self.latency.get_or_insert(now.since(start.at).max(Span::from_millis(1)));
        self.learn_burst(start);
        self.read_meters(start, meters, false);
    }

    /// Records that a refusal met no limit: the call does not count as passed.
    pub(super) fn discount(&mut self, start: &PaceStart) {
        if let Some(saturation) =
            self.saturation.as_mut().filter(|saturation| saturation.precedes(start.before))
        {
            saturation.discount(start.load);
        }
    }

    /// Returns the average tokens of a call.
    fn tokens_each(&self) -> u64 {
        self.started[1] / self.started[0].max(1)
    }

    /// Sets the pace for a trial.
    pub(super) fn set_trial_pace(&mut self, pace: PaceRate) {
        let each = self.tokens_each();
        self.gauges[0].guess(pace);
        if each > 0 {
            self.gauges[1].guess(pace.scaled(each, 1));
        }
        (self.held, self.ramp) = (Some(1_000), None);
    }

    /// Takes the rate at which calls passed for a measurement.
    pub(super) fn trust(&mut self, (rate, calls): (PaceRate, u64)) {
        let each = self.tokens_each();
        self.gauges[0].trust(rate, calls);
        if each > 0 {
            self.gauges[1].trust(rate.scaled(each, 1), calls);
        }
    }

    /// Turns the measurements into guesses.
    pub(super) fn doubt(&mut self) {
        self.growth = Span::ZERO;
        for gauge in &mut self.gauges {
            if let Some(found) = gauge.found() {
                gauge.guess(found.rate);
            }
        }
    }

    /// Returns how fast calls start.
    pub(super) fn pace(&self) -> Option<PaceRate> {
        let found = self.gauges[0]
            .pace(self.growth, self.term())
            .map(|pace| pace.scaled(self.held.unwrap_or(1_000), 1_000));
        found.or_else(|| self.ramp.and_then(|ramp| ramp.pace()))
    }

    /// Restores this estimate; `now` is the one that was in use meanwhile.
    pub(super) fn resume(self, now: &LimitEstimate) -> LimitEstimate {
        let mut gauges = self.gauges;
        for (gauge, now) in gauges.iter_mut().zip(now.gauges) {
            *gauge = gauge.resume(&now);
        }
        let LimitEstimate { started, in_flight, latency, last_start, held_back, saturation, .. } = *now;
        LimitEstimate { gauges, started, in_flight, latency, last_start, held_back, saturation, ..self }
    }

    /// Records that the refusal of a call met a limit. The scope cools down for `cooldown`.
    pub(super) fn met(
        &mut self,
        now: Tick,
        start: &PaceStart,
        cooldown: Span,
        advice: Span,
        pace: Option<PaceRate>,
        history: &History,
    ) {
        let mut saturation = Saturation::new(start.at, start.before, start.load);
        saturation.advise(advice);
        if self.is_in_first_burst(start) && self.ramp.is_some() {
            // A burst that is refused shows that the bucket is small, and nothing about the rate.
            self.saturation = Some(saturation);
            (self.cooldown, self.begun, self.last_start) = (cooldown, self.started[0], now + cooldown);
            self.ramp
                .iter_mut()
                .for_each(|ramp| ramp.reply(now + cooldown, (now + cooldown + cooldown).since(start.at)));
            return;
        }
        self.held = None;
        let news = match self.saturation.filter(|_| self.gauges[0].found().is_some()) {
            Some(last) if last.until(&saturation, 0).amount >= CALLS_MIN => {
                self.saturation = Some(saturation);
                self.measure([0, 1].map(|unit| self.passed(&last, &saturation, unit, history)))
            }
            Some(last) => {
                self.slow_down(start, [last.until(&saturation, 0), last.until(&saturation, 1)]);
                self.saturation.iter_mut().for_each(|last| last.reject(start.at, start.before, start.load));
                News::Differs
            }
            None => {
                // What passed since a burst was refused is a measurement, or nearly one.
                let passed = self
                    .saturation
                    .map(|last| last.until(&saturation, 0))
                    .filter(|it| it.amount >= CALLS_BURST);
                self.saturation = Some(saturation);
                self.first_guess(now, start, pace, passed.map(Measured::rate))
            }
        };
        (self.cooldown, self.begun) = (cooldown, self.started[0]);
        // During the cooldown the pace proves nothing.
        self.last_start = now + cooldown;
        self.ramp = None;
        self.renew(news);
        self.held = Some(if news == News::Confirms && !self.gauges[self.suspect].is_unsure() {
            HELD_SURE
        } else {
            HELD
        });
    }

    /// Records the refusal of a call that started about when a limit was met. Returns true if that
    /// changes the estimate.
    pub(super) fn met_again(&mut self, start: &PaceStart) -> bool {
        let Some(saturation) =
            self.saturation.as_mut().filter(|saturation| saturation.precedes(start.before))
        else {
            return false;
        };
        saturation.reject(start.at, start.before, start.load);
        let (saturation, guessed) = (*saturation, self.gauges[0].is_a_guess());
        let tail = [saturation.tail(0), saturation.tail(1)];
        if guessed && tail[0].amount >= CALLS_MIN {
            // The rate stays a guess until all calls have been answered: calls in flight count as
            // passed.
            for (gauge, measured) in self.gauges.iter_mut().zip(tail) {
                if gauge.found().is_some() && measured.amount > 0 {
                    gauge.guess(measured.rate());
                }
            }
        } else if guessed && saturation.refusals() >= REFUSALS_MANY && tail[0].span > Span::ZERO {
            // Hardly any call passed, so the limit is lower than the guess.
            let most = PaceRate::of(tail[0].amount + 2, tail[0].span);
            let found = self.gauges[0].found().map_or(most, |found| found.rate);
            if most < found {
                let (parts, whole) = (most.millionths() / 1_000, (found.millionths() / 1_000).max(1));
                for gauge in &mut self.gauges {
                    if let Some(found) = gauge.found() {
                        gauge.guess(found.rate.scaled(parts, whole));
                    }
                }
            }
        }
        guessed
    }

    /// Turns the guess into a measurement once the calls that were in flight when the cooldown
    /// began have shown what passed.
    pub(super) fn settle_tail(&mut self) {
        let Some(saturation) = self.saturation.filter(|_| self.gauges[0].is_a_guess()) else { return };
        let calls = saturation.tail(0).amount;
        if calls < CALLS_MIN {
            return;
        }
        for (unit, gauge) in self.gauges.iter_mut().enumerate().filter(|(_, gauge)| gauge.found().is_some()) {
            gauge.trust(saturation.tail(unit).rate(), calls);
        }
    }

    pub(super) fn is_in_first_burst(&self, start: &PaceStart) -> bool {
        start.before[0] < ramp::FIRST && start.at == self.first_start
    }

    /// Learns the size of the bucket from a refusal among the first calls, which started together.
    fn learn_burst(&mut self, start: &PaceStart) {
        if self.is_in_first_burst(start) {
            self.burst = Some(self.burst.unwrap_or(ramp::FIRST).saturating_sub(1));
        }
    }

    /// Guesses the limits after the first refusal, which measures nothing: the bucket was full at
    /// first, and its size is not known.
    fn first_guess(
        &mut self,
        now: Tick,
        start: &PaceStart,
        pace: Option<PaceRate>,
        passed: Option<PaceRate>,
    ) -> News {
        let latency = self.latency.unwrap_or(now.since(start.at));
        let ramp = self.ramp.and_then(|ramp| ramp.pace());
        let half = pace.unwrap_or(PaceRate::of(ramp::FIRST, latency)).scaled(1, 2);
        let calls = passed.map_or(half, |passed| passed.max(half));
        let each = self.tokens_each();
        for (unit, guess) in [calls, calls.scaled(each, 1)].into_iter().enumerate() {
            let advertised = self.gauges[unit].advertised();
            // Without a ramp that went well for a while, even an upper bound is better than a
            // guess.
            let bound = advertised
                .and_then(|advertised| advertised.bound())
                .filter(|bound| ramp.is_none() || *bound < guess);
            match advertised.and_then(|advertised| advertised.rate()).or(bound) {
                Some(advertised) => self.gauges[unit].adopt(advertised),
                None if unit == 0 || each > 0 => self.gauges[unit].guess(guess),
                None => {}
            }
        }
        self.suspect = usize::from(each > 0);
        News::Differs
    }

    /// Lowers the pace after a refusal before which too few calls passed for a measurement. If none
    /// passed in this generation, the cooldown was too short, which is no evidence about the pace.
    fn slow_down(&mut self, start: &PaceStart, measured: [Measured; 2]) {
        if start.before[0] <= self.begun {
            return;
        }
        let term = self.term();
        // If no call passed, one call is the least of either unit: one token would be far less than a call.
        let call = [1, self.tokens_each().max(1)];
        for ((gauge, measured), call) in self.gauges.iter_mut().zip(measured).zip(call) {
            let Some(pace) = gauge.pace(self.growth, term) else { continue };
            let little = PaceRate::of(measured.amount.saturating_mul(2).max(call), measured.span);
            gauge.guess(pace.scaled(3, 4).min(little.max(SLOWEST_GUESS.scaled(call, 1))));
        }
    }

    /// Returns what passed between two refusals, without the time in which a bucket that is known
    /// to be small was full.
    fn passed(&self, last: &Saturation, saturation: &Saturation, unit: usize, history: &History) -> Measured {
        let whole = last.until(saturation, unit);
        if let Some(silence) = last.silence(whole.rate()) {
            // What a window has left at its end is lost, so the rate is higher than measured over
            // the whole span, and lower than measured without the time in which nothing passed.
            let span = Span::from_micros(whole.span.as_micros().saturating_sub(silence.as_micros() / 2));
            return Measured { span, is_window: true, ..whole };
        }
        // If none of the first calls passed, another caller had emptied the bucket, and its size is
        // not known.
        let Some(burst) = self.burst.filter(|burst| unit == 0 && self.suspect == 0 && *burst > 0) else {
            return whole;
        };
        let Some((amount, span)) = history.fastest(last.next()..saturation.number(), burst) else {
            return whole;
        };
        let fastest = Measured { amount, span, is_window: false, is_exact: true };
        if fastest.rate() > whole.rate() { fastest } else { whole }
    }

    /// Applies a measurement of what passed between two refusals.
    fn measure(&mut self, measured: [Measured; 2]) -> News {
        self.is_window = measured[0].is_window;
        let calls = measured[0].amount;
        let paces = self.gauges.map(|gauge| gauge.pace(self.growth, self.term()));
        let deviations = [0, 1].map(|unit| self.deviation(unit, measured[unit]));
        if let [Some(calls), Some(tokens)] = deviations {
            self.suspect(calls, tokens);
        }
        let mut news = News::Differs;
        for (unit, gauge) in self.gauges.iter_mut().enumerate() {
            let Some(pace) = paces[unit] else { continue };
            let advertised = gauge.advertised().and_then(|advertised| advertised.rate());
            let learned = gauge.learn(measured[unit], calls, pace);
            if let Some(advertised) =
                advertised.filter(|advertised| is_likely(*advertised, measured[unit].rate()))
            {
                gauge.adopt(advertised);
            }
            if unit == self.suspect {
                news = learned;
            }
        }
        news
    }

    /// Returns by how much a measurement differs from the known rate, in thousandths.
    fn deviation(&self, unit: usize, measured: Measured) -> Option<u64> {
        let known = self.gauges[unit].found()?.rate.millionths();
        let deviation = u128::from(known.abs_diff(measured.rate().millionths())) * 1_000 / u128::from(known);
        Some(u64::try_from(deviation).unwrap_or(u64::MAX))
    }

    /// Updates which unit is taken for the limit: the one with the same measurement each time.
    fn suspect(&mut self, calls: u64, tokens: u64) {
        let (mine, other) = if self.suspect == 0 { (calls, tokens) } else { (tokens, calls) };
        if mine > other.saturating_mul(2).saturating_add(30) {
            self.doubts += 1;
        } else if other > mine {
            self.doubts = 0;
        }
        if self.doubts >= DOUBTS_MAX {
            (self.suspect, self.doubts) = (1 - self.suspect, 0);
        }
    }

    /// Begins a new term, which is longer if the last refusal confirmed the limit.
    fn renew(&mut self, news: News) {
        let latency = self.latency.unwrap_or(Span::ZERO);
        let of_calls = self.calls().map_or(Span::ZERO, |rate| rate.time_of(50));
        let times = |times| Span::from_micros(latency.as_micros().saturating_mul(times));
        let round_trips = times(10);
        let least = TERM_MIN
            .max(round_trips)
            .max(Span::from_micros(self.cooldown.as_micros().saturating_mul(20)))
            .max(of_calls);
        let of_window = if self.is_window { times(TERM_WINDOW_ROUND_TRIPS) } else { Span::ZERO };
        let longest = if self.gauges[self.suspect].is_unsure() {
            TERM_UNSURE.max(round_trips)
        } else {
            let calls = self.calls().map_or(Span::ZERO, |rate| rate.time_of(TERM_CALLS));
            TERM_MAX.max(times(TERM_ROUND_TRIPS)).max(of_window).max(calls)
        };
        self.term = match news {
            News::Confirms => Span::from_micros(self.term.as_micros() * 2).max(least),
            News::Differs => least,
        }
        .max(of_window)
        .min(longest);
        self.growth = Span::ZERO;
    }

    fn term(&self) -> ProbeDelay {
        let few = self.calls().map_or(Span::ZERO, |rate| rate.time_of(CALLS_MIN)).min(ROUND_TRIP_MAX);
        let round_trip = self.latency.unwrap_or(TERM_MIN).max(ROUND_TRIP_MIN).max(few);
        ProbeDelay { length: self.term, round_trip, latency: self.latency.unwrap_or(Span::ZERO) }
    }

    fn record_latency(&mut self, took: Span) {
        let took = took.max(Span::from_micros(1)).as_micros();
        let smooth = self.latency.map_or(took, |old| (old.as_micros() * 7 + took) / 8);
        self.latency = Some(Span::from_micros(smooth));
    }

    fn read_meters(&mut self, start: &PaceStart, meters: &[LimitReading], passed: bool) {
        let latency = self.latency.unwrap_or(Span::ZERO);
        for (unit, name) in [LimitUnit::Requests, LimitUnit::Tokens].into_iter().enumerate() {
            // Of several limits on one unit, the one with the least left counts.
            let tightest = meters.iter().filter(|meter| meter.unit == name && meter.remaining.is_some());
            let Some(meter) = tightest.min_by_key(|meter| meter.remaining) else { continue };
            let started = start.before[unit].saturating_add(start.load.sums()[unit]);
            self.gauges[unit].update(meter, start.at, started, latency, passed);
        }
        if self.gauges[0].advertised().is_some() {
            self.ramp = None;
        }
    }
}

/// Returns true if an advertised rate is close to a measured one.
fn is_likely(advertised: PaceRate, measured: PaceRate) -> bool {
    advertised >= measured.scaled(1, 2) && advertised <= measured.scaled(2, 1)
}

//! The limit as it is thought to be.
//!
//! A provider that refuses a call because of a limit says one thing exactly: it had nothing left when that call came. What it let
//! pass between two such instants is what it filled up by, so that divided by the time is its rate, whatever the size of its
//! bucket. So the rate is measured: the pace starts a little below it, and rises slowly until the next refusal, which is the next
//! measurement. Each that confirms the last makes the time until the next longer. A refusal that comes early measures over a
//! short time, and so finds a limit that has fallen at once; if none comes for long, the limit has risen, and the pace rises
//! ever faster.
//!
//! Until the first refusal the pace doubles with every round trip. Where replies tell how the limits stand, that is
//! believed instead, until what passes proves it wrong.
//!
//! The provider does not say whether calls or tokens were too many. Both are measured, and the one that comes out the same each
//! time is the limit; the other one goes up and down with the sizes of the calls, and hardly holds any call back.

use tollgate::{Span, Tick};
use tollgate_provider::{LimitReading, LimitUnit};

use super::gauge::{News, ProbeDelay, UnitPace};
use super::history::History;
use super::ramp::{self, Ramp};
use super::saturation::{Measured, Saturation, StartCounts};
use super::{Load, PaceRate, PaceStart};

/// Fewer calls than this measure nothing.
const CALLS_MIN: u64 = 4;

/// So many calls that passed since a burst was refused tell the rate.
const CALLS_BURST: u64 = 16;

/// So many refusals say something, however few calls passed.
const REFUSALS_MANY: u64 = 10;

/// How often in a row the wrong unit may be suspected.
const DOUBTS_MAX: u32 = 3;

/// The least term after which a little more is tried.
const TERM_MIN: Span = Span::from_secs(1);

/// A guess is not doubled faster than in this time.
const ROUND_TRIP_MIN: Span = Span::from_millis(500);

/// Nor slower, however little went through: after an outage that says nothing.
const ROUND_TRIP_MAX: Span = Span::from_secs(30);

/// The slowest pace that is guessed, for the same reason.
const SLOWEST_GUESS: PaceRate = PaceRate::of(1, Span::from_secs(60));

/// The longest term of a limit that few calls speak for.
const TERM_UNSURE: Span = Span::from_secs(60);

/// The longest term: the longest of this, so many round trips, and the time of so many calls.
const TERM_MAX: Span = Span::from_secs(10);
const TERM_ROUND_TRIPS: u64 = 15;
const TERM_CALLS: u64 = 170;

/// The term of a window: each time that more is tried costs all calls that are under way.
const TERM_WINDOW_ROUND_TRIPS: u64 = 40;

/// What part of what was found calls go at, of a thousand, until it has proved to be a limit; and if it was found before.
const HELD: u64 = 930;
const HELD_SURE: u64 = 980;

/// What is known of the limits of one scope.
#[derive(Clone, Debug)]
pub(super) struct LimitEstimate {
    gauges: [UnitPace; 2],
    ramp: Option<Ramp>,
    mark: Option<Saturation>,
    started: StartCounts,
    in_flight: u64,
    latency: Option<Span>,
    last_start: Tick,
    /// Whether the pace held a call back since the last start.
    held_back: bool,
    growth: Span,
    term: Span,
    cooldown: Span,
    first_start: Tick,
    /// Which unit is thought to be the limit, and how often in a row that seemed wrong.
    suspect: usize,
    doubts: u32,
    /// How many calls had started when the last cooldown began.
    begun: u64,
    /// While the pace must not rise: what part of it calls go at, of a thousand.
    pub(super) held: Option<u64>,
    /// How much the provider lets pass at once, if that is so little that it is known.
    burst: Option<u64>,
    /// Whether what fills up does so at the end of a window, not steadily.
    is_window: bool,
}

impl Default for LimitEstimate {
    fn default() -> LimitEstimate {
        LimitEstimate {
            gauges: Default::default(),
            ramp: Some(Ramp::default()),
            mark: None,
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
    /// The rate of calls that is thought to be the limit, once a refusal has shown one.
    pub(super) fn calls(&self) -> Option<PaceRate> {
        self.gauges[0].found().map(|found| found.rate)
    }

    /// The rate of tokens that is thought to be the limit, once a refusal has shown one.
    pub(super) fn tokens(&self) -> Option<PaceRate> {
        self.gauges[1].found().map(|found| found.rate)
    }

    /// How many calls are under way.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// What has started, in calls and in tokens.
    pub(super) fn started(&self) -> StartCounts {
        self.started
    }

    pub(super) fn latency(&self) -> Option<Span> {
        self.latency
    }

    /// When a call may start.
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

    /// A call starts.
    pub(super) fn start(&mut self, now: Tick, load: Load, noise: u64) {
        if self.started[0] == 0 {
            self.first_start = now;
        }
        if self.started[0] == self.begun
            && self.in_flight * 10 <= self.mark.map_or(0, |mark| mark.tail(0).amount)
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
            // What is not thought to be the limit holds back only what is far beyond anything seen.
            let pace = if unit == self.suspect { pace } else { pace.map(|pace| pace.scaled(2, 1)) };
            gauge.start(now, load, pace);
        }
        for (sum, load) in self.started.iter_mut().zip(load.sums()) {
            *sum = sum.saturating_add(load);
        }
        (self.last_start, self.held_back) = (now, false);
        self.in_flight += 1;
    }

    /// No call starts before `until`, for a reason that says nothing of the pace.
    pub(super) fn pause(&mut self, until: Tick) {
        self.last_start = self.last_start.max(until);
    }

    /// A call has ended, and nothing is to be learned from that.
    pub(super) fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A call was answered.
    pub(super) fn accepted(&mut self, now: Tick, start: &PaceStart, meters: &[LimitReading]) {
        self.ended();
        self.time(now.since(start.at));
        if let Some(ramp) = &mut self.ramp {
            ramp.reply(now, now.since(start.at));
        }
        if let Some(mark) = self.mark.as_mut().filter(|mark| mark.precedes(start.at)) {
            mark.pass(start.at);
        }
        self.hear(start, meters, true);
    }

    /// A call was refused, and it is not known whether a limit was met.
    pub(super) fn refused(&mut self, now: Tick, start: &PaceStart, meters: &[LimitReading]) {
        self.ended();
        self.latency.get_or_insert(now.since(start.at).max(Span::from_millis(1)));
        self.learn_burst(start);
        self.hear(start, meters, false);
    }

    /// What is done with a refusal by which no limit was met: it is not counted as passed.
    pub(super) fn discount(&mut self, start: &PaceStart) {
        if let Some(mark) = self.mark.as_mut().filter(|mark| mark.precedes(start.at)) {
            mark.discount(start.load);
        }
    }

    /// How many tokens a call has on average.
    fn tokens_each(&self) -> u64 {
        self.started[1] / self.started[0].max(1)
    }

    /// Goes at this pace for a while.
    pub(super) fn try_at(&mut self, pace: PaceRate) {
        let each = self.tokens_each();
        self.gauges[0].guess(pace);
        if each > 0 {
            self.gauges[1].guess(pace.scaled(each, 1));
        }
        (self.held, self.ramp) = (Some(1_000), None);
    }

    /// Takes what passed for measured.
    pub(super) fn trust(&mut self, (rate, calls): (PaceRate, u64)) {
        let each = self.tokens_each();
        self.gauges[0].trust(rate, calls);
        if each > 0 {
            self.gauges[1].trust(rate.scaled(each, 1), calls);
        }
    }

    /// What was found is no more than a guess.
    pub(super) fn doubt(&mut self) {
        self.growth = Span::ZERO;
        for gauge in &mut self.gauges {
            if let Some(found) = gauge.found() {
                gauge.guess(found.rate);
            }
        }
    }

    /// How fast calls start.
    pub(super) fn pace(&self) -> Option<PaceRate> {
        let found = self.gauges[0]
            .pace(self.growth, self.term())
            .map(|pace| pace.scaled(self.held.unwrap_or(1_000), 1_000));
        found.or_else(|| self.ramp.and_then(|ramp| ramp.pace()))
    }

    /// This estimate, from now on; `now` is the one that went on meanwhile.
    pub(super) fn resume(self, now: &LimitEstimate) -> LimitEstimate {
        let mut gauges = self.gauges;
        for (gauge, now) in gauges.iter_mut().zip(now.gauges) {
            *gauge = gauge.resume(&now);
        }
        let LimitEstimate { started, in_flight, latency, last_start, held_back, mark, .. } = *now;
        LimitEstimate { gauges, started, in_flight, latency, last_start, held_back, mark, ..self }
    }

    /// A limit was met, by a call that was refused. Those who share the scope now wait for `cooldown`.
    pub(super) fn met(
        &mut self,
        now: Tick,
        start: &PaceStart,
        cooldown: Span,
        advice: Span,
        pace: Option<PaceRate>,
        history: &History,
    ) {
        let mut mark = Saturation::new(start.at, start.before, start.load);
        mark.advise(advice);
        if self.is_of_the_first(start) && self.ramp.is_some() {
            // A burst that is refused says that the bucket is small, and nothing of the rate.
            self.mark = Some(mark);
            (self.cooldown, self.begun, self.last_start) = (cooldown, self.started[0], now + cooldown);
            self.ramp
                .iter_mut()
                .for_each(|ramp| ramp.reply(now + cooldown, (now + cooldown + cooldown).since(start.at)));
            return;
        }
        self.held = None;
        let news = match self.mark.filter(|_| self.gauges[0].found().is_some()) {
            Some(last) if last.until(&mark, 0).amount >= CALLS_MIN => {
                self.mark = Some(mark);
                self.measure([0, 1].map(|unit| self.passed(&last, &mark, unit, history)))
            }
            Some(last) => {
                self.slow_down(start, [last.until(&mark, 0), last.until(&mark, 1)]);
                self.mark.iter_mut().for_each(|last| last.reject(start.at, start.before, start.load));
                News::Differs
            }
            None => {
                // What passed since a burst was refused is a measurement, or nearly.
                let passed = self.mark.map(|last| last.until(&mark, 0)).filter(|it| it.amount >= CALLS_BURST);
                self.mark = Some(mark);
                self.first_guess(now, start, pace, passed.map(Measured::rate))
            }
        };
        (self.cooldown, self.begun) = (cooldown, self.started[0]);
        // The time of the cooldown is no time in which the pace proved right.
        self.last_start = now + cooldown;
        self.ramp = None;
        self.renew(news);
        self.held = Some(if news == News::Confirms && !self.gauges[self.suspect].is_unsure() {
            HELD_SURE
        } else {
            HELD
        });
    }

    /// A call was refused as others were that started about then, by which a limit was met. Returns whether that changes what the
    /// limit is thought to be.
    pub(super) fn met_again(&mut self, start: &PaceStart) -> bool {
        let Some(mark) = self.mark.as_mut().filter(|mark| mark.precedes(start.at)) else { return false };
        mark.reject(start.at, start.before, start.load);
        let (mark, guessed) = (*mark, self.gauges[0].is_a_guess());
        let tail = [mark.tail(0), mark.tail(1)];
        if guessed && tail[0].amount >= CALLS_MIN {
            // It stays a guess until all have answered: what is still under way counts as let through.
            for (gauge, measured) in self.gauges.iter_mut().zip(tail) {
                if gauge.found().is_some() && measured.amount > 0 {
                    gauge.guess(measured.rate());
                }
            }
        } else if guessed && mark.refusals() >= REFUSALS_MANY && tail[0].span > Span::ZERO {
            // Hardly any passed: the limit is lower than any guess.
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

    /// The calls that were under way when a cooldown began have shown what passed: with the limit as it was met, that
    /// counts as a measurement.
    pub(super) fn settle_tail(&mut self) {
        let Some(mark) = self.mark.filter(|_| self.gauges[0].is_a_guess()) else { return };
        let calls = mark.tail(0).amount;
        if calls < CALLS_MIN {
            return;
        }
        for (unit, gauge) in self.gauges.iter_mut().enumerate().filter(|(_, gauge)| gauge.found().is_some()) {
            gauge.trust(mark.tail(unit).rate(), calls);
        }
    }

    pub(super) fn is_of_the_first(&self, start: &PaceStart) -> bool {
        start.before[0] < ramp::FIRST && start.at == self.first_start
    }

    /// A refusal among the first calls, which started together, shows the size of the bucket.
    fn learn_burst(&mut self, start: &PaceStart) {
        if self.is_of_the_first(start) {
            self.burst = Some(self.burst.unwrap_or(ramp::FIRST).saturating_sub(1));
        }
    }

    /// The first refusal measures nothing: the bucket was full at first, of a size that is not known.
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
            let told = self.gauges[unit].told();
            // Without a way up that went well for a while, even a bound is worth more than a guess.
            let bound = told.and_then(|told| told.bound()).filter(|bound| ramp.is_none() || *bound < guess);
            match told.and_then(|told| told.rate()).or(bound) {
                Some(told) => self.gauges[unit].believe(told),
                None if unit == 0 || each > 0 => self.gauges[unit].guess(guess),
                None => {}
            }
        }
        self.suspect = usize::from(each > 0);
        News::Differs
    }

    /// Too little passed to measure anything by it. If nothing did in this generation, the cooldown was too short, which
    /// says nothing of the pace.
    fn slow_down(&mut self, start: &PaceStart, measured: [Measured; 2]) {
        if start.before[0] <= self.begun {
            return;
        }
        let term = self.term();
        for (gauge, measured) in self.gauges.iter_mut().zip(measured) {
            let Some(pace) = gauge.pace(self.growth, term) else { continue };
            let little = PaceRate::of(measured.amount.saturating_mul(2).max(1), measured.span);
            gauge.guess(pace.scaled(3, 4).min(little.max(SLOWEST_GUESS)));
        }
    }

    /// What passed between two refusals, without the time in which a bucket that is known to be small was full.
    fn passed(&self, last: &Saturation, mark: &Saturation, unit: usize, history: &History) -> Measured {
        let whole = last.until(mark, unit);
        if let Some(silence) = last.silence(whole.rate()) {
            // What a window has left at its end is lost, so that the rate is higher than it seems, and lower than it is without
            // the time in which nothing passed.
            let span = Span::from_micros(whole.span.as_micros().saturating_sub(silence.as_micros() / 2));
            return Measured { span, is_window: true, ..whole };
        }
        // If none of the first passed, another caller had emptied it, and its size is not known.
        let Some(burst) = self.burst.filter(|burst| unit == 0 && self.suspect == 0 && *burst > 0) else {
            return whole;
        };
        let Some((amount, span)) = history.fastest(last.next()..mark.number(), burst) else { return whole };
        let fastest = Measured { amount, span, is_window: false, is_exact: true };
        if fastest.rate() > whole.rate() { fastest } else { whole }
    }

    /// Takes over what passed between two refusals.
    fn measure(&mut self, measured: [Measured; 2]) -> News {
        self.is_window = measured[0].is_window;
        let calls = measured[0].amount;
        let paces = self.gauges.map(|gauge| gauge.pace(self.growth, self.term()));
        let strays = [0, 1].map(|unit| self.strays(unit, measured[unit]));
        if let [Some(calls), Some(tokens)] = strays {
            self.suspect(calls, tokens);
        }
        let mut news = News::Differs;
        for (unit, gauge) in self.gauges.iter_mut().enumerate() {
            let Some(pace) = paces[unit] else { continue };
            let told = gauge.told().and_then(|told| told.rate());
            let learned = gauge.learn(measured[unit], calls, pace);
            if let Some(told) = told.filter(|told| is_likely(*told, measured[unit].rate())) {
                gauge.believe(told);
            }
            if unit == self.suspect {
                news = learned;
            }
        }
        news
    }

    /// By how much a measurement differs from what was known, of a thousand.
    fn strays(&self, unit: usize, measured: Measured) -> Option<u64> {
        let known = self.gauges[unit].found()?.rate.millionths();
        let stray = u128::from(known.abs_diff(measured.rate().millionths())) * 1_000 / u128::from(known);
        Some(u64::try_from(stray).unwrap_or(u64::MAX))
    }

    /// The unit whose limit is met is the one that is measured the same each time.
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

    /// Begins a new term: longer if the last refusal showed nothing new.
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

    fn time(&mut self, took: Span) {
        let took = took.max(Span::from_micros(1)).as_micros();
        let smooth = self.latency.map_or(took, |old| (old.as_micros() * 7 + took) / 8);
        self.latency = Some(Span::from_micros(smooth));
    }

    fn hear(&mut self, start: &PaceStart, meters: &[LimitReading], passed: bool) {
        let latency = self.latency.unwrap_or(Span::ZERO);
        for (unit, name) in [LimitUnit::Requests, LimitUnit::Tokens].into_iter().enumerate() {
            // Of several limits on one unit the one counts of which least is left.
            let tightest = meters.iter().filter(|meter| meter.unit == name && meter.remaining.is_some());
            let Some(meter) = tightest.min_by_key(|meter| meter.remaining) else { continue };
            let started = start.before[unit].saturating_add(start.load.sums()[unit]);
            self.gauges[unit].hear(meter, start.at, started, latency, passed);
        }
        if self.gauges[0].told().is_some() {
            self.ramp = None;
        }
    }
}

/// Whether what a provider says of a rate fits what was measured.
fn is_likely(told: PaceRate, measured: PaceRate) -> bool {
    told >= measured.scaled(1, 2) && told <= measured.scaled(2, 1)
}

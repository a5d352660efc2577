//! The pace: how fast to call a provider of whom nothing is known.
//!
//! A provider that refuses a call says one thing exactly: it had nothing left when that call came. What it let pass
//! between two such instants is what it filled up by, so that divided by the time is its rate, whatever the size of its
//! bucket. So the pace is measured, not felt for: it starts a hair below what was measured, and rises ever so slowly
//! until the next refusal, which is the next measurement. Each that confirms the last makes the time until the next
//! twice as long. A refusal that comes early measures over a short time, and so finds a limit that has fallen at once.
//!
//! Until the first refusal the pace doubles with every round trip. Where replies tell how the limits stand, that is
//! believed instead, until a refusal proves it wrong.
//!
//! Nobody says whether calls or tokens were too many. Both are measured, and the one that comes out the same each time is
//! the limit; the other one goes up and down with the sizes of the calls, and hardly holds anybody back.

mod anyway;
mod gauge;
mod mark;
mod ramp;
mod rate;
mod told;
mod window;

use tollgate::{Span, Tick};
use tollgate_provider::{Meter, Unit};

use anyway::Anyway;
use gauge::{Gauge, News, Term};
use mark::{Mark, Measured, Sums};
use ramp::Ramp;
use window::Window;

pub use rate::Rate;

/// Fewer calls than this measure nothing.
const CALLS_MIN: u64 = 4;

/// How often in a row the wrong unit may be suspected.
const DOUBTS_MAX: u32 = 3;

/// The least term after which a little more is tried.
const TERM_MIN: Span = Span::from_secs(5);

/// A guess is not doubled faster than in this time.
const ROUND_TRIP_MIN: Span = Span::from_millis(500);

/// Nor slower, however little went through: after an outage that says nothing.
const ROUND_TRIP_MAX: Span = Span::from_secs(30);

/// The slowest pace that is guessed, for the same reason.
const SLOWEST_GUESS: Rate = Rate::of(1, Span::from_secs(60));

/// The longest term of a limit that few calls speak for.
const TERM_UNSURE: Span = Span::from_secs(60);

/// The longest term.
const TERM_MAX: Span = Span::from_secs(600);

/// How late a timer may ring. What should have started meanwhile starts then, or a thousand a second were the most there is.
const TIMER: Span = Span::from_millis(2);

/// What a call puts on its provider: one call, and so many tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Load {
    tokens: u64,
}

impl Load {
    /// One call of about so many tokens; 0 if that is not known.
    pub const fn tokens(tokens: u64) -> Load {
        Load { tokens }
    }

    fn sums(self) -> Sums {
        [1, self.tokens]
    }
}

/// When a call may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// At this time, which may be now.
    At(Tick),
    /// When another call has been answered.
    AfterReply,
}

/// A call that has started, to be given back with its reply.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    at: Tick,
    before: Sums,
    load: Load,
}

/// The pace of one scope.
#[derive(Clone, Debug)]
pub struct Pace {
    gauges: [Gauge; 2],
    ramp: Option<Ramp>,
    window: Window,
    mark: Option<Mark>,
    started: Sums,
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
    anyway: Anyway,
    /// How much the provider lets pass at once, if that is so little that it is known.
    burst: Option<u64>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            gauges: Default::default(),
            ramp: Some(Ramp::default()),
            window: Window::default(),
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
            anyway: Anyway::default(),
            burst: None,
        }
    }
}

impl Pace {
    /// The rate of calls that is thought to be the limit, once a refusal has shown one.
    pub fn calls(&self) -> Option<Rate> {
        self.gauges[0].found().map(|found| found.rate)
    }

    /// The rate of tokens that is thought to be the limit, once a refusal has shown one.
    pub fn tokens(&self) -> Option<Rate> {
        self.gauges[1].found().map(|found| found.rate)
    }

    /// How many calls may be under way, once the provider has said that it has too much to do.
    pub fn window(&self) -> Option<u64> {
        self.window.most()
    }

    /// How many calls are under way.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// When a call may start.
    pub fn ready(&mut self, now: Tick, load: Load) -> Ready {
        if !self.window.has_room(self.in_flight) {
            return Ready::AfterReply;
        }
        let mut at = now;
        if let Some(ramp) = &self.ramp {
            at = at.max(ramp.ready(now));
        }
        for ((gauge, load), started) in self.gauges.iter().zip(load.sums()).zip(self.started) {
            at = at.max(gauge.ready(now, started, load));
        }
        self.held_back |= at > now;
        Ready::At(at)
    }

    /// A call starts.
    pub fn start(&mut self, now: Tick, load: Load) -> Start {
        let start = Start { at: now, before: self.started, load };
        if self.started[0] == 0 {
            self.first_start = now;
        }
        if self.started[0] == self.begun {
            self.settle_tail();
        }
        if self.held_back {
            let held = now.since(self.last_start).as_micros();
            self.growth = Span::from_micros(self.growth.as_micros().saturating_add(held));
        }
        if let Some(ramp) = &mut self.ramp {
            ramp.start(now, self.latency, self.held_back);
        }
        let (growth, term) = (self.growth, self.term());
        for (unit, (gauge, load)) in self.gauges.iter_mut().zip(load.sums()).enumerate() {
            let pace = gauge.pace(growth, term);
            // What is not thought to be the limit holds back only what is far beyond anything seen.
            let pace = if unit == self.suspect { pace } else { pace.map(|pace| pace.scaled(2, 1)) };
            gauge.start(now, load, pace);
        }
        for (sum, load) in self.started.iter_mut().zip(load.sums()) {
            *sum = sum.saturating_add(load);
        }
        (self.last_start, self.held_back) = (now, false);
        self.in_flight += 1;
        start
    }

    /// Nobody starts before `until`, for a reason that says nothing of the pace.
    pub fn pause(&mut self, until: Tick) {
        self.last_start = self.last_start.max(until);
    }

    /// A call has ended, and nothing is to be learned from that.
    pub fn ended(&mut self, _start: &Start) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A call was answered.
    pub fn accepted(&mut self, now: Tick, start: &Start, meters: &[Meter]) {
        self.ended(start);
        self.window.accepted();
        self.time(now.since(start.at));
        if let Some(ramp) = &mut self.ramp {
            ramp.reply(now, now.since(start.at));
        }
        self.hear(start, meters);
    }

    /// A call was refused because the provider has too much to do.
    pub fn overloaded(&mut self, start: &Start) {
        self.window.overloaded(self.in_flight);
        self.ended(start);
    }

    /// A call was refused because of a limit, and it is the first of its generation. Those who share the scope now wait
    /// for `cooldown`.
    pub fn refused_first(&mut self, now: Tick, start: &Start, meters: &[Meter], cooldown: Span) {
        self.ended(start);
        self.latency.get_or_insert(now.since(start.at).max(Span::from_millis(1)));
        self.hear(start, meters);
        let mark = Mark::new(start.at, start.before, start.load);
        if self.is_of_the_first(start) && self.ramp.is_some() {
            // A burst that is refused says that the bucket is small, and nothing of the rate.
            self.mark = Some(mark);
            self.learn_burst(start);
            (self.cooldown, self.begun, self.last_start) = (cooldown, self.started[0], now + cooldown);
            self.ramp.iter_mut().for_each(|ramp| ramp.reply(now + cooldown, now.since(start.at)));
            return;
        }
        self.count_below();
        let news = match self.mark.filter(|_| self.ramp.is_none()) {
            Some(_) if self.anyway.is_in_vain() => {
                self.mark.iter_mut().for_each(|last| last.reject(start.at, start.before, start.load));
                self.go_faster()
            }
            Some(last) if last.until(&mark, 0).amount >= CALLS_MIN => {
                self.mark = Some(mark);
                self.take_over([0, 1].map(|unit| self.passed(&last, &mark, unit)))
            }
            Some(last) => {
                self.slow_down(start, [last.until(&mark, 0), last.until(&mark, 1)]);
                self.mark.iter_mut().for_each(|last| last.reject(start.at, start.before, start.load));
                News::Differs
            }
            None => {
                self.mark = Some(mark);
                self.first_guess(now, start)
            }
        };
        (self.cooldown, self.begun) = (cooldown, self.started[0]);
        // The time of the cooldown is no time in which the pace proved right.
        self.last_start = now + cooldown;
        self.learn_burst(start);
        self.ramp = None;
        self.renew(news);
    }

    /// Counts refusals below what is thought to be the limit.
    fn count_below(&mut self) {
        let gauge = &self.gauges[self.suspect];
        let pace = gauge.pace(self.growth, self.term());
        let is_below = gauge.found().zip(pace).is_some_and(|(found, pace)| pace <= found.rate);
        // What the provider says itself is heard instead.
        let is_below = is_below && gauge.told().is_none();
        self.anyway.count(is_below, self.gauges.map(|gauge| gauge.found().map(|found| found.rate)));
        if self.anyway.is_likely() {
            // What was measured may be too much, because the bucket is not as small as it seemed.
            self.burst = None;
        }
    }

    /// Whether it is not the pace that is refused, but some calls whatever the pace.
    pub fn is_refused_anyway(&self) -> bool {
        self.anyway.is_sure()
    }

    /// Takes back what going slower did not help, and tries a little more each time from there.
    fn go_faster(&mut self) -> News {
        for (gauge, before) in self.gauges.iter_mut().zip(self.anyway.take_back()) {
            gauge.raise(before);
        }
        News::Differs
    }

    /// A call was refused because of a limit, as others were that started about then.
    pub fn refused_again(&mut self, start: &Start, meters: &[Meter]) {
        self.ended(start);
        self.hear(start, meters);
        self.learn_burst(start);
        let Some(mark) = self.mark.as_mut().filter(|mark| mark.precedes(start.at)) else { return };
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
        }
    }

    /// The calls that were under way when a cooldown began have told what passed: with the limit as it was met, that is as
    /// good as a measurement.
    fn settle_tail(&mut self) {
        let Some(mark) = self.mark.filter(|_| self.gauges[0].is_a_guess()) else { return };
        let calls = mark.tail(0).amount;
        if calls < CALLS_MIN || self.in_flight * 10 > calls {
            return;
        }
        for (unit, gauge) in self.gauges.iter_mut().enumerate().filter(|(_, gauge)| gauge.found().is_some()) {
            gauge.trust(mark.tail(unit).rate(), calls);
        }
    }

    fn is_of_the_first(&self, start: &Start) -> bool {
        start.before[0] < ramp::FIRST && start.at == self.first_start
    }

    /// A refusal among the first calls, which started together, shows the size of the bucket.
    fn learn_burst(&mut self, start: &Start) {
        if self.is_of_the_first(start) {
            self.burst = Some(self.burst.unwrap_or(ramp::FIRST).saturating_sub(1));
        }
    }

    /// The first refusal measures nothing: the bucket was full at first, of a size that nobody knows.
    fn first_guess(&mut self, now: Tick, start: &Start) -> News {
        let latency = self.latency.unwrap_or(now.since(start.at));
        let ramp = self.ramp.and_then(|ramp| ramp.pace());
        let calls = ramp.unwrap_or(Rate::of(ramp::FIRST, latency)).scaled(1, 2);
        let each = self.started[1] / self.started[0].max(1);
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
    fn slow_down(&mut self, start: &Start, measured: [Measured; 2]) {
        if start.before[0] <= self.begun {
            return;
        }
        let term = self.term();
        for (gauge, measured) in self.gauges.iter_mut().zip(measured) {
            let Some(pace) = gauge.pace(self.growth, term) else { continue };
            let little = Rate::of(measured.amount.saturating_mul(2).max(1), measured.span);
            gauge.guess(pace.scaled(3, 4).min(little.max(SLOWEST_GUESS)));
        }
    }

    /// What passed between two refusals, without the time in which a bucket that is known to be small was full.
    fn passed(&self, last: &Mark, mark: &Mark, unit: usize) -> Measured {
        let whole = last.until(mark, unit);
        // If none of the first passed, somebody else had emptied it, and its size is not known.
        let Some(burst) = self.burst.filter(|burst| unit == 0 && *burst > 0) else { return whole };
        let span = Span::from_micros(whole.span.as_micros().saturating_sub(self.cooldown.as_micros()));
        let awake = Measured { amount: whole.amount.saturating_sub(burst), span };
        if span > Span::ZERO && awake.rate() > whole.rate() { awake } else { whole }
    }

    /// Measures, unless some calls are refused anyway, and going faster pays.
    fn take_over(&mut self, measured: [Measured; 2]) -> News {
        if self.anyway.is_sure() && self.anyway.pays(measured[self.suspect].rate()) {
            return self.go_faster();
        }
        self.measure(measured)
    }

    /// Takes over what passed between two refusals.
    fn measure(&mut self, measured: [Measured; 2]) -> News {
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

    /// Begins a new term: longer if the last refusal told nothing new.
    fn renew(&mut self, news: News) {
        let latency = self.latency.unwrap_or(Span::ZERO);
        let of_calls = self.calls().map_or(Span::ZERO, |rate| rate.time_of(50));
        let round_trips = Span::from_micros(latency.as_micros().saturating_mul(10));
        let least = TERM_MIN
            .max(round_trips)
            .max(Span::from_micros(self.cooldown.as_micros().saturating_mul(20)))
            .max(of_calls);
        self.term = match news {
            News::Confirms => Span::from_micros(self.term.as_micros() * 2).max(least),
            News::Differs => least,
        }
        .min(if self.gauges[self.suspect].is_unsure() {
            TERM_UNSURE.max(round_trips)
        } else {
            TERM_MAX
        });
        self.growth = Span::ZERO;
    }

    fn term(&self) -> Term {
        let few = self.calls().map_or(Span::ZERO, |rate| rate.time_of(CALLS_MIN)).min(ROUND_TRIP_MAX);
        let round_trip = self.latency.unwrap_or(TERM_MIN).max(ROUND_TRIP_MIN).max(few);
        Term { length: self.term, round_trip }
    }

    fn time(&mut self, took: Span) {
        let took = took.max(Span::from_micros(1)).as_micros();
        let smooth = self.latency.map_or(took, |old| (old.as_micros() * 7 + took) / 8);
        self.latency = Some(Span::from_micros(smooth));
    }

    fn hear(&mut self, start: &Start, meters: &[Meter]) {
        let latency = self.latency.unwrap_or(Span::ZERO);
        for (unit, name) in [Unit::Requests, Unit::Tokens].into_iter().enumerate() {
            // Of several limits on one unit the one counts of which least is left.
            let tightest = meters.iter().filter(|meter| meter.unit == name && meter.remaining.is_some());
            let Some(meter) = tightest.min_by_key(|meter| meter.remaining) else { continue };
            let started = start.before[unit].saturating_add(start.load.sums()[unit]);
            self.gauges[unit].hear(meter, start.at, started, latency);
        }
        if self.gauges[0].told().is_some() {
            self.ramp = None;
        }
    }
}

/// Whether what a provider says of a rate fits what was measured.
fn is_likely(told: Rate, measured: Rate) -> bool {
    told >= measured.scaled(1, 2) && told <= measured.scaled(2, 1)
}

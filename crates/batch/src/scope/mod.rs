//! A scope: the items that share a provider's account, and get its "not now" together.
//!
//! A pure machine. Calls start and are answered at times that its caller passes in; what it says is whether the next
//! may start. The cooldown is a deadline that it keeps, not a task: the call that met the 429 may be gone the moment
//! after.
//!
//! Generations keep old news apart. A call is stamped with the generation in which it starts; the first 429 of a
//! generation begins the next one. A 429 of an older generation begins nothing, and an old success proves nothing.

mod cooldown_policy;
mod counters;
mod outage;
mod start_queue;

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Span, Tick};
use tollgate_provider::{Class, FatalKind, Hint};

use crate::pace::{Load, Pace, PaceStart};
use crate::random::JitterRandom;

pub use cooldown_policy::CooldownPolicy;
pub use counters::{Counters, GENERATIONS_KEPT};
use outage::OutageCircuit;
pub use start_queue::StartQueue;

/// How many calls a cooldown gives back, where nothing is advised and the rate is known.
const FEW_CALLS: u64 = 2;

/// The least cooldown then.
const LEAST: Span = Span::from_millis(1);

/// The least cooldown in an outage.
const LEAST_IN_OUTAGE: Span = Span::from_millis(100);

/// How long a call that goes alone is waited for before the next goes, at least.
const PROBE_MIN: Span = Span::from_millis(100);

/// And at most.
const PROBE_MAX: Span = Span::from_secs(5);

/// After so many refusals in a row what is advised is heeded again.
const RUN_ADVISED: u64 = 4;

/// What is advised is heeded for at least this part of it: two to the power of this.
const DOUBTS_MAX: u32 = 10;

/// Where other calls pass, one call finds out whether advice of at least this length is true, after this part of it.
const ADVICE_LONG: Duration = Duration::from_secs(5);
const PROBED_PART: u32 = 8;

/// So many refusals in a row, or fewer, are no reason to believe it.
const ODD_RUN: u64 = 2;

/// By how much two clocks that tell the same time may differ. What others say is no news within that.
const SLACK: Span = Span::from_millis(20);

/// The machine of one scope.
#[derive(Clone, Debug)]
pub struct PaceScope {
    rules: CooldownPolicy,
    pace: Pace,
    generation: u64,
    until: Option<Tick>,
    closed: Option<Closed>,
    /// Cooldowns in a row in which nothing has gone through.
    streak: u32,
    /// When the last call of this generation started.
    last_start: Option<Tick>,
    /// How long the last refusal or failure took to come.
    refusal: Span,
    /// Since when every call is refused.
    refused_since: Option<Tick>,
    /// The call whose refusal came with the advice that is heeded: when it started, what it asked for, and half of the time.
    advised: Option<(Tick, Load, Span)>,
    /// How often what was advised was too long.
    doubts: u32,
    /// Whether the next call is to find out if what was advised is true.
    is_suspect: bool,
    /// Since when a long advice is heeded that was not suspect when it came, and how long it is.
    long_advice: Option<(Tick, Duration)>,
    outage: OutageCircuit,
    random: JitterRandom,
    counters: Counters,
}

/// Why a scope is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// What kind of refusal it was.
    pub class: Class,
    /// Why, in the provider's words.
    pub reason: Arc<str>,
}

/// Whether a call may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Now.
    Now,
    /// Not before this time: the scope cools down.
    CoolingUntil(Tick),
    /// Not before this time, at the pace that is thought right.
    PacedUntil(Tick),
    /// Never.
    Closed(Closed),
}

/// A call under way: the stamp it got when it started.
#[derive(Clone, Copy, Debug)]
pub struct StartedCall {
    generation: u64,
    at: Tick,
    start: PaceStart,
}

/// What a reply meant for the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing for others.
    None,
    /// A cooldown began; no call starts before its end.
    Opened(Tick),
    /// The cooldown that is on lasts longer, or less long: a call has passed meanwhile.
    Changed(Tick),
    /// The cooldown that is on was met by another call.
    Joined,
    /// It was a 429 of a generation that is over.
    Old,
    /// The scope is closed for good.
    Closed(Closed),
}

impl PaceScope {
    /// A scope of which nothing is known. The seed is for jitter.
    pub fn new(rules: CooldownPolicy, seed: u64) -> PaceScope {
        PaceScope {
            rules,
            pace: Pace::default(),
            generation: 0,
            until: None,
            closed: None,
            streak: 0,
            last_start: None,
            refusal: Span::ZERO,
            refused_since: None,
            advised: None,
            doubts: 0,
            is_suspect: false,
            long_advice: None,
            outage: OutageCircuit::default(),
            random: JitterRandom::new(seed),
            counters: Counters::default(),
        }
    }

    /// The pace.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// How many cooldowns have begun.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Until when it cools down, if it does.
    pub fn cooling(&self, now: Tick) -> Option<Tick> {
        self.until.filter(|until| *until > now)
    }

    /// What happened.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Why it is closed, if it is.
    pub fn closed(&self) -> Option<&Closed> {
        self.closed.as_ref()
    }

    /// Whether a call may start.
    pub fn permit(&mut self, now: Tick, load: Load) -> Permit {
        if let Some(closed) = &self.closed {
            return Permit::Closed(closed.clone());
        }
        if let Some(until) = self.cooling(now) {
            return Permit::CoolingUntil(until);
        }
        match self.probing() {
            Some(at) if at > now => return Permit::PacedUntil(at),
            // It was not refused in time, so it went through, or is lost.
            Some(_) if self.outage.since().is_none() => {
                self.pace.end_run();
                self.is_suspect = false;
            }
            _ => {}
        }
        match self.pace.ready(now, load) {
            at if at <= now => Permit::Now,
            at => Permit::PacedUntil(at),
        }
    }

    /// The number of the run of failures that is on, or was the last: none passed between them.
    pub(crate) fn failing_run(&self) -> u64 {
        self.outage.run()
    }

    /// Whether no call passes, so that it is no item's fault that its call did not.
    pub fn is_out(&self) -> bool {
        self.outage.since().is_some() || self.pace.is_refusing_all()
    }

    /// When the next call may start, if none has passed of late: then one goes alone, and finds out whether that is over. It may
    /// be lost, so it is not waited for without an end.
    fn probing(&self) -> Option<Tick> {
        let last = self.last_start.filter(|_| self.is_out() || self.is_suspect)?;
        // By then it would have been refused.
        let refusal = Span::from_micros(self.refusal.as_micros().saturating_mul(4));
        Some(last + refusal.clamp(PROBE_MIN, PROBE_MAX))
    }

    /// Starts a call. The caller has a permit for now.
    pub fn start(&mut self, now: Tick, load: Load) -> StartedCall {
        self.counters.calls += 1;
        let after_cooldown = self.last_start.replace(now).is_none();
        StartedCall {
            generation: self.generation,
            at: now,
            start: self.pace.start(now, load, after_cooldown),
        }
    }

    /// A call that was stamped never reached the provider.
    pub fn withdraw(&mut self) {
        self.counters.calls = self.counters.calls.saturating_sub(1);
        self.pace.ended();
    }

    /// A call ended, and it is not known how.
    pub fn abandon(&mut self) {
        self.counters.wasted += 1;
        self.pace.ended();
    }

    /// A call was answered. `is_blameless` says that its item had not failed before, unless in
    /// the run of failures that is on.
    pub fn reply(&mut self, now: Tick, call: &StartedCall, hint: &Hint, is_blameless: bool) -> Effect {
        self.counters.wasted += u64::from(hint.class != Class::Ok);
        match hint.class {
            Class::Ok => {
                if call.generation == self.generation {
                    (self.streak, self.is_suspect) = (0, false);
                }
                self.outage.pass(call.at);
                self.pace.accepted(now, &call.start, &hint.meters);
                let until = self.doubt(now, call).or_else(|| self.suspect(now));
                until.map_or(Effect::None, Effect::Changed)
            }
            Class::Transient => self.failed(now, call, hint, is_blameless),
            Class::Throttled | Class::Overloaded => self.throttled(now, call, hint),
            Class::Exhausted { .. } | Class::Fatal(FatalKind::Auth) => {
                self.pace.ended();
                let reason = hint.reason.as_deref().unwrap_or("the provider gave no reason");
                self.close(hint.class, reason)
            }
            // The provider has looked at the call, so its limits let it pass.
            _ => {
                self.pace.accepted(now, &call.start, &hint.meters);
                Effect::None
            }
        }
    }

    /// A call failed, or took too long. If all do, that is an outage: calls go one by one until one passes, or it has lasted
    /// too long.
    fn failed(&mut self, now: Tick, call: &StartedCall, hint: &Hint, is_blameless: bool) -> Effect {
        self.pace.ended();
        self.outage.fail(now, call.at, is_blameless);
        let Some(lasts) = self.outage.lasts(now) else { return Effect::None };
        if let Some(closed) = self.close_after(lasts, hint) {
            return closed;
        }
        self.refusal = now.since(call.at);
        let length = self.rules.length(hint.advice, LEAST_IN_OUTAGE, 0, lasts);
        let until = now + length + self.rules.added(length, self.random.next());
        if call.generation == self.generation {
            return self.open(now, until);
        }
        self.join(now)
    }

    /// Closes the scope if no call has passed for longer than an outage may last.
    fn close_after(&mut self, lasts: Span, hint: &Hint) -> Option<Effect> {
        if lasts < self.rules.longest_outage() {
            return None;
        }
        let said = hint.reason.as_deref().unwrap_or("no reason given");
        let reason = format!("no call has passed for {:?}: {said}", lasts.to_duration());
        Some(self.close(hint.class, &reason))
    }

    /// A call did not pass that had started before the cooldown began.
    fn join(&mut self, now: Tick) -> Effect {
        if self.cooling(now).is_none() {
            return Effect::Old;
        }
        self.counters.participate();
        Effect::Joined
    }

    fn throttled(&mut self, now: Tick, call: &StartedCall, hint: &Hint) -> Effect {
        self.counters.rejected += 1;
        self.refusal = now.since(call.at);
        let is_first = call.generation == self.generation;
        let streak = if is_first { self.streak } else { 0 };
        let is_advised = hint.advice.is_some() && self.doubts == 0;
        let is_met = self.pace.refused(now, &call.start, &hint.meters, is_advised);
        if self.pace.run() <= 1 {
            self.refused_since = None;
        }
        let refused_for = now.since(*self.refused_since.get_or_insert(now));
        if hint.class == Class::Overloaded
            && let Some(closed) = self.close_after(refused_for, hint)
        {
            return closed;
        }
        let advice = hint.advice.map(|advice| self.believed(advice));
        let is_long = advice.is_some_and(|advice| advice >= ADVICE_LONG);
        self.is_suspect = is_long && self.is_odd();
        self.long_advice = advice.filter(|_| is_long && !self.is_suspect).map(|advice| (now, advice));
        // What is believed of it is too long if a call passes before half of it is over.
        let half = Span::covering(advice.unwrap_or_default() / 2);
        let advice = advice.map(|advice| if self.is_suspect { self.probed(advice) } else { advice });
        let length = self.rules.length(advice, self.learned(is_met), streak, refused_for);
        let until = now + length + self.rules.added(length, self.random.next());
        if is_met {
            let until = self.cooling(now).map_or(until, |cooling| cooling.max(until));
            let advised = hint.advice.filter(|_| is_advised).map_or(Span::ZERO, Span::covering);
            self.pace.met(now, &call.start, until.since(now), advised);
        }
        if is_first {
            if hint.advice.is_some() {
                if self.pace.run() >= RUN_ADVISED {
                    self.doubts = 0;
                }
                self.advised = Some((call.at, call.start.load(), half));
            }
            return self.open(now, until);
        }
        let effect = self.join(now);
        // Only what was advised makes a cooldown longer, or that a limit was met; a default is no news.
        let is_news = hint.advice.is_some() || is_met;
        if is_news && self.cooling(now).is_some_and(|cooling| until > cooling) {
            self.until = Some(until);
            return Effect::Changed(until);
        }
        effect
    }

    /// How long to cool down where nothing is advised: until a call or two pass again. A pace that is slower, not a pause, is what
    /// heeds a limit.
    fn learned(&self, is_met: bool) -> Span {
        let calls = if is_met { FEW_CALLS } else { 1 };
        let known = self.pace.calls().map(|rate| rate.time_of(calls));
        let first = if is_met { Span::from_micros(self.refusal.as_micros() * 2) } else { Span::ZERO };
        known.unwrap_or(first).clamp(LEAST, CooldownPolicy::FIRST)
    }

    /// Whether hardly any call is refused but the last.
    fn is_odd(&self) -> bool {
        self.pace.run() <= ODD_RUN && self.pace.is_passing()
    }

    /// After how much of a long wait one call finds out whether it is true: twice as much after each that was refused.
    fn probed(&self, advice: Duration) -> Duration {
        advice * (1 << (self.pace.run().clamp(1, ODD_RUN) - 1)) / PROBED_PART
    }

    /// A call passed. If nearly all do, a long wait that was advised is suspect: one call finds out whether it is true. Returns
    /// when the cooldown ends then.
    fn suspect(&mut self, now: Tick) -> Option<Tick> {
        let (since, advice) = self.long_advice.filter(|_| self.is_odd())?;
        self.long_advice = None;
        let soon = now.max(since + Span::covering(self.probed(advice)));
        self.cooling(now).filter(|until| *until > soon)?;
        self.is_suspect = true;
        self.until = Some(soon);
        self.until
    }

    /// How much of what was advised is heeded: less each time that it proved to be too long.
    fn believed(&self, advice: Duration) -> Duration {
        advice / (1_u32 << self.doubts.min(DOUBTS_MAX))
    }

    /// A call passed. If it started after the one that was refused, and is no smaller, what was advised to all is too long.
    /// Returns when the cooldown ends then.
    fn doubt(&mut self, now: Tick, call: &StartedCall) -> Option<Tick> {
        let (at, load, advice) = self.advised?;
        // In the second half of it one may pass: what is advised is rounded up.
        if call.at <= at || call.start.load() < load || call.at.since(at) >= advice {
            return None;
        }
        self.advised = None;
        self.doubts = self.doubts.saturating_add(1);
        let soon = now + self.learned(false);
        self.cooling(now).filter(|until| *until > soon)?;
        self.until = Some(soon);
        self.until
    }

    fn open(&mut self, now: Tick, until: Tick) -> Effect {
        let until = self.cooling(now).map_or(until, |cooling| cooling.max(until));
        self.generation += 1;
        self.streak = if self.pace.run() <= 1 { 1 } else { self.streak.saturating_add(1) };
        self.last_start = None;
        self.until = Some(until);
        self.counters.begin();
        self.counters.participate();
        Effect::Opened(until)
    }

    fn close(&mut self, class: Class, reason: &str) -> Effect {
        let closed = Closed { class, reason: reason.into() };
        Effect::Closed(self.closed.get_or_insert(closed).clone())
    }

    /// Another batch that shares the scope met a 429: no call starts for `left`. Returns the deadline if that is news.
    pub fn share(&mut self, now: Tick, left: Span) -> Option<Tick> {
        let until = now + left.min(self.rules.cap_span());
        if left <= SLACK || self.cooling(now).is_some_and(|cooling| cooling + SLACK >= until) {
            return None;
        }
        // One that is on already only lasts longer: calls under way have met it, or will.
        if self.cooling(now).is_none() {
            self.generation += 1;
            self.counters.begin();
        }
        self.until = Some(until);
        self.pace.pause(until);
        Some(until)
    }
}

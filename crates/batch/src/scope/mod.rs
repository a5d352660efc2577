//! A scope: those who share a provider's account, and hear of its "not now" together.
//!
//! A pure machine. Calls start and are answered at times that are told it; what it says is whether the next may start.
//! The cooldown is a deadline that it keeps, not a task: whoever met the 429 may be gone the moment after.
//!
//! Generations keep old news apart. A call is stamped with the generation in which it starts; the first 429 of a
//! generation begins the next one. A 429 of an older generation begins nothing, and an old success proves nothing.

mod counters;
mod line;
mod rules;

use std::sync::Arc;

use tollgate::{Span, Tick};
use tollgate_provider::{Class, FatalKind, Hint};

use crate::pace::{Load, Pace, Ready, Start};
use crate::random::Random;

pub use counters::{Counters, GENERATIONS_KEPT};
pub use line::Line;
pub use rules::Rules;

/// How many calls a cooldown gives back, where nothing is advised and the rate is known.
const FEW_CALLS: u64 = 8;

/// The least cooldown then.
const LEAST: Span = Span::from_millis(20);

/// And where calls are refused whatever the pace.
const LEAST_ANYWAY: Span = Span::from_millis(1);

/// After so many cooldowns in a row in which nothing has gone through, one call goes alone.
const STREAK_MAX: u32 = 2;

/// How long a call that goes alone is waited for before the next goes, at least.
const PROBE_MIN: Span = Span::from_millis(100);

/// And at most.
const PROBE_MAX: Span = Span::from_secs(5);

/// By how much two clocks that tell the same time may differ. What others say is no news within that.
const SLACK: Span = Span::from_millis(20);

/// The machine of one scope.
#[derive(Clone, Debug)]
pub struct Scope {
    rules: Rules,
    pace: Pace,
    generation: u64,
    until: Option<Tick>,
    closed: Option<Closed>,
    /// Cooldowns in a row in which nothing has gone through.
    streak: u32,
    /// When the last call of this generation started.
    last_start: Option<Tick>,
    /// When the first did, until it is answered.
    unanswered: Option<Tick>,
    /// How long the last refusal took to come.
    refusal: Span,
    random: Random,
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
    /// Not before another call has been answered.
    AfterReply,
    /// Never.
    Closed(Closed),
}

/// A call under way: the stamp it got when it started.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    generation: u64,
    at: Tick,
    start: Start,
}

/// What a reply meant for the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing for others.
    None,
    /// A cooldown began; nobody starts before its end.
    Opened(Tick),
    /// The cooldown that is on lasts longer.
    Extended(Tick),
    /// The cooldown that is on was met by another call.
    Joined,
    /// It was a 429 of a generation that is over.
    Old,
    /// The scope is closed for good.
    Closed(Closed),
}

impl Scope {
    /// A scope of which nothing is known. The seed is for jitter.
    pub fn new(rules: Rules, seed: u64) -> Scope {
        Scope {
            rules,
            pace: Pace::default(),
            generation: 0,
            until: None,
            closed: None,
            streak: 0,
            last_start: None,
            unanswered: None,
            refusal: Span::ZERO,
            random: Random::new(seed),
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
            Some(_) => self.streak = STREAK_MAX - 1,
            None => {}
        }
        match self.pace.ready(now, load) {
            Ready::At(at) if at <= now => Permit::Now,
            Ready::At(at) => Permit::PacedUntil(at),
            Ready::AfterReply => Permit::AfterReply,
        }
    }

    /// When the next call may start, if the last ones have all been refused: then one goes alone, and finds out whether that
    /// is over. It may be lost, so nobody waits for it for ever.
    fn probing(&self) -> Option<Tick> {
        let last = self.last_start.filter(|_| self.streak >= STREAK_MAX)?;
        // By then it would have been refused.
        let refusal = Span::from_micros(self.refusal.as_micros().saturating_mul(4));
        Some(last + refusal.clamp(PROBE_MIN, PROBE_MAX))
    }

    /// A call starts. Whoever starts one has a permit for now.
    pub fn start(&mut self, now: Tick, load: Load) -> Call {
        self.counters.calls += 1;
        if self.last_start.replace(now).is_none() {
            self.unanswered = Some(now);
        }
        Call { generation: self.generation, at: now, start: self.pace.start(now, load) }
    }

    /// A call that was stamped never reached the provider.
    pub fn withdraw(&mut self, call: &Call) {
        self.answered(call);
        self.counters.calls = self.counters.calls.saturating_sub(1);
        self.pace.ended(&call.start);
    }

    /// A call ended and nobody knows how.
    pub fn abandon(&mut self, call: &Call) {
        self.answered(call);
        self.counters.wasted += 1;
        self.pace.ended(&call.start);
    }

    /// A call was answered.
    pub fn reply(&mut self, now: Tick, call: &Call, hint: &Hint) -> Effect {
        self.counters.wasted += u64::from(hint.class != Class::Ok);
        self.answered(call);
        match hint.class {
            Class::Ok => {
                if call.generation == self.generation {
                    self.streak = 0;
                }
                self.pace.accepted(now, &call.start, &hint.meters);
                Effect::None
            }
            Class::Throttled => self.throttled(now, call, hint),
            Class::Overloaded => {
                self.pace.overloaded(&call.start);
                Effect::None
            }
            Class::Exhausted { .. } | Class::Fatal(FatalKind::Auth) => {
                self.pace.ended(&call.start);
                self.close(hint)
            }
            _ => {
                self.pace.ended(&call.start);
                Effect::None
            }
        }
    }

    fn answered(&mut self, call: &Call) {
        if call.generation == self.generation && self.unanswered == Some(call.at) {
            self.unanswered = None;
        }
    }

    fn throttled(&mut self, now: Tick, call: &Call, hint: &Hint) -> Effect {
        self.counters.rejected += 1;
        self.refusal = now.since(call.at);
        let is_first = call.generation == self.generation;
        let length = self.rules.length(hint.advice, self.learned(), if is_first { self.streak } else { 0 });
        let until = now + length + self.rules.added(length, self.random.next());
        if is_first {
            return self.open(now, call, hint, until);
        }
        self.pace.refused_again(&call.start, &hint.meters);
        let Some(cooling) = self.cooling(now) else { return Effect::Old };
        self.counters.participate();
        // Only what was advised makes a cooldown longer; a default is no news.
        if hint.advice.is_some() && until > cooling {
            self.until = Some(until);
            return Effect::Extended(until);
        }
        Effect::Joined
    }

    /// How long to cool down where nothing is advised, once the rate is known: until a few calls pass again. Where some are
    /// refused whatever the pace, it is not waiting that helps.
    fn learned(&self) -> Option<Span> {
        let rate = self.pace.calls()?;
        Some(match self.pace.is_refused_anyway() {
            true => rate.time_of(1).max(LEAST_ANYWAY),
            false => rate.time_of(FEW_CALLS).max(LEAST),
        })
    }

    fn open(&mut self, now: Tick, call: &Call, hint: &Hint, until: Tick) -> Effect {
        let until = self.cooling(now).map_or(until, |cooling| cooling.max(until));
        self.pace.refused_first(now, &call.start, &hint.meters, until.since(now));
        self.generation += 1;
        // Refusals are often faster than answers: what started before this call and has not come back went through.
        let passes = self.unanswered.is_some_and(|first| first < call.at);
        self.streak = if passes { 1 } else { self.streak.saturating_add(1) };
        (self.last_start, self.unanswered) = (None, None);
        self.until = Some(until);
        self.counters.begin();
        self.counters.participate();
        Effect::Opened(until)
    }

    fn close(&mut self, hint: &Hint) -> Effect {
        let reason = hint.reason.as_deref().unwrap_or("the provider gave no reason");
        let closed = Closed { class: hint.class, reason: reason.into() };
        Effect::Closed(self.closed.get_or_insert(closed).clone())
    }

    /// Somebody else who shares the scope met a 429: nobody starts for `left`. Answers the deadline if that is news.
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

//! A scope: the calls that share a provider's account, its limits and its cooldowns.
//!
//! The scope is a pure state machine. Its caller passes in the times at which calls start and are
//! answered, and asks it whether the next call may start. A cooldown is a deadline in its state,
//! not a task: the call that met the 429 may be gone the moment after.
//!
//! Generations separate old replies from new ones. A call is stamped with the generation in which
//! it starts, and the first 429 of a generation begins the next one. A 429 of an older generation
//! begins nothing, and an old success proves nothing.

mod cooldown_policy;
mod counters;
mod outage;
mod start_queue;

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Span, Tick};
use tollgate_provider::{Class, FatalKind, Hint};

use crate::pace::{Load, Pace, PaceStart};
use tollgate_store::SplitMix64;

pub use cooldown_policy::CooldownPolicy;
pub use counters::{Counters, GENERATIONS_KEPT};
use outage::OutageCircuit;
pub use start_queue::StartQueue;

/// Without advice and with a known rate, a cooldown lasts until this many calls may pass again.
const FEW_CALLS: u64 = 2;

/// The shortest cooldown in that case.
const LEAST: Span = Span::from_millis(1);

/// The shortest cooldown in an outage.
const LEAST_IN_OUTAGE: Span = Span::from_millis(100);

/// How long a probing call is waited for before the next one starts, at least.
const PROBE_MIN: Span = Span::from_millis(100);

/// And at most.
const PROBE_MAX: Span = Span::from_secs(5);

/// After this many refusals in a row the advice of the provider is followed again.
const RUN_ADVISED: u64 = 4;

/// Advice is divided by at most two to the power of this.
const DOUBTS_MAX: u32 = 10;

/// Where other calls pass, one call probes advice of at least this length, after this part of it.
const ADVICE_LONG: Duration = Duration::from_secs(5);
const PROBED_PART: u32 = 8;

/// At most this many refusals in a row do not confirm long advice.
const ODD_RUN: u64 = 2;

/// By how much two clocks of the same time may differ. A shared cooldown within that is not news.
const SLACK: Span = Span::from_millis(20);

/// The state machine of one scope.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Tick;
/// use tollgate_batch::pace::Load;
/// use tollgate_batch::scope::{CooldownPolicy, Effect, PaceScope, Permit};
/// use tollgate_provider::Hint;
///
/// let mut scope = PaceScope::new(CooldownPolicy::default().jitter(0), 1);
/// let now = Tick::from_secs(100);
/// assert_eq!(scope.permit(now, Load::default()), Permit::Now);
/// let call = scope.start(now, Load::default());
/// let refused = Hint::throttled(Some(Duration::from_secs(5)));
/// assert_eq!(scope.reply(now, &call, &refused, true), Effect::Opened(Tick::from_secs(105)));
/// assert_eq!(scope.permit(now, Load::default()), Permit::CoolingUntil(Tick::from_secs(105)));
/// ```
#[derive(Clone, Debug)]
pub struct PaceScope {
    policy: CooldownPolicy,
    pace: Pace,
    generation: u64,
    until: Option<Tick>,
    closed: Option<Closed>,
    /// How many cooldowns in a row began without a call passing in between.
    streak: u32,
    /// When the last call of this generation started.
    last_start: Option<Tick>,
    /// How long the last refusal or failure took to arrive.
    refusal: Span,
    /// Since when every call is refused.
    refused_since: Option<Tick>,
    /// The call whose refusal came with the advice in force: when it started, its load, and half of
    /// the advised time.
    advised: Option<(Tick, Load, Span)>,
    /// How often advice proved too long.
    doubts: u32,
    /// True if the next call is to probe whether the advice is right.
    is_suspect: bool,
    /// Since when long advice is followed that was credible when it came, and its length.
    long_advice: Option<(Tick, Duration)>,
    outage: OutageCircuit,
    random: SplitMix64,
    counters: Counters,
}

/// Why a scope is closed.
///
/// ```
/// use tollgate_batch::scope::Closed;
/// use tollgate_provider::{Class, FatalKind};
///
/// let closed = Closed { class: Class::Fatal(FatalKind::Auth), reason: "invalid API key".into() };
/// assert_eq!(&*closed.reason, "invalid API key");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The class of the refusal.
    pub class: Class,
    /// The reason, in the words of the provider.
    pub reason: Arc<str>,
}

/// Whether a call may start.
///
/// # Examples
///
/// ```
/// use tollgate::Tick;
/// use tollgate_batch::scope::Permit;
///
/// /// Returns when to ask again; `None` if no call is to start later.
/// fn next_poll(permit: &Permit) -> Option<Tick> {
///     match permit {
///         Permit::CoolingUntil(at) | Permit::PacedUntil(at) => Some(*at),
///         Permit::Now | Permit::Closed(_) => None,
///     }
/// }
///
/// assert_eq!(next_poll(&Permit::PacedUntil(Tick::from_secs(5))), Some(Tick::from_secs(5)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Now.
    Now,
    /// Not before this time: the scope cools down.
    CoolingUntil(Tick),
    /// Not before this time, to keep the pace.
    PacedUntil(Tick),
    /// Never.
    Closed(Closed),
}

/// A call in flight: the stamp it got when it started.
///
/// # Examples
///
/// ```
/// use tollgate::Tick;
/// use tollgate_batch::pace::Load;
/// use tollgate_batch::scope::{CooldownPolicy, Effect, PaceScope};
/// use tollgate_provider::Hint;
///
/// let (mut scope, now) = (PaceScope::new(CooldownPolicy::default(), 1), Tick::from_secs(100));
/// let [first, second] = [(); 2].map(|()| scope.start(now, Load::default()));
/// assert!(matches!(scope.reply(now, &first, &Hint::throttled(None), true), Effect::Opened(_)));
/// // The second call started before the cooldown, so it does not begin another one.
/// scope.reply(now, &second, &Hint::throttled(None), true);
/// assert_eq!(scope.generation(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StartedCall {
    generation: u64,
    at: Tick,
    start: PaceStart,
}

/// The effect of a reply on the scope.
///
/// # Examples
///
/// ```
/// use tollgate::Tick;
/// use tollgate_batch::pace::Load;
/// use tollgate_batch::scope::{CooldownPolicy, Effect, PaceScope};
/// use tollgate_provider::Hint;
///
/// let (mut scope, now) = (PaceScope::new(CooldownPolicy::default(), 1), Tick::from_secs(100));
/// let call = scope.start(now, Load::default());
/// let text = match scope.reply(now, &call, &Hint::ok(), true) {
///     Effect::Opened(until) | Effect::Changed(until) => format!("no call starts before {until:?}"),
///     Effect::Closed(closed) => format!("closed: {}", closed.reason),
///     Effect::None | Effect::Joined | Effect::Old => "nothing has changed".into(),
/// };
/// assert_eq!(text, "nothing has changed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No effect on other calls.
    None,
    /// A cooldown began; no call starts before its end.
    Opened(Tick),
    /// The end of the cooldown in force has changed. It is earlier if a call has passed meanwhile.
    Changed(Tick),
    /// Another call met the cooldown in force.
    Joined,
    /// A 429 of an older generation, which is ignored.
    Old,
    /// The scope is closed permanently.
    Closed(Closed),
}

impl PaceScope {
    /// Creates a scope without any knowledge. The seed is for jitter.
    pub fn new(policy: CooldownPolicy, seed: u64) -> PaceScope {
        PaceScope {
            policy,
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
            random: SplitMix64::new(seed),
            counters: Counters::default(),
        }
    }

    /// Returns the pace.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Returns how many cooldowns have begun.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns when the cooldown in force ends, if there is one.
    pub fn cooling(&self, now: Tick) -> Option<Tick> {
        self.until.filter(|until| *until > now)
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Returns why the scope is closed, if it is.
    pub fn closed(&self) -> Option<&Closed> {
        self.closed.as_ref()
    }

    /// Returns whether a call may start.
    pub fn permit(&mut self, now: Tick, load: Load) -> Permit {
        if let Some(closed) = &self.closed {
            return Permit::Closed(closed.clone());
        }
        if let Some(until) = self.cooling(now) {
            return Permit::CoolingUntil(until);
        }
        match self.probing() {
            Some(at) if at > now => return Permit::PacedUntil(at),
            // The probing call was not refused in time, so it passed, or was lost.
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

    /// Returns the number of the current or last run of failures, which is a sequence without a
    /// success in between.
    pub(crate) fn failing_run(&self) -> u64 {
        self.outage.run()
    }

    /// Returns true if no call passes, so that a failure is not the fault of its item.
    pub fn is_out(&self) -> bool {
        self.outage.since().is_some() || self.pace.is_refusing_all()
    }

    /// Returns when the next probing call may start, if no call passed of late: then calls go one
    /// at a time until one passes. A probe may be lost, so the wait for it is bounded.
    fn probing(&self) -> Option<Tick> {
        let last = self.last_start.filter(|_| self.is_out() || self.is_suspect)?;
        // By then the probe would have been refused.
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

    /// Withdraws a call that never reached the provider.
    pub fn withdraw(&mut self) {
        self.counters.calls = self.counters.calls.saturating_sub(1);
        self.pace.ended();
    }

    /// Records that a call ended with an unknown result.
    pub fn abandon(&mut self) {
        self.counters.wasted += 1;
        self.pace.ended();
    }

    /// Records the reply to a call. `is_blameless` is true if the item had not failed before,
    /// unless in the current run of failures.
    pub fn reply(&mut self, now: Tick, call: &StartedCall, hint: &Hint, is_blameless: bool) -> Effect {
        self.counters.wasted += u64::from(hint.class != Class::Ok);
        match hint.class {
            Class::Ok => {
                if call.generation == self.generation {
                    (self.streak, self.is_suspect) = (0, false);
                }
                self.outage.pass(call.at);
                self.pace.accepted(now, &call.start, &hint.meters);
                let until = self.discount_advice(now, call).or_else(|| self.mark_advice_suspect(now));
                until.map_or(Effect::None, Effect::Changed)
            }
            Class::Transient => self.failed(now, call, hint, is_blameless),
            Class::Throttled | Class::Overloaded => self.throttled(now, call, hint),
            Class::Exhausted { .. } | Class::Fatal(FatalKind::Auth) => {
                self.pace.ended();
                let reason = hint.reason.as_deref().unwrap_or("the provider gave no reason");
                self.close(hint.class, reason)
            }
            // The provider has examined the call, so its limits let it pass.
            _ => {
                self.pace.accepted(now, &call.start, &hint.meters);
                Effect::None
            }
        }
    }

    /// Records a call that failed, or took too long. If all calls do, that is an outage: calls go
    /// one at a time until one passes, or until the outage has lasted too long.
    fn failed(&mut self, now: Tick, call: &StartedCall, hint: &Hint, is_blameless: bool) -> Effect {
        self.pace.ended();
        self.outage.fail(now, call.at, is_blameless);
        let Some(lasts) = self.outage.lasts(now) else { return Effect::None };
        if let Some(closed) = self.close_after(lasts, hint) {
            return closed;
        }
        self.refusal = now.since(call.at);
        let length = self.policy.length(hint.advice, LEAST_IN_OUTAGE, 0, lasts);
        let until = now + length + self.policy.added(length, self.random.next_u64());
        if call.generation == self.generation {
            return self.open(now, until);
        }
        self.join(now)
    }

    /// Closes the scope if no call has passed for longer than an outage may last.
    fn close_after(&mut self, lasts: Span, hint: &Hint) -> Option<Effect> {
        if lasts < self.policy.longest_outage() {
            return None;
        }
        let detail = hint.reason.as_deref().unwrap_or("no reason given");
        let reason = format!("no call has passed for {:?}: {detail}", lasts.to_duration());
        Some(self.close(hint.class, &reason))
    }

    /// Counts a call that started before the cooldown began and did not pass.
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
        let advice = hint.advice.map(|advice| self.discounted(advice));
        let is_long = advice.is_some_and(|advice| advice >= ADVICE_LONG);
        self.is_suspect = is_long && self.is_isolated_refusal();
        self.long_advice = advice.filter(|_| is_long && !self.is_suspect).map(|advice| (now, advice));
        // The advice is too long if a call passes before half of it is over.
        let half = Span::covering(advice.unwrap_or_default() / 2);
        let advice = advice.map(|advice| if self.is_suspect { self.probed(advice) } else { advice });
        let length = self.policy.length(advice, self.learned(is_met), streak, refused_for);
        let until = now + length + self.policy.added(length, self.random.next_u64());
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
        // Only advice, or a limit that was met, makes a cooldown longer; the default length is not
        // news.
        let is_news = hint.advice.is_some() || is_met;
        if is_news && self.cooling(now).is_some_and(|cooling| until > cooling) {
            self.until = Some(until);
            return Effect::Changed(until);
        }
        effect
    }

    /// Returns how long to cool down without advice: until a call or two may pass again. A limit is
    /// respected by a slower pace, not by a pause.
    fn learned(&self, is_met: bool) -> Span {
        let calls = if is_met { FEW_CALLS } else { 1 };
        let known = self.pace.calls().map(|rate| rate.time_of(calls));
        let first = if is_met { Span::from_micros(self.refusal.as_micros() * 2) } else { Span::ZERO };
        known.unwrap_or(first).clamp(LEAST, CooldownPolicy::FIRST)
    }

    /// Returns true if nearly all calls pass except the last.
    fn is_isolated_refusal(&self) -> bool {
        self.pace.run() <= ODD_RUN && self.pace.is_passing()
    }

    /// Returns after how much of a long advice one call probes it: twice as much after each probe
    /// that was refused.
    fn probed(&self, advice: Duration) -> Duration {
        advice * (1 << (self.pace.run().clamp(1, ODD_RUN) - 1)) / PROBED_PART
    }

    /// Records that a call passed. If nearly all do, long advice is suspect, and one call probes
    /// it. Returns the new end of the cooldown.
    fn mark_advice_suspect(&mut self, now: Tick) -> Option<Tick> {
        let (since, advice) = self.long_advice.filter(|_| self.is_isolated_refusal())?;
        self.long_advice = None;
        let soon = now.max(since + Span::covering(self.probed(advice)));
        self.cooling(now).filter(|until| *until > soon)?;
        self.is_suspect = true;
        self.until = Some(soon);
        self.until
    }

    /// Returns how much of the advice is followed: half as much each time that advice proved too
    /// long.
    fn discounted(&self, advice: Duration) -> Duration {
        advice / (1_u32 << self.doubts.min(DOUBTS_MAX))
    }

    /// Records that a call passed. If it started after the one that was refused, and is no smaller,
    /// the advice was too long. Returns the new end of the cooldown.
    fn discount_advice(&mut self, now: Tick, call: &StartedCall) -> Option<Tick> {
        let (at, load, advice) = self.advised?;
        // In the second half a call may pass: advice is rounded up.
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

    /// Applies a cooldown of another batch that shares the scope: no call starts for `left`.
    /// Returns the new deadline if it has changed.
    pub fn share(&mut self, now: Tick, left: Span) -> Option<Tick> {
        let until = now + left.min(self.policy.cap_span());
        if left <= SLACK || self.cooling(now).is_some_and(|cooling| cooling + SLACK >= until) {
            return None;
        }
        // A cooldown in force only becomes longer: calls in flight have met it, or will.
        if self.cooling(now).is_none() {
            self.generation += 1;
            self.counters.begin();
        }
        self.until = Some(until);
        self.pace.pause(until);
        Some(until)
    }
}

//! Drafts: an item after some steps, worked out by the core before anything is written.

use std::sync::Arc;

use tollgate_core::{Costs, Denial, Limits, Tick, Usage};
use tollgate_store::prefetch::UsageDelta;
use tollgate_store::usage::Caller;
use tollgate_store::{Op, Step, StepOutcome};

use super::snapshot::ItemSnapshot;

/// An item as it was read, and as it will be.
pub(crate) struct ItemDraft {
    /// The item as it was read; `None` if there was no item.
    pub(crate) before: Option<ItemSnapshot>,
    /// The item as it will be.
    pub(crate) after: Option<ItemSnapshot>,
    /// What each limit gains and loses, if nothing else changes; `None` if more does.
    pub(crate) moves: Option<Vec<LimitDelta>>,
    pub(crate) is_changed: bool,
    /// Corrections of the usage of a bucket that is gone, by the name of the limit.
    pub(crate) corrections: Vec<(String, i64)>,
    /// Whose calls are corrected.
    pub(crate) corrections_of: Caller,
    /// The time of the clock.
    pub(crate) now: Tick,
    /// The time that the steps are applied at: a clock that steps back is not followed.
    pub(crate) time: Tick,
}

/// What a limit gains and loses, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitDelta {
    pub(crate) taken: u64,
    pub(crate) given_back: u64,
    pub(crate) charged: u64,
}

impl LimitDelta {
    pub(crate) fn is_any(self) -> bool {
        self != LimitDelta::default()
    }
}

/// How the usage of a step is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UsageMode {
    /// Not at all.
    Off,
    On,
    /// As an undone take, which is no event any more.
    Undo,
    /// As this: what a process used of what it had taken ahead.
    Counted(Arc<UsageDelta>),
}

impl UsageMode {
    /// Returns the usage that overrides that of the step.
    fn counted(&self) -> UsageDelta {
        if let UsageMode::Counted(counted) = self {
            UsageDelta::clone(counted)
        } else {
            UsageDelta::default()
        }
    }

    /// Returns the mode of a step that undoes one that was metered or not.
    pub(crate) fn undo(is_metered: bool) -> UsageMode {
        if is_metered { UsageMode::Undo } else { UsageMode::Off }
    }
}

impl ItemDraft {
    /// Returns a draft at `now` of an item that something was applied to at `last`. One that has expired is full.
    pub(crate) fn new(seen: Option<&ItemSnapshot>, last: Tick, now: Tick) -> ItemDraft {
        let time = now.max(last);
        let after = seen.cloned().map(|snapshot| match snapshot.has_expired(time) {
            true => snapshot.revived(),
            false => snapshot.advanced(last),
        });
        let is_live =
            after.as_ref().zip(seen).is_some_and(|(after, seen)| after.generation == seen.generation);
        let moves = after
            .as_ref()
            .filter(|_| is_live)
            .map(|snapshot| vec![LimitDelta::default(); snapshot.stored.limits.len()]);
        ItemDraft {
            before: seen.cloned(),
            after,
            moves,
            is_changed: false,
            corrections: Vec::new(),
            corrections_of: Caller::Own,
            now,
            time,
        }
    }

    /// Returns whether the bucket was used under limits of a later version than those of the step.
    pub(crate) fn is_past(&self, step: &Step<'_>) -> bool {
        self.after.as_ref().is_some_and(|snapshot| snapshot.stored.is_past(step.place.limits))
    }

    /// Returns whether what the step takes fits; other steps always do.
    pub(crate) fn fits(&mut self, step: &Step<'_>) -> bool {
        let Some(costs) = step.takes() else { return true };
        match &self.after {
            Some(snapshot) if snapshot.stored.is_under(step.place.limits) => {
                snapshot.stored.fits(self.now, costs)
            }
            Some(snapshot) => {
                let mut stored = snapshot.stored.clone();
                stored.put_in_force(step.place.limits, self.now);
                stored.fits(self.now, costs)
            }
            None => ItemSnapshot::fresh(step.place.limits, 0, 1)
                .is_some_and(|snapshot| snapshot.stored.fits(self.now, costs)),
        }
    }

    /// Returns the denial of a step that does not fit.
    pub(crate) fn denial(&self, step: &Step<'_>) -> Option<Denial> {
        let mut stored = match &self.after {
            Some(snapshot) => snapshot.stored.clone(),
            None => ItemSnapshot::fresh(step.place.limits, 0, 1)?.stored,
        };
        stored.put_in_force(step.place.limits, self.now);
        Some(stored.denial(self.now, step.takes()?))
    }

    /// Puts the limits of a step that was denied in force, if they are accepted all the same.
    pub(crate) fn accept_limits(&mut self, step: &Step<'_>) {
        if self.after.as_ref().is_some_and(|snapshot| snapshot.stored.accepts_limits_of(step)) {
            self.put_in_force(step.place.limits);
        }
    }

    fn put_in_force(&mut self, limits: &Limits) {
        let Some(snapshot) = &mut self.after else { return };
        if snapshot.stored.is_under(limits) {
            if snapshot.stored.version < limits.version() {
                snapshot.stored.version = limits.version();
                self.is_changed = true;
            }
            return;
        }
        snapshot.counters.adopt(&snapshot.stored.limits, limits);
        snapshot.stored.put_in_force(limits, self.now);
        snapshot.whole = limits.clone();
        snapshot.generation += 1;
        self.moves = None;
        self.is_changed = true;
    }

    /// Applies the step, which must fit if it takes.
    pub(crate) fn commit(&mut self, step: &Step<'_>, metering: &UsageMode) -> StepOutcome {
        if self.after.is_none() && step.creates() {
            self.create(step.place.limits);
        }
        if step.takes().is_some() {
            self.put_in_force(step.place.limits);
        }
        let now = self.now;
        let Some(snapshot) = &mut self.after else {
            self.correct(step, metering);
            return step.commit(None, now);
        };
        let was = snapshot.stored.bucket.clone();
        let done = step.commit(Some(&mut snapshot.stored), now);
        let deltas = moves_of(step, &snapshot.stored.limits);
        match (&deltas, &mut self.moves) {
            (Some(deltas), Some(moves)) => {
                moves.iter_mut().zip(deltas).for_each(|(sum, step)| sum.add(*step))
            }
            (None, moves) => *moves = None,
            (Some(_), None) => {}
        }
        let is_nothing = match &deltas {
            Some(deltas) => !deltas.iter().any(|delta| delta.is_any()),
            None => snapshot.stored.bucket == was,
        };
        // A step that changes nothing is not written, so no time passes for the bucket either.
        if is_nothing && (*metering == UsageMode::Off || step.takes().is_none()) {
            snapshot.stored.bucket = was;
        } else {
            self.is_changed = true;
        }
        self.meter(step, metering);
        self.last(step.place.limits.are_defaults());
        done
    }

    /// Sets the expiry.
    fn last(&mut self, are_defaults: bool) {
        if let Some(snapshot) = self.after.as_mut().filter(|_| self.is_changed) {
            snapshot.ttl = snapshot.lasts_until(are_defaults, self.time);
        }
    }

    /// Corrects the usage of a bucket that is gone: it was full and is forgotten, but the usage that was counted stays.
    fn correct(&mut self, step: &Step<'_>, metering: &UsageMode) {
        let Op::Settle(usage) = &step.op else { return };
        if *metering == UsageMode::On {
            self.corrections_of = Caller::of(usage.reserved);
            let counted = step.place.limits.iter().zip(differences(usage));
            let counted = counted.filter(|(limit, amount)| !limit.is_resource() && *amount != 0);
            self.corrections.extend(counted.map(|(limit, amount)| (limit.name().to_string(), amount)));
        }
    }

    fn create(&mut self, limits: &Limits) {
        self.after = ItemSnapshot::fresh(limits, 0, 1);
        self.is_changed = true;
    }

    fn meter(&mut self, step: &Step<'_>, metering: &UsageMode) {
        let Some(snapshot) = self.after.as_mut().filter(|_| *metering != UsageMode::Off) else { return };
        let amounts: Vec<i64> = match &step.op {
            _ if matches!(metering, UsageMode::Counted(_)) => metering.counted().amounts.clone(),
            Op::Take { costs, .. } => costs.amounts().iter().map(|amount| signed(*amount)).collect(),
            Op::Settle(usage) | Op::SettleExisting(usage) => differences(usage),
            _ => return,
        };
        let caller = match (&step.op, metering) {
            (_, UsageMode::Counted(counted)) => counted.caller,
            (Op::Take { costs, .. }, _) => Caller::of(costs),
            (Op::Settle(usage) | Op::SettleExisting(usage), _) => Caller::of(usage.reserved),
            _ => Caller::Own,
        };
        let events = match (&step.op, metering) {
            (_, UsageMode::Counted(counted)) => i128::from(counted.events),
            (Op::Take { .. }, _) => 1,
            (_, UsageMode::Undo) => -1,
            _ => 0,
        };
        if events == 0 && amounts.iter().all(|amount| *amount == 0) {
            return;
        }
        let limits = snapshot.stored.limits.clone();
        let at = if step.takes().is_some() { self.time } else { self.now };
        snapshot.counters.open(&limits, at, caller);
        snapshot.counters.events.total += events;
        let counted = step.place.limits.iter().zip(amounts).filter(|(limit, _)| !limit.is_resource());
        for (limit, amount) in counted.filter(|(_, amount)| *amount != 0) {
            snapshot.counters.add(&limits, limit.name(), amount);
        }
        self.is_changed = true;
    }
}

impl LimitDelta {
    fn add(&mut self, other: LimitDelta) {
        self.taken = self.taken.saturating_add(other.taken);
        self.given_back = self.given_back.saturating_add(other.given_back);
        self.charged = self.charged.saturating_add(other.charged);
    }
}

/// Returns what a step does to each limit in force; `None` if it is more than that meters gain or lose.
fn moves_of(step: &Step<'_>, limits: &Limits) -> Option<Vec<LimitDelta>> {
    let mut moves = vec![LimitDelta::default(); limits.len()];
    match &step.op {
        Op::Take { costs, .. } => {
            moves.iter_mut().zip(costs.amounts()).for_each(|(place, amount)| place.taken = *amount);
        }
        Op::Settle(usage) | Op::SettleExisting(usage) => {
            for (limit, (reserved, used)) in step.place.limits.iter().zip(pairs(usage.reserved, usage.used)) {
                let Some(place) = limits.index(limit.name()) else { continue };
                let used = if limits[place].is_resource() { 0 } else { used };
                moves[place].given_back = reserved.saturating_sub(used);
                moves[place].charged = used.saturating_sub(reserved);
            }
        }
        _ => return None,
    }
    let is_relative = |(limit, delta): (&tollgate_core::Limit, &LimitDelta)| {
        !delta.is_any() || limit.meter().is_some() || limit.is_unbounded() && !limit.is_resource()
    };
    limits.iter().zip(&moves).all(is_relative).then_some(moves)
}

fn pairs<'a>(reserved: &'a Costs, used: &'a [u64]) -> impl Iterator<Item = (u64, u64)> + 'a {
    reserved.amounts().iter().copied().zip(used.iter().copied())
}

fn differences(usage: &Usage<'_>) -> Vec<i64> {
    pairs(usage.reserved, usage.used).map(|(reserved, used)| signed(used) - signed(reserved)).collect()
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

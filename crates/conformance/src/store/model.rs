//! The model of a store: the functions of the core on a map.

use std::collections::HashMap;

use tollgate_core::{Bucket, Denial, Limits, Link, Status, Tick, take_all};
use tollgate_store::{
    BucketRef, Key, LeaseTerm, Op, OpId, Step, StepOutcome, Taken, Transaction, TxnOutcome,
};

type ModelKey = (String, Key);

/// A bucket with the limits in force for it.
type ModelBucket = (Limits, Bucket);

#[derive(Default)]
pub(super) struct Model {
    buckets: HashMap<ModelKey, ModelBucket>,
    applied: HashMap<OpId, TxnOutcome>,
}

impl Model {
    pub(super) fn apply(&mut self, call: &Transaction<'_>, now: Tick) -> TxnOutcome {
        if let Some(applied) = call.id.and_then(|id| self.applied.get(&id)) {
            return applied.clone();
        }
        let is_stale = |step: &Step<'_>| matches!(step.op, Op::Take { .. }) && self.is_past(&step.place);
        if let Some(stale) = call.steps.iter().position(is_stale) {
            return TxnOutcome::Stale(stale);
        }
        let applied = self.apply_steps(call.steps, now);
        match (&applied, call.id) {
            (TxnOutcome::Done(_), Some(id)) => drop(self.applied.insert(id, applied.clone())),
            (TxnOutcome::Denied(_), _) => self.put_in_force(call.steps, now),
            _ => {}
        }
        applied
    }

    fn apply_steps(&mut self, steps: &[Step<'_>], now: Tick) -> TxnOutcome {
        let mut places: Vec<Option<ModelBucket>> =
            steps.iter().map(|step| self.place_for(step, now)).collect();
        let takes = steps.iter().zip(&mut places).filter_map(|(step, place)| match (&step.op, place) {
            (Op::Take { costs, term }, Some((limits, bucket))) => {
                Some((Link { limits, bucket, costs }, *term))
            }
            _ => None,
        });
        let (mut links, terms): (Vec<Link<'_>>, Vec<Option<LeaseTerm>>) = takes.unzip();
        let holder = terms.into_iter().flatten().next().map(|term| term.starting(now));
        let mut taken = Vec::new();
        if let Err(denials) = take_all(&mut links, now, holder, |_, at| taken.push(at)) {
            return TxnOutcome::Denied(denials);
        }
        let mut taken = taken.into_iter();
        let done = steps.iter().zip(&mut places).map(|(step, place)| {
            let at = matches!(step.op, Op::Take { .. }).then(|| taken.next()).flatten();
            do_step(step, place.as_mut(), at, now)
        });
        let done = done.collect();
        for (step, place) in steps.iter().zip(places) {
            self.buckets.extend(place.map(|place| (address(&step.place), place)));
        }
        TxnOutcome::Done(done)
    }

    /// Puts the limits of a denied call in force where a bucket exists.
    fn put_in_force(&mut self, steps: &[Step<'_>], now: Tick) {
        for Step { place, .. } in steps.iter().filter(|step| matches!(step.op, Op::Take { .. })) {
            if self.in_force(place).is_some_and(|limits| place.limits.adopted_on_denial(limits)) {
                let known = self.under(place, now);
                self.buckets.insert(address(place), known);
            }
        }
    }

    /// Returns the bucket of a step. A take puts its limits in force, and a step that charges makes a bucket if none exists.
    fn place_for(&self, step: &Step<'_>, now: Tick) -> Option<ModelBucket> {
        let known = self.buckets.get(&address(&step.place)).cloned();
        match &step.op {
            Op::Take { .. } => Some(self.under(&step.place, now)),
            Op::Settle(usage) if usage.is_over() => known.or_else(|| Some(self.under(&step.place, now))),
            _ => known,
        }
    }

    /// Returns the bucket under the limits of the reference, or under those in force if they are later.
    fn under(&self, place: &BucketRef<'_>, now: Tick) -> ModelBucket {
        match self.buckets.get(&address(place)) {
            None => (place.limits.clone(), Bucket::fresh(place.limits, Tick::ZERO)),
            Some((limits, bucket)) if limits == place.limits => {
                let later = if place.limits.version() >= limits.version() { place.limits } else { limits };
                (later.clone(), bucket.clone())
            }
            Some(known) if self.is_past(place) => known.clone(),
            Some((limits, bucket)) => {
                let mut bucket = bucket.clone();
                bucket.adopt(limits, place.limits, now);
                (place.limits.clone(), bucket)
            }
        }
    }

    /// Returns whether the bucket was used under limits of a later version.
    pub(super) fn is_past(&self, place: &BucketRef<'_>) -> bool {
        let is_later = |limits: &Limits| limits.version() > place.limits.version();
        place.limits.version() != 0 && self.in_force(place).is_some_and(is_later)
    }

    /// Returns the limits in force, if the bucket exists.
    pub(super) fn in_force(&self, place: &BucketRef<'_>) -> Option<&Limits> {
        self.buckets.get(&address(place)).map(|(limits, _)| limits)
    }

    /// Returns whether the bucket exists and equals a fresh one.
    pub(super) fn is_forgettable(&self, place: &BucketRef<'_>, now: Tick) -> bool {
        self.buckets.get(&address(place)).is_some_and(|(limits, bucket)| bucket.is_fresh(limits, now))
    }

    pub(super) fn peek(&self, place: &BucketRef<'_>, now: Tick) -> Vec<Status> {
        let (limits, bucket) = self.under(place, now);
        bucket.peek(&limits, now)
    }

    pub(super) fn evaluate(&self, steps: &[Step<'_>], now: Tick) -> Vec<Denial> {
        let ask = |step: &Step<'_>| {
            let Op::Take { costs, .. } = &step.op else { return None };
            let (limits, bucket) = self.under(&step.place, now);
            Some(bucket.denial(&limits, now, &costs.remapped(step.place.limits, &limits)))
        };
        steps.iter().filter_map(ask).collect()
    }
}

fn do_step(step: &Step<'_>, place: Option<&mut ModelBucket>, at: Option<Tick>, now: Tick) -> StepOutcome {
    let counted_in = step.place.limits;
    match (&step.op, place) {
        (Op::Take { .. }, Some((limits, bucket))) => {
            let at = at.expect("one for each take");
            StepOutcome::Taken(Taken { at, warnings: bucket.warnings(limits, now) })
        }
        (Op::Settle(usage) | Op::SettleExisting(usage), Some((limits, bucket))) => {
            bucket.settle_counted_in(counted_in, limits, now, usage);
            StepOutcome::Settled
        }
        (Op::TopUp(credit), Some((limits, bucket))) => {
            bucket.top_up(limits, now, &credit.remapped(counted_in, limits));
            StepOutcome::Changed
        }
        (Op::Reset, Some((limits, bucket))) => {
            *bucket = Bucket::fresh(limits, now.max(bucket.stamp()));
            StepOutcome::Changed
        }
        (Op::Renew(term), Some((limits, bucket))) => {
            StepOutcome::Renewed(bucket.renew(limits, now, term.starting(now)))
        }
        (Op::Settle(_) | Op::SettleExisting(_), None) => StepOutcome::Settled,
        (Op::TopUp(_) | Op::Reset, None) => StepOutcome::Changed,
        (Op::Take { .. } | Op::Renew(_), None) => StepOutcome::Renewed(false),
        (unknown, _) => panic!("the model does not know {unknown:?}"),
    }
}

fn address(place: &BucketRef<'_>) -> ModelKey {
    (place.namespace.into(), place.key.clone())
}
